"""The process's tasks: watches, events, and the loop while this process leads."""

import asyncio

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.lifecycle import Eternal
from pumice.controller.loop.caches import Caches, object_kinds
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.native import NativeCaches, NativeTerm
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.term import Term
from pumice.plugins import Registry

__all__ = ["ControllerWorker"]


class ControllerWorker(ElectedWorker[ControllerSettings, ControllerMetrics]):
    """The controller of one process.

    Attributes:
        caches: What it watches.
        natives: What it watches of other controllers' pods; a cluster need not have all of these
            kinds, so readiness does not wait for them.
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
        """Make a worker; its `tasks` must run.

        Args:
            client: Session with the API server.
            registry: The job plugins.
            settings: How to work.
            clock: Tells the time and waits.
            metrics: What to count in.
        """
        settings = settings or ControllerSettings()
        self._registry = registry
        wanted = object_kinds(secrets=settings.secrets)
        self.caches = Caches(client, namespace=settings.namespace, clock=clock, wanted=wanted)
        self.natives = NativeCaches(
            client, namespace=settings.namespace, clock=clock, wanted=wanted
        )
        super().__init__(
            client, settings, metrics or ControllerMetrics(), self.caches.all, clock=clock
        )

    def tasks(self) -> tuple[Eternal, ...]:
        """Everything that must run, for `run_until_stopped`."""
        natives = (
            Eternal(f"watch of {each.kind.resource} of other controllers", each.run)
            for each in self.natives.all
        )
        return (*natives, *super().tasks())

    async def term(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            jobs = Term(self, self._registry, self.caches)
            natives = NativeTerm(self, self._registry, self.natives)
            group.create_task(jobs.run(), name="jobs")
            group.create_task(natives.run(), name="other controllers' pods")
