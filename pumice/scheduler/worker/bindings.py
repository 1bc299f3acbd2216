"""Carrying bindings out.

The state assumes a decided binding at once; here it is asked of the API server. When that fails the
pod keeps its place for a growing delay and waits again after it, so that a server in trouble is not
asked the same thing every cycle. An answer that got lost is looked up before it counts as a failure.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from pumice.api.kinds import POD
from pumice.api.pods import Pod
from pumice.cluster.backoff import Backoff
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import ClusterState
from pumice.scheduler.worker.metrics import SchedulerMetrics

__all__ = ["Binder"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Binding:
    """One decided binding.

    Attributes:
        pod: The pod as it was when decided.
        node: Its node.
        decided: When, by the monotonic clock.
        failed: Whether it failed and waits for its delay to pass.
    """

    pod: Pod
    node: str
    decided: float
    failed: bool = False


class Binder:
    """Binds what cycles decide, several at once."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        pods: WatchCache[Pod],
        recorder: EventRecorder,
        metrics: SchedulerMetrics,
        *,
        clock: Clock,
        wake: Callable[[], None],
        workers: int,
    ) -> None:
        """Make a binder; `run` must run.

        Args:
            client: Session with the API server.
            state: Assumes bindings, and is told of those that failed.
            pods: The pods as the API server last told.
            recorder: Where users are told of bindings.
            metrics: What is counted.
            clock: Measures.
            wake: Asks for a cycle.
            workers: Bindings under way at once.
        """
        self._client = client
        self._state = state
        self._pods = pods
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._wake = wake
        self._workers = workers
        self._queue: WorkQueue[str] = WorkQueue("bindings")
        self._backoff = Backoff(base=0.25, cap=30.0, seed="bindings")
        self._bindings: dict[str, _Binding] = {}
        self._failures: dict[str, int] = {}

    def bind(self, binds: Mapping[str, str]) -> None:
        """Have bindings carried out, `namespace/pod` to node."""
        now = self._clock.monotonic()
        for key, node in binds.items():
            namespace, _, name = key.partition("/")
            pod = self._pods.get(name, namespace)
            if pod is not None:  # otherwise it is gone, and the state is told of that
                self._bindings[key] = _Binding(pod, node, now)
                self._queue.add(key)

    def is_binding(self, key: str) -> bool:
        """Whether a pod has a place that the API server has not confirmed or refused yet."""
        return key in self._bindings

    async def run(self) -> None:
        """Bind until cancelled."""
        try:
            await self._queue.work(self._turn, self._workers)
        finally:
            self._queue.close()

    async def _turn(self, key: str) -> float | None:
        binding = self._bindings.get(key)
        if binding is None:
            return None
        if binding.failed:
            self._give_up(key, binding)
            return None
        meta = binding.pod.metadata
        try:
            await self._client.bind(meta.namespace, meta.name, binding.node, meta.uid)
        except NotFound:
            self._metrics.binds.labels("gone").inc()
            self._give_up(key, binding)
            return None
        except ApiError as error:
            if not await self._bound_after_all(binding):
                self._metrics.binds.labels("failed").inc()
                return self._failed(key, binding, error)
        self._confirmed(key, binding)
        return None

    def _confirmed(self, key: str, binding: _Binding) -> None:
        self._metrics.binds.labels("bound").inc()
        self._metrics.bind_seconds.observe(self._clock.monotonic() - binding.decided)
        self._failures.pop(key, None)
        self._settle(key, binding)
        self._recorder.record(
            Reference.of(POD, binding.pod.metadata),
            "Normal",
            "Scheduled",
            f"Successfully assigned {key} to {binding.node}",
        )

    def _failed(self, key: str, binding: _Binding, error: ApiError) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures - 1)
        logger.warning("binding %s to %s: %s; again in %.1f s", key, binding.node, error, delay)
        binding.failed = True
        return delay

    def _give_up(self, key: str, binding: _Binding) -> None:
        """The pod has no place: it waits again, unless it is gone."""
        if not self._settle(key, binding):
            return  # a newer pod of this name has been given a place meanwhile
        meta = binding.pod.metadata
        current = self._pods.get(meta.name, meta.namespace)
        if current is None or current.metadata.uid != meta.uid:
            self._failures.pop(key, None)
        self._state.forget(meta.namespace, meta.name)
        self._wake()

    def _settle(self, key: str, binding: _Binding) -> bool:
        if self._bindings.get(key) is not binding:
            return False
        del self._bindings[key]
        return True

    async def _bound_after_all(self, binding: _Binding) -> bool:
        """Whether the pod has a node, although the answer was a refusal or none at all."""
        meta = binding.pod.metadata
        try:
            found = await self._client.get(POD, meta.name, meta.namespace)
            pod = msgspec.convert(found, Pod)
        except (ApiError, msgspec.ValidationError):
            return False
        if pod.metadata.uid != meta.uid or not pod.spec.node_name:
            return False
        if pod.spec.node_name != binding.node:
            logger.warning(
                "%s/%s runs on %s, where another scheduler put it",
                meta.namespace,
                meta.name,
                pod.spec.node_name,
            )
            binding.node = pod.spec.node_name
        self._state.set_pod(pod)
        return True
