"""Sending evictions to the API server.

The state assumes that an evicted pod is about to leave. When the API server refuses, most often because of a
PodDisruptionBudget, that is taken back at once, so that the next cycle can choose other pods. The refused pod is spared
(`SessionView.is_spared`) and not asked for again before a delay that grows with every refusal.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pumice.api.kinds import POD
from pumice.api.meta import ObjectMeta
from pumice.api.pods import Pod
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, Conflict, NotFound
from pumice.cluster.events import Reference
from pumice.scheduler import Event
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext
from pumice.scheduler.worker.pod_requests import Decision, PodRequests

logger = logging.getLogger(__name__)


_UNQUEUED_SECONDS = 60.0
"""For how long a pod is spared whose eviction could not even be queued."""


@dataclass(slots=True)
class _Eviction(Decision):
    """A decided eviction, or the delay after a refused one.

    Attributes:
        event: Event recorded for its owner after the eviction.
    """

    event: Event


def _evicted(pod: Pod) -> Event:
    meta = pod.metadata
    message = "Evicted to make room for others"
    return Event(POD.kind, meta.namespace, meta.name, "Normal", "Evict", message)


class Evictor(PodRequests[_Eviction]):
    """Evicts pods as cycles decide, a few concurrently."""

    def __init__(self, context: TermContext) -> None:
        """Create an evictor; `run` must run."""
        super().__init__(context, "evictions", Backoff(base=1.0, cap=300.0, seed="evictions"))

    def evict(
        self, keys: Iterable[str], events: Mapping[str, Event] = MappingProxyType({})
    ) -> None:
        """Queue evictions, by `namespace/name`, and events for the owners after them."""
        for key in keys:
            try:
                self._evict(key, events.get(key))
            except Exception as error:
                self._faults.failed(key, error, _UNQUEUED_SECONDS)
                if (task := self._context.state.tasks.get(key)) is not None:
                    until = self._context.clock.wall() + _UNQUEUED_SECONDS
                    self._context.state.pods.spare(key, task.uid, until)

    def _evict(self, key: str, event: Event | None) -> None:
        pod = self._current(key)
        if pod is None:
            return  # it is gone, and so is its assumption
        known = self._decisions.get(key)
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            if known.failed:
                self._context.state.pods.forget(key, pod.metadata.uid)
            return
        self._decide(key, _Eviction(pod, event or _evicted(pod)))

    async def _carry_out(self, key: str, decision: _Eviction) -> float | None:
        context = self._context
        if not context.leads():
            return NOT_LEADING_SECONDS
        meta = decision.pod.metadata
        try:
            await context.sent.send(context.client.evict(meta.namespace, meta.name, uid=meta.uid))
        except (NotFound, Conflict) as error:
            if not await self._is_gone(key, meta):
                return self._failed(key, decision, error)
            self._succeeded(key, decision)
            return None
        except ApiError as error:
            return self._failed(key, decision, error)
        self._succeeded(key, decision)
        context.metrics.evictions.labels("evicted").inc()
        event = decision.event
        context.recorder.record(Reference.of(POD, meta), event.type, event.reason, event.message)
        return None

    async def _is_gone(self, key: str, meta: ObjectMeta) -> bool:
        """True if the pod is gone, or another one has its name; the watch may not show it yet."""
        if not self._is_there(key, meta.uid):
            return True
        try:
            found = await self._context.client.get(POD, meta.name, meta.namespace)
        except NotFound:
            return True
        except ApiError:
            return False
        return str(found["metadata"]["uid"]) != meta.uid

    def _failed(self, key: str, decision: _Eviction, error: Exception) -> float:
        context, uid = self._context, decision.pod.metadata.uid
        context.metrics.evictions.labels("failed").inc()
        delay = super()._failed(key, decision, error)
        logger.warning("evicting %s: %s; not asked again for %.1f s", key, error, delay)
        context.state.pods.spare(key, uid, context.clock.wall() + delay)
        context.wake()
        return delay

    def _give_up(self, key: str, decision: _Eviction) -> None:
        """The delay has passed: the pod may be asked for again."""
        self._settle(key, decision)
        self._context.wake()
