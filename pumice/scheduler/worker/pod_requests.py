"""Shared by bindings and evictions: one request for each pod, several pods concurrently, delays after failures."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Generic, TypeVar

from pumice.api.pods import Pod
from pumice.cluster.clock import Backoff
from pumice.cluster.turns import first_segment
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler.worker.context import TermContext


@dataclass(slots=True)
class Decision:
    """What a cycle decided about a pod.

    Attributes:
        pod: The pod as it was when decided.
        failed: Whether the request failed and its delay has not passed.
    """

    pod: Pod
    _: KW_ONLY
    failed: bool = False


D = TypeVar("D", bound=Decision)


class PodRequests(ABC, Generic[D]):
    """Sends the requests that cycles decide on, by `namespace/name` of their pods."""

    def __init__(self, context: TermContext, name: str, backoff: Backoff) -> None:
        """Create a sender with a delay after each failure; `run` must run."""
        self._context = context
        self._pods = context.caches.pods
        self._faults = context.faults_of(name, context.caches.pods)
        self._queue: WorkQueue[str] = WorkQueue(
            name, first_segment, shared=True, faults=self._faults
        )
        self._backoff = backoff
        self._decisions: dict[str, D] = {}
        self._failures: dict[str, tuple[str, int]] = {}

    async def run(self, workers: int) -> None:
        """Send requests until cancelled, several concurrently."""
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    @abstractmethod
    async def _carry_out(self, key: str, decision: D) -> float | None:
        """Send the request of a decision; return after how many seconds it has another turn, None for never."""

    @abstractmethod
    def _give_up(self, key: str, decision: D) -> None:
        """End a decision that was not carried out."""

    async def _turn(self, key: str) -> float | None:
        decision = self._decisions.get(key)
        if decision is None:
            return None
        if decision.failed:
            self._give_up(key, decision)
            return None
        try:
            return await self._carry_out(key, decision)
        except Exception as error:
            delay = self._failed(key, decision, error)
            self._faults.failed(key, error, delay)
            return delay

    def _decide(self, key: str, decision: D) -> None:
        self._decisions[key] = decision
        self._queue.add(key)

    def _current(self, key: str) -> Pod | None:
        """The pod of this name as the watch shows it."""
        return self._pods.named(key)

    def _is_there(self, key: str, uid: str) -> bool:
        """True if the watch cache still has the pod with this uid."""
        current = self._current(key)
        return current is not None and current.metadata.uid == uid

    def _failed(self, key: str, decision: D, error: Exception) -> float:
        """Note a failure; return for how many seconds nothing is asked about the pod."""
        # Drop failures of removed pods, and those of earlier pods with the same name.
        known = {
            each: found for each, found in self._failures.items() if self._is_there(each, found[0])
        }
        uid = decision.pod.metadata.uid
        count = known.get(key, (uid, 0))[1] + 1
        self._failures = known | {key: (uid, count)}
        decision.failed = True
        return self._backoff.delay(count - 1, getattr(error, "retry_after", None))

    def _succeeded(self, key: str, decision: D) -> None:
        if self._failures.pop(key, None) is not None:
            self._faults.passed(key)
        self._settle(key, decision)

    def _settle(self, key: str, decision: D) -> bool:
        """End a decision; return False if a later one about a pod of this name has replaced it."""
        if self._decisions.get(key) is not decision:
            return False
        del self._decisions[key]
        return True
