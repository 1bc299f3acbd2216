"""The process's tasks: watches, events, and the controllers while this process leads."""

import asyncio

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.connection import ConfigurationError
from pumice.cluster.lifecycle import SupervisedTask
from pumice.controller.loop.controllers import MAKERS
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.process import ControllerProcess
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.watches import Watches
from pumice.plugins import Registry

__all__ = ["ControllerWorker"]


class ControllerWorker(ControllerProcess):
    """The controllers of one process.

    Attributes:
        watches: Their watches.
    """

    component = "pumice-controller"

    def __init__(
        self,
        client: Client,
        registry: Registry,
        settings: ControllerSettings | None = None,
        *,
        clock: Clock | None = None,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        """Create a worker; its `tasks` must run.

        Args:
            client: Session with the API server.
            registry: The job plugins.
            settings: The settings.
            clock: Tells the time and waits.
            metrics: The metrics to update.

        Raises:
            ConfigurationError: None of the controllers works for one namespace alone.
        """
        settings = settings or ControllerSettings()
        self.watches = Watches(client, namespace=settings.namespace, clock=clock)
        self._works = {
            name: work
            for name, make in MAKERS.items()
            if name in settings.controllers
            and (work := make(self.watches, settings, registry)) is not None
        }
        if not self._works:
            names = ", ".join(sorted(settings.controllers))
            raise ConfigurationError(
                f"{names}: works for the whole cluster only, not for a namespace"
            )
        super().__init__(
            client, settings, metrics or ControllerMetrics(), self.watches.required, clock=clock
        )
        for each in self.watches.optional:
            each.faults = self.faults

    def tasks(self) -> tuple[SupervisedTask, ...]:
        """All tasks that must run, for `run_until_stopped`."""
        optional = (
            SupervisedTask(f"watch of {each.kind.resource}", each.run)
            for each in self.watches.optional
        )
        return (*optional, *super().tasks())

    async def term(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, work in self._works.items():
                group.create_task(work(self), name=name)
