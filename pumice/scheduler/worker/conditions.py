"""Writing the condition `PodScheduled` of pods that wait, and the node for which others were evicted for them.

Only the newest verdict about a pod is written, on the pod as the watch shows it. A verdict about an earlier pod of the same name is dropped.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from pumice.api.kinds import POD
from pumice.api.meta import Raw, format_time
from pumice.api.pods import PodCondition
from pumice.cluster.errors import NotFound
from pumice.cluster.events import Reference
from pumice.scheduler import PodVerdict
from pumice.scheduler.worker.context import TermContext
from pumice.scheduler.worker.writing import WriteQueue

__all__ = ["PodConditions"]

SCHEDULED = "PodScheduled"
"""Type of the condition that tells whether a pod has a place."""

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Merges a pod's conditions by type, so that those of others stay."""


class PodConditions:
    """Writes `PodScheduled=False` to pods that wait, and tells their users."""

    def __init__(self, context: TermContext, is_binding: Callable[[str, str], bool]) -> None:
        """Create a writer; `run` must run.

        Args:
            context: What the term works with.
            is_binding: Whether a pod, by `namespace/name` and uid, has been given a place that is not confirmed yet.
        """
        self._client = context.client
        self._pods = context.caches.pods
        self._recorder = context.recorder
        self._clock = context.clock
        self._is_binding = is_binding
        self._queue = WriteQueue(
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
            self._queue.add(key)

    def nominate(self, nominations: Mapping[str, str]) -> None:
        """Have nominated nodes written, by `namespace/name`; empty for none."""
        for key, node in nominations.items():
            self._nominations[key] = self._uid(key), node
            self._queue.add(key)

    async def run(self, workers: int) -> None:
        """Write until cancelled."""
        await self._queue.run(workers)

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
        namespace, _, name = key.partition("/")
        pod = self._pods.get(name, namespace)
        return pod.metadata.uid if pod is not None else ""

    async def _write_status(self, key: str, verdict: PodVerdict | None, node: str | None) -> None:
        namespace, _, name = key.partition("/")
        pod = self._pods.get(name, namespace)
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
        self._queue.count("written")
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
