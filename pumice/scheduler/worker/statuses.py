"""Writing what cycles found out: PodGroup statuses and the conditions of pods that wait.

Only the newest finding about an object counts. While one is being written the next one waits, so that
writes of one object never overtake each other, and what failed is written again after a delay.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import Raw, format_time
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod, PodCondition
from pumice.cluster.backoff import Backoff
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.errors import ApiError, Conflict, NotFound
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import PodVerdict
from pumice.scheduler.worker.metrics import SchedulerMetrics

__all__ = ["PodConditions", "PodGroupStatuses"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

SCHEDULED = "PodScheduled"
"""Type of the condition that tells whether a pod has a place."""

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Merges a pod's conditions by type, so that those of others stay."""

STALE_SECONDS = 0.1
"""How long to wait for the watch after a write that was based on an old picture."""


class _Newest(Generic[T]):
    """Writes the newest finding about each object, several objects at once."""

    def __init__(
        self,
        name: str,
        write: Callable[[str, T], Awaitable[bool]],
        metrics: SchedulerMetrics,
    ) -> None:
        """Make a writer.

        Args:
            name: Kind of the findings, in logs and metrics.
            write: Writes one; answers whether it is done with, otherwise it is written again.
            metrics: What is counted.
        """
        self._name = name
        self._write = write
        self._metrics = metrics
        self._queue: WorkQueue[str] = WorkQueue(name)
        self._backoff = Backoff(base=0.2, cap=30.0, seed=name)
        self._found: dict[str, T] = {}
        self._failures: dict[str, int] = {}

    def put(self, key: str, finding: T) -> None:
        self._found[key] = finding
        self._queue.add(key)

    async def run(self, workers: int) -> None:
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    async def _turn(self, key: str) -> float | None:
        finding = self._found.get(key)
        if finding is None:
            return None
        try:
            done = await self._write(key, finding)
        except ApiError as error:
            self._metrics.writes.labels(self._name, "failed").inc()
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = self._backoff.delay(failures - 1)
            logger.warning("writing %s of %s: %s; again in %.1f s", self._name, key, error, delay)
            return delay
        if not done:
            return STALE_SECONDS
        self._failures.pop(key, None)
        if self._found.get(key) is finding:
            del self._found[key]
        return None


@dataclass(frozen=True, slots=True)
class _Status:
    """A status, and the group that it is meant for."""

    uid: str
    status: PodGroupStatus


class PodGroupStatuses:
    """Writes statuses of PodGroups."""

    def __init__(
        self, client: Client, groups: WatchCache[PodGroup], metrics: SchedulerMetrics
    ) -> None:
        """Make a writer; `run` must run."""
        self._client = client
        self._groups = groups
        self._metrics = metrics
        self._newest: _Newest[_Status] = _Newest("podgroup", self._write, metrics)

    def put(self, statuses: Mapping[str, PodGroupStatus]) -> None:
        """Have statuses written, by `namespace/name`."""
        for key, status in statuses.items():
            group = self._group(key)
            if group is not None:
                self._newest.put(key, _Status(group.metadata.uid, status))

    async def run(self, workers: int) -> None:
        """Write until cancelled."""
        await self._newest.run(workers)

    async def _write(self, key: str, found: _Status) -> bool:
        group = self._group(key)
        if group is None or group.metadata.uid != found.uid:
            return True  # a later group of the same name has a status of its own
        meta = group.metadata
        patch = {"metadata": {"uid": found.uid}, "status": _status_patch(found.status)}
        try:
            await self._client.patch(POD_GROUP, meta.name, meta.namespace, patch)
        except NotFound:
            return True
        except Conflict:
            return False
        self._metrics.writes.labels("podgroup", "written").inc()
        return True

    def _group(self, key: str) -> PodGroup | None:
        namespace, _, name = key.partition("/")
        return self._groups.get(name, namespace)


def _status_patch(status: PodGroupStatus) -> Raw:
    """Every field of a status, null where it has its zero value, so that none is left over."""
    found: Raw = msgspec.to_builtins(status)
    return {name: found.get(name) for name in status.__struct_encode_fields__}


class PodConditions:
    """Writes `PodScheduled=False` to pods that wait, and tells their users."""

    def __init__(
        self,
        client: Client,
        pods: WatchCache[Pod],
        recorder: EventRecorder,
        metrics: SchedulerMetrics,
        *,
        clock: Clock,
        is_binding: Callable[[str], bool],
    ) -> None:
        """Make a writer; `run` must run.

        Args:
            client: Session with the API server.
            pods: The pods as the API server last told.
            recorder: Where users are told.
            metrics: What is counted.
            clock: Tells the time of a transition.
            is_binding: Whether a pod has been given a place that is not confirmed yet.
        """
        self._client = client
        self._pods = pods
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._is_binding = is_binding
        self._newest: _Newest[PodVerdict] = _Newest("pod", self._write, metrics)

    def put(self, verdicts: Mapping[str, PodVerdict]) -> None:
        """Have verdicts written, by `namespace/name`."""
        for key, verdict in verdicts.items():
            self._newest.put(key, verdict)

    async def run(self, workers: int) -> None:
        """Write until cancelled."""
        await self._newest.run(workers)

    async def _write(self, key: str, verdict: PodVerdict) -> bool:
        namespace, _, name = key.partition("/")
        pod = self._pods.get(name, namespace)
        if pod is None or pod.spec.node_name or self._is_binding(key):
            return True  # the verdict is out of date
        conditions = pod.status.conditions or ()
        standing = next((each for each in conditions if each.type == SCHEDULED), None)
        if _says(standing, verdict):
            return True
        # The resourceVersion keeps a late verdict off a pod that has been bound meanwhile.
        patch = {
            "metadata": {"resourceVersion": pod.metadata.resource_version},
            "status": {"conditions": [self._condition(standing, verdict)]},
        }
        try:
            await self._client.patch(
                POD, name, namespace, patch, content_type=STRATEGIC_PATCH, subresource="status"
            )
        except NotFound:
            return True
        except Conflict:
            return False
        self._metrics.writes.labels("pod", "written").inc()
        if verdict.reason == "Unschedulable":
            self._recorder.record(
                Reference.of(POD, pod.metadata), "Warning", "FailedScheduling", verdict.message
            )
        return True

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
