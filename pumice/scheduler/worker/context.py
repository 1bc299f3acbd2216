"""What the parts of the process share in one leadership."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pumice.api.kinds import POD_GROUP
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.lifecycle import SentRequests
from pumice.cluster.set_aside import ObjectFaults, QueueFaults
from pumice.scheduler import ClusterState
from pumice.scheduler.worker.feeds import SchedulerCaches
from pumice.scheduler.worker.metrics import SchedulerMetrics

NOT_LEADING_SECONDS = 0.5
"""How long a write waits that finds the Lease expired; its renewal or the end of the leadership follows."""


@dataclass(frozen=True, slots=True)
class TermContext:
    """The objects that one leadership works with.

    Attributes:
        state: The cluster with what is assumed of it.
        caches: The cluster as the API server last showed it.
        faults: Reports objects at which something fails unexpectedly.
        leads: Whether this process holds the Lease by its own clock.
        sent: Requests whose answers the end of the leadership waits for, so that the next leader sees their results.
    """

    client: Client
    state: ClusterState
    caches: SchedulerCaches
    recorder: EventRecorder
    faults: ObjectFaults
    metrics: SchedulerMetrics
    clock: Clock
    wake: Callable[[], None]
    leads: Callable[[], bool]
    sent: SentRequests = field(default_factory=SentRequests)

    def warn_owner(self, gang: str, reason: str, message: str) -> None:
        """Record a warning about a PodGroup, by `namespace/name`, if there is one."""
        group = self.caches.pod_groups.named(gang)
        if group is not None:
            about = Reference.of(POD_GROUP, group.metadata)
            self.recorder.record(about, "Warning", reason, message)

    def faults_of(self, place: str, cache: WatchCache[Any]) -> QueueFaults[str]:
        """Reports about the objects of a cache, by `namespace/name`, or by name for kinds without namespaces.

        Args:
            place: What fails at them, in logs and metrics.
            cache: The cache.
        """

        def about(key: str) -> Reference:
            namespace, _, name = key.rpartition("/")
            return cache.reference(name, namespace)

        return self.faults.of_queue(place, about)
