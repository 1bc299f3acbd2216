"""Writes of what cycles say about gangs and their pods: PodGroup statuses, and the condition `PodScheduled` of pods that wait.

What is written is decided when an object's turn has come, so that only the newest finding is. A status carries the resourceVersion of
the PodGroup that it was computed from. When the PodGroup has changed since (the Job controller has reset it to Pending, for example),
the API server answers with a conflict, and the assumed status ends when the watch shows the change: the next cycle decides on the
PodGroup as it is then. A verdict about an earlier pod of the same name is dropped.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from contextlib import suppress

import msgspec

from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import Raw, format_time
from pumice.api.podgroups import PodGroupStatus
from pumice.api.pods import PodCondition
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, Conflict, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import QueueFaults
from pumice.cluster.turns import first_segment
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import PodVerdict
from pumice.scheduler.worker.context import TermContext
from pumice.scheduler.worker.metrics import SchedulerMetrics

logger = logging.getLogger(__name__)


class WriteQueue:
    """Writes several objects at once, each by one write at a time; failed writes are repeated with growing delays."""

    def __init__(
        self,
        name: str,
        write: Callable[[str], Awaitable[None]],
        metrics: SchedulerMetrics,
        faults: QueueFaults[str],
        *,
        namespace_of: Callable[[str], str] = first_segment,
    ) -> None:
        """Create a queue; `run` must run.

        Args:
            name: Kind of the objects, in logs and metrics.
            write: Writes one object, by `namespace/name`.
            metrics: What is counted.
            faults: Reports objects whose write fails unexpectedly.
            namespace_of: The namespace of a key; namespaces take turns.
        """
        self._name = name
        self._write = write
        self._metrics = metrics
        self._queue: WorkQueue[str] = WorkQueue(name, namespace_of, shared=True, faults=faults)
        self._backoff = Backoff(base=0.2, cap=30.0, seed=name)
        self._failures: dict[str, int] = {}

    def add(self, key: str, seconds: float = 0.0) -> None:
        """Schedule the write of an object in this many seconds; an earlier time that is already scheduled is kept."""
        self._queue.add_after(key, seconds)

    def count(self, result: str) -> None:
        """Count a write by its result."""
        self._metrics.writes.labels(self._name, result).inc()

    async def run(self, workers: int) -> None:
        """Write until cancelled, several objects concurrently."""
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    async def _turn(self, key: str) -> float | None:
        try:
            await self._write(key)
        except ApiError as error:
            # A conflict is not an error: the watch will show the change, and the next turn uses it.
            level, result = logging.WARNING, "failed"
            if isinstance(error, Conflict):
                level, result = logging.DEBUG, "conflict"
            self.count(result)
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = self._backoff.delay(failures - 1, error.retry_after)
            logger.log(
                level, "writing %s of %s: %s; again in %.1f s", self._name, key, error, delay
            )
            return delay
        self._failures.pop(key, None)
        return None


class PodGroupStatuses:
    """Puts the statuses that the state assumes into a queue that writes them."""

    def __init__(self, context: TermContext) -> None:
        """Create a writer; its `queue` must run."""
        self._client = context.client
        self._assumed = context.state.assumed
        self._delay = context.state.delays.counts
        self.queue = WriteQueue(
            "podgroup",
            self._write,
            context.metrics,
            context.faults_of("PodGroup status", context.caches.pod_groups),
        )

    def put(self, keys: Iterable[str], urgent: Set[str]) -> None:
        """Have the assumed statuses of PodGroups written: urgent ones at once, while others wait, so that later changes are written with them."""
        for key in keys:
            self.queue.add(key, 0.0 if key in urgent else self._delay)

    async def _write(self, key: str) -> None:
        assumed = self._assumed.status_to_write(key)
        if assumed is None:
            return  # written, refused, or the PodGroup has changed
        namespace, _, name = key.partition("/")
        patch = {
            "metadata": {"uid": assumed.uid, "resourceVersion": assumed.version},
            "status": _status_patch(assumed.status),
        }
        try:
            written = await self._client.patch(
                POD_GROUP, name, namespace, patch, metadata_only=True
            )
        except NotFound:
            return
        self.queue.count("written")
        self._assumed.status_written(key, assumed, written["metadata"]["resourceVersion"])


def _status_patch(status: PodGroupStatus) -> Raw:
    """Every field of a status, null where it has its zero value, so that none is left over."""
    found: Raw = msgspec.to_builtins(status)
    return {name: found.get(name) for name in status.__struct_encode_fields__}


SCHEDULED = "PodScheduled"
"""Type of the condition that tells whether a pod has a place."""

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Merges a pod's conditions by type, so that those of others stay."""


class PodConditions:
    """Has `PodScheduled=False` written to pods that wait, by a queue, and tells their users."""

    def __init__(self, context: TermContext, is_binding: Callable[[str, str], bool]) -> None:
        """Create a writer; its `queue` must run. A pod that is binding has been given a place that is not confirmed yet."""
        self._client = context.client
        self._pods = context.caches.pods
        self._recorder = context.recorder
        self._clock = context.clock
        self._is_binding = is_binding
        self.queue = WriteQueue(
            "pod",
            self._write,
            context.metrics,
            context.faults_of("pod condition", context.caches.pods),
        )
        self._verdicts: dict[str, tuple[str, PodVerdict]] = {}  # each with the uid of its pod
        self._nominations: dict[str, tuple[str, str]] = {}

    def put(self, verdicts: Mapping[str, PodVerdict]) -> None:
        """Queue verdicts to be written, by `namespace/name` of the pod."""
        for key, verdict in verdicts.items():
            self._verdicts[key] = self._uid(key), verdict
            self.queue.add(key)

    def nominate(self, nominations: Mapping[str, str]) -> None:
        """Have nominated nodes written, by `namespace/name`; empty for none."""
        for key, node in nominations.items():
            self._nominations[key] = self._uid(key), node
            self.queue.add(key)

    async def _write(self, key: str) -> None:
        said, nominated = self._verdicts.get(key), self._nominations.get(key)
        uid = self._uid(key)
        with suppress(NotFound):
            await self._write_status(
                key,
                said[1] if said is not None and said[0] == uid else None,
                nominated[1] if nominated is not None and nominated[0] == uid else None,
            )
        if self._verdicts.get(key) is said:
            self._verdicts.pop(key, None)
        if self._nominations.get(key) is nominated:
            self._nominations.pop(key, None)

    def _uid(self, key: str) -> str:
        """Return the uid of the pod of this name as the watch shows it; empty if there is none."""
        pod = self._pods.named(key)
        return pod.metadata.uid if pod is not None else ""

    async def _write_status(self, key: str, verdict: PodVerdict | None, node: str | None) -> None:
        namespace, _, name = key.partition("/")
        pod = self._pods.named(key)
        if pod is None or pod.spec.node_name or self._is_binding(key, pod.metadata.uid):
            return  # what was decided is out of date
        conditions = pod.status.conditions or ()
        standing = next((each for each in conditions if each.type == SCHEDULED), None)
        status: Raw = {}
        if verdict is not None and not _says(standing, verdict):
            status["conditions"] = [self._condition(standing, verdict)]
        if node is not None and node != pod.status.nominated_node_name:
            status["nominatedNodeName"] = node or None
        if not status:
            return
        # The resourceVersion prevents a late condition on a pod that was bound meanwhile.
        patch = {"metadata": {"resourceVersion": pod.metadata.resource_version}, "status": status}
        await self._client.patch(
            POD,
            name,
            namespace,
            patch,
            content_type=STRATEGIC_PATCH,
            subresource="status",
            metadata_only=True,
        )
        self.queue.count("written")
        if (
            verdict is not None
            and "conditions" in status
            and verdict.reason == "Unschedulable"
            and verdict.is_new
        ):
            self._recorder.record(
                Reference.of(POD, pod.metadata), "Warning", "FailedScheduling", verdict.message
            )

    def _condition(self, standing: PodCondition | None, verdict: PodVerdict) -> Raw:
        if standing is not None and standing.status == "False":
            since = standing.last_transition_time
        else:
            since = format_time(self._clock.wall())
        return {
            "type": SCHEDULED,
            "status": "False",
            "reason": verdict.reason,
            "message": verdict.message,
            "lastTransitionTime": since,
        }


def _says(condition: PodCondition | None, verdict: PodVerdict) -> bool:
    return (
        condition is not None
        and condition.status == "False"
        and condition.reason == verdict.reason
        and condition.message == verdict.message
    )
