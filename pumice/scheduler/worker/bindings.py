"""Carrying bindings out.

The state assumes a decided binding at once; here it is sent to the API server. Just before, the pod, the node and
the Lease are checked again. When the request fails the pod keeps its place for a growing delay and waits again
after it, so that a server in trouble is not asked the same thing every cycle. An answer that got lost is looked
up before it counts as a failure.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from pumice.api.kinds import POD
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.cluster.backoff import Backoff
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext

__all__ = ["Binder"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Binding:
    """One decided binding.

    Attributes:
        pod: The pod as it was when decided.
        node: Its node.
        seen: The node as it was when decided.
        decided: When, by the monotonic clock.
        failed: Whether it failed and waits for its delay to pass.
    """

    pod: Pod
    node: str
    seen: Node | None
    decided: float
    failed: bool = False


class Binder:
    """Binds what cycles decide, several at once."""

    def __init__(self, context: TermContext) -> None:
        """Make a binder; `run` must run."""
        self._context = context
        self._pods = context.caches.pods
        self._nodes = context.caches.nodes
        self._queue: WorkQueue[str] = WorkQueue("bindings")
        self._backoff = Backoff(base=0.25, cap=30.0, seed="bindings")
        self._bindings: dict[str, _Binding] = {}
        self._failures: dict[str, tuple[Pod, int]] = {}

    def bind(self, binds: Mapping[str, str]) -> None:
        """Have bindings carried out, `namespace/pod` to node."""
        now = self._context.clock.monotonic()
        for key, node in binds.items():
            namespace, _, name = key.partition("/")
            pod = self._pods.get(name, namespace)
            if pod is not None:  # otherwise it is gone, and so is its assumption
                self._bindings[key] = _Binding(pod, node, self._nodes.get(node), now)
                self._queue.add(key)

    def is_binding(self, key: str) -> bool:
        """Whether a pod has a place that the API server has not confirmed or refused yet."""
        return key in self._bindings

    async def run(self, workers: int) -> None:
        """Bind until cancelled, so many pods at once."""
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    async def _turn(self, key: str) -> float | None:
        binding = self._bindings.get(key)
        if binding is None:
            return None
        if binding.failed or not self._is_there(key, binding.pod):
            self._give_up(key, binding)
            return None
        if not self._context.leads():
            return NOT_LEADING_SECONDS
        if not self._takes_pods(binding):
            self._count("node")
            self._give_up(key, binding)
            return None
        meta = binding.pod.metadata
        request = self._context.client.bind(meta.namespace, meta.name, binding.node, meta.uid)
        try:
            await self._context.send(request)
        except NotFound as error:
            self._count("gone")
            return self._failed(key, binding, error)
        except ApiError as error:
            if not await self._bound_after_all(key, binding):
                self._count("failed")
                return self._failed(key, binding, error)
        self._confirmed(key, binding)
        return None

    def _is_there(self, key: str, pod: Pod) -> bool:
        """Whether the watch still shows the pod."""
        namespace, _, name = key.partition("/")
        current = self._pods.get(name, namespace)
        return current is not None and current.metadata.uid == pod.metadata.uid

    def _takes_pods(self, binding: _Binding) -> bool:
        """Whether the node is as good as when it was chosen: neither removed nor cordoned meanwhile."""
        now, then = self._nodes.get(binding.node), binding.seen
        if now is None or then is None or now.metadata.uid != then.metadata.uid:
            return False
        return then.spec.unschedulable or not now.spec.unschedulable

    def _count(self, result: str) -> None:
        self._context.metrics.binds.labels(result).inc()

    def _confirmed(self, key: str, binding: _Binding) -> None:
        context = self._context
        self._count("bound")
        context.metrics.bind_seconds.observe(context.clock.monotonic() - binding.decided)
        context.metrics.volcano.bound(binding.pod.metadata, context.clock.wall())
        self._failures.pop(key, None)
        self._settle(key, binding)

    def _failed(self, key: str, binding: _Binding, error: ApiError) -> float:
        self._context.metrics.volcano.attempts.labels("error").inc()
        # Failures of pods that are gone are forgotten here, with those of earlier pods of the same name.
        known = {
            each: found for each, found in self._failures.items() if self._is_there(each, found[0])
        }
        failures = known.get(key, (binding.pod, 0))[1] + 1
        self._failures = known | {key: (binding.pod, failures)}
        delay = self._backoff.delay(failures - 1, error.retry_after)
        logger.warning("binding %s to %s: %s; again in %.1f s", key, binding.node, error, delay)
        binding.failed = True
        return delay

    def _give_up(self, key: str, binding: _Binding) -> None:
        """The pod has no place: it waits again, unless it is gone."""
        if not self._settle(key, binding):
            return  # a later pod of this name has been given a place meanwhile
        self._context.state.forget(key, binding.pod.metadata.uid)
        self._context.wake()

    def _settle(self, key: str, binding: _Binding) -> bool:
        if self._bindings.get(key) is not binding:
            return False
        del self._bindings[key]
        return True

    async def _bound_after_all(self, key: str, binding: _Binding) -> bool:
        """Whether the pod has a node, although the answer was a refusal or none at all."""
        meta = binding.pod.metadata
        try:
            found = await self._context.client.get(POD, meta.name, meta.namespace)
            pod = msgspec.convert(found, Pod)
        except (ApiError, msgspec.ValidationError):
            return False
        if pod.metadata.uid != meta.uid or not pod.spec.node_name:
            return False
        if pod.spec.node_name != binding.node:
            logger.warning("%s runs on %s: another scheduler bound it", key, pod.spec.node_name)
            binding.node = pod.spec.node_name
        if self._is_there(key, pod):  # otherwise it was deleted since it was read
            self._context.state.set_pod(pod)
        return True
