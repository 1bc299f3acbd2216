"""The controller's process as its controllers see it: one session with the API server, and one limit of writes."""

from collections.abc import Iterable
from typing import Any

from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.turns import Slots
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.settings import ControllerSettings

__all__ = ["ControllerProcess"]


class ControllerProcess(ElectedWorker[ControllerSettings, ControllerMetrics]):
    """A process that runs controllers.

    Attributes:
        slots: Requests of plans that are under way, of all controllers; namespaces take turns.
    """

    component = "pumice-controller"

    def __init__(
        self,
        client: Client,
        settings: ControllerSettings,
        metrics: ControllerMetrics,
        caches: Iterable[WatchCache[Any]],
        *,
        clock: Clock | None = None,
    ) -> None:
        """Create a process; the arguments are those of `ElectedWorker`."""
        super().__init__(client, settings, metrics, caches, clock=clock)
        self.slots = Slots(settings.concurrent_writes)
