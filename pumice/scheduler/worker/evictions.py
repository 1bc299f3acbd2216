"""Carrying evictions out.

The state assumes that an evicted pod is about to leave. When the API server refuses, most often because of a
PodDisruptionBudget, that is taken back at once, so that the next cycle can choose other pods; the refused pod is
not asked for again before a delay that grows with every refusal.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pumice.api.kinds import POD
from pumice.api.pods import Pod
from pumice.cluster.backoff import Backoff
from pumice.cluster.errors import ApiError, Conflict, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import Event
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext

__all__ = ["Evictor"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Eviction:
    """A decided eviction, or the delay after a refused one.

    Attributes:
        pod: The pod as it was when decided.
        event: What its owner is told once it is evicted.
        refused: Whether it was refused and its delay has not passed.
    """

    pod: Pod
    event: Event
    refused: bool = False


def _evicted(pod: Pod) -> Event:
    meta = pod.metadata
    message = "Evicted to make room for others"
    return Event(POD.kind, meta.namespace, meta.name, "Normal", "Evict", message)


class Evictor:
    """Evicts what cycles decide, a few at once."""

    def __init__(self, context: TermContext) -> None:
        """Make an evictor; `run` must run."""
        self._context = context
        self._pods = context.caches.pods
        self._queue: WorkQueue[str] = WorkQueue("evictions")
        self._backoff = Backoff(base=1.0, cap=300.0, seed="evictions")
        self._evictions: dict[str, _Eviction] = {}
        self._refusals: dict[str, tuple[str, int]] = {}

    def evict(
        self, keys: Iterable[str], events: Mapping[str, Event] = MappingProxyType({})
    ) -> None:
        """Have pods evicted, by `namespace/name`.

        Args:
            keys: The pods.
            events: What their owners are told once they are evicted, by pod.
        """
        for key in keys:
            pod = self._current(key)
            if pod is None:
                continue  # it is gone, and so is its assumption
            known = self._evictions.get(key)
            if known is not None and known.pod.metadata.uid == pod.metadata.uid:
                if known.refused:
                    self._context.state.forget(key, pod.metadata.uid)
                continue
            self._evictions[key] = _Eviction(pod, events.get(key) or _evicted(pod))
            self._queue.add(key)

    async def run(self, workers: int) -> None:
        """Evict until cancelled, so many pods at once."""
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    def _current(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        return self._pods.get(name, namespace)

    async def _turn(self, key: str) -> float | None:
        context, eviction = self._context, self._evictions.get(key)
        if eviction is None:
            return None
        if eviction.refused:
            del self._evictions[key]
            context.wake()  # it may be asked for again
            return None
        if not context.leads():
            return NOT_LEADING_SECONDS
        meta = eviction.pod.metadata
        try:
            await context.send(context.client.evict(meta.namespace, meta.name, uid=meta.uid))
        except (NotFound, Conflict) as error:
            current = self._current(key)
            if current is not None and current.metadata.uid == meta.uid:
                return self._refused(key, eviction, error)
            self._end(key, eviction)  # the pod is gone, or another one has its name
            return None
        except ApiError as error:
            return self._refused(key, eviction, error)
        self._end(key, eviction)
        context.metrics.evictions.labels("evicted").inc()
        event = eviction.event
        context.recorder.record(Reference.of(POD, meta), event.type, event.reason, event.message)
        return None

    def _end(self, key: str, eviction: _Eviction) -> None:
        self._refusals.pop(key, None)
        if self._evictions.get(key) is eviction:
            del self._evictions[key]

    def _refused(self, key: str, eviction: _Eviction, error: ApiError) -> float:
        context, uid = self._context, eviction.pod.metadata.uid
        context.metrics.evictions.labels("failed").inc()
        self._drop_old_refusals()
        known, count = self._refusals.get(key, (uid, 0))
        count = count + 1 if known == uid else 1
        self._refusals[key] = uid, count
        delay = self._backoff.delay(count - 1, error.retry_after)
        logger.warning("evicting %s: %s; not asked again for %.1f s", key, error, delay)
        eviction.refused = True
        context.state.forget(key, uid)
        context.wake()
        return delay

    def _drop_old_refusals(self) -> None:
        """Forget refusals of pods that are gone."""
        for key, (uid, _) in list(self._refusals.items()):
            pod = self._current(key)
            if pod is None or pod.metadata.uid != uid:
                del self._refusals[key]
