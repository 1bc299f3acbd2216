"""Removal of the scheduling gate that holds a pod until its queue has room.

A pod with annotation `scheduling.volcano.sh/queue-allocation-gate: "true"` gets a gate of that name at admission, so that autoscalers
make no nodes for it. It goes when nothing but a node is missing, or just before the pod is bound. Pods with other gates keep it, and
no gate can be added to a pod that exists: so all that there are go, under the uid of the pod.
"""

import logging
from collections.abc import Iterable

from pumice.api.kinds import POD
from pumice.api.meta import ObjectMeta
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.set_aside import RetryTimers
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext
from pumice.scheduler.worker.pod_requests import Decision, PodRequests

logger = logging.getLogger(__name__)


async def open_gate(context: TermContext, meta: ObjectMeta) -> None:
    """Remove the gate of a pod.

    Raises:
        ApiError: The API server refuses; `Conflict` if another pod has its name.
    """
    patch = {"metadata": {"uid": meta.uid}, "spec": {"schedulingGates": None}}
    request = context.client.patch(POD, meta.name, meta.namespace, patch, metadata_only=True)
    await context.sent.send(request)


class GateOpener(PodRequests[Decision]):
    """Removes gates as cycles decide, several concurrently."""

    def __init__(self, context: TermContext) -> None:
        """Create an opener; `run` must run."""
        super().__init__(context, "gates", Backoff(base=0.5, cap=30.0, seed="gates"))
        self._unqueued: RetryTimers[str] = RetryTimers(self._paused)

    async def run(self, workers: int) -> None:
        """Send requests until cancelled, several concurrently."""
        try:
            await super().run(workers)
        finally:
            self._unqueued.close()

    def open(self, keys: Iterable[str]) -> None:
        """Have the gates of pods taken away, by `namespace/name`; cycles name a pod until its gate is gone."""
        for key in keys:
            if self._unqueued.waits(key):
                continue
            try:
                self._open(key)
            except Exception as error:
                self._faults.failed(key, error, self._unqueued.fail(key))
            else:
                if key in self._unqueued:
                    self._unqueued.drop(key)
                    self._faults.passed(key)

    def _paused(self, key: str) -> None:
        """The pause has passed: the next cycle names the pod again, if it is still there."""
        if self._current(key) is None:
            self._unqueued.drop(key)
        self._context.wake()

    def _open(self, key: str) -> None:
        pod = self._current(key)
        if pod is None or not pod.spec.scheduling_gates:
            return
        known = self._decisions.get(key)
        if known is None or known.pod.metadata.uid != pod.metadata.uid:
            self._decide(key, Decision(pod))

    async def _carry_out(self, key: str, decision: Decision) -> float | None:
        if not self._context.leads():
            return NOT_LEADING_SECONDS
        try:
            await open_gate(self._context, decision.pod.metadata)
        except NotFound:
            self._settle(key, decision)
        except ApiError as error:
            delay = self._failed(key, decision, error)
            logger.warning("taking the gate of %s away: %s; again in %.1f s", key, error, delay)
            return delay
        else:
            self._succeeded(key, decision)
        return None

    def _give_up(self, key: str, decision: Decision) -> None:
        """The delay has passed: the next cycle names the pod again."""
        self._settle(key, decision)
        self._context.wake()
