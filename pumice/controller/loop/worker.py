"""The process's tasks: watches, events, and the loop while this process leads."""

import asyncio

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.events import EventRecorder
from pumice.cluster.leader import run_elected
from pumice.cluster.lifecycle import Eternal
from pumice.controller.loop.caches import Caches
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.native import NativeCaches, NativeTerm
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.term import Term
from pumice.plugins import Registry

__all__ = ["COMPONENT", "ControllerWorker"]

COMPONENT = "pumice-controller"


class ControllerWorker:
    """The controller of one process.

    Attributes:
        caches: What it watches.
        natives: What it watches of other controllers' pods.
        metrics: What it counts.
    """

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
        self._client = client
        self._registry = registry
        self._settings = settings or ControllerSettings()
        self._clock = clock or SystemClock()
        self.metrics = metrics or ControllerMetrics()
        self.caches = Caches(client, namespace=self._settings.namespace, clock=clock)
        self.natives = NativeCaches(client, namespace=self._settings.namespace, clock=clock)
        self._recorder = EventRecorder(
            client, COMPONENT, instance=self._settings.identity, clock=clock
        )

    @property
    def ready(self) -> bool:
        """Whether every cache is current; a process that waits to lead is ready, too."""
        return self.caches.synced

    def tasks(self) -> tuple[Eternal, ...]:
        """Everything that must run, for `run_until_stopped`."""
        watches = (Eternal(f"watch of {each.kind.resource}", each.run) for each in self.caches.all)
        natives = (
            Eternal(f"watch of {each.kind.resource} of other controllers", each.run)
            for each in self.natives.all
        )
        return (
            *watches,
            *natives,
            Eternal("events", self._recorder.run),
            Eternal("controller", self.run),
        )

    async def run(self) -> None:
        """Work until cancelled, once this process leads."""
        await run_elected(self._client, self._settings, self._clock, self._lead)

    async def _lead(self) -> None:
        await self.caches.wait_synced()
        self.metrics.leading.set(1)
        term = Term(
            self._client,
            self._registry,
            self._settings,
            self._clock,
            self.metrics,
            self.caches,
            self._recorder,
        )
        natives = NativeTerm(
            self._client,
            self._registry,
            self._settings,
            self.metrics,
            self.natives,
            self._recorder,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(term.run(), name="jobs")
                group.create_task(natives.run(), name="other controllers' pods")
        finally:
            self.metrics.leading.set(0)
