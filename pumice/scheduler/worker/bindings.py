"""Sending bindings to the API server.

The state assumes a decided binding at once; here it is sent to the API server. Just before, the pod, the node and the
Lease are checked again. If the request fails, the pod keeps its place for a growing delay and then waits again, so that
a failing server does not get the same request in every cycle. After a lost response the pod is read before the request
counts as failed.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, NotFound
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext
from pumice.scheduler.worker.gate_removals import open_gate
from pumice.scheduler.worker.pod_requests import Decision, PodRequests

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Binding(Decision):
    """One decided binding.

    Attributes:
        node: The pod's node.
        seen: The node as it was when decided.
        decided: When, by the monotonic clock.
        queue: Queue to which it is charged.
    """

    node: str
    seen: Node | None
    decided: float
    queue: str


class Binder(PodRequests[_Binding]):
    """Binds pods as cycles decide, several concurrently."""

    def __init__(self, context: TermContext) -> None:
        """Create a binder; `run` must run."""
        super().__init__(context, "bindings", Backoff(base=0.25, cap=30.0, seed="bindings"))
        self._nodes = context.caches.nodes

    def bind(self, binds: Mapping[str, str]) -> Mapping[str, Exception]:
        """Queue bindings, `namespace/pod` to node.

        Returns:
            Pods whose binding could not be queued, and why.
        """
        now = self._context.clock.monotonic()
        failed: dict[str, Exception] = {}
        for key, node in binds.items():
            try:
                pod = self._current(key)
                if pod is not None:  # otherwise it is gone, and so is its assumption
                    task = self._context.state.tasks.get(key)
                    queue = task.charge if task is not None else ""
                    self._decide(key, _Binding(pod, node, self._nodes.get(node), now, queue))
            except Exception as error:
                failed[key] = error
        return failed

    def is_binding(self, key: str, uid: str) -> bool:
        """Whether a pod has a place that the API server has not confirmed or refused yet."""
        decision = self._decisions.get(key)
        return decision is not None and decision.pod.metadata.uid == uid

    async def _carry_out(self, key: str, decision: _Binding) -> float | None:
        meta = decision.pod.metadata
        if not self._is_there(key, meta.uid):
            self._give_up(key, decision)
            return None
        if not self._context.leads():
            return NOT_LEADING_SECONDS
        now = self._nodes.get(decision.node)
        if why_unfit(decision.node, decision.seen, now) is not None:
            self._count("node")
            self._give_up(key, decision)
            return None
        current = self._current(key)
        try:
            if current is not None and current.spec.scheduling_gates:
                await open_gate(self._context, meta)
            charge = {keys.QUEUE: decision.queue} if decision.queue else None
            request = self._context.client.bind(
                meta.namespace, meta.name, decision.node, meta.uid, charge
            )
            await self._context.sent.send(request)
        except NotFound as error:
            self._count("gone")
            return self._failed(key, decision, error)
        except ApiError as error:
            if not await self._bound_after_all(key, decision):
                self._count("failed")
                return self._failed(key, decision, error)
        self._succeeded(key, decision)
        return None

    def _count(self, result: str) -> None:
        self._context.metrics.binds.labels(result).inc()

    def _succeeded(self, key: str, decision: _Binding) -> None:
        super()._succeeded(key, decision)
        context = self._context
        self._count("bound")
        try:
            context.metrics.bind_seconds.observe(context.clock.monotonic() - decision.decided)
            context.metrics.volcano.bound(decision.pod.metadata, context.clock.wall())
        except Exception:  # the pod is bound all the same
            logger.exception("the binding of %s cannot be counted", key)

    def _failed(self, key: str, decision: _Binding, error: Exception) -> float:
        self._context.metrics.volcano.attempts.labels("error").inc()
        delay = super()._failed(key, decision, error)
        logger.warning("binding %s to %s: %s; again in %.1f s", key, decision.node, error, delay)
        return delay

    def _give_up(self, key: str, decision: _Binding) -> None:
        """The pod has no place: it waits again, unless it is gone."""
        if not self._settle(key, decision):
            return  # a later pod of this name has been given a place meanwhile
        self._context.state.pods.forget(key, decision.pod.metadata.uid)
        self._context.wake()

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
        if self._is_there(key, meta.uid):  # otherwise it was deleted since it was read
            self._context.state.set_pod(pod)
        return True


def why_unfit(name: str, then: Node | None, now: Node | None) -> str | None:
    """Why a node takes no pods any more: it was deleted or cordoned since it was chosen; None if it was not."""
    if now is None or then is None or now.metadata.uid != then.metadata.uid:
        return f'node "{name}" has been deleted'
    if now.spec.unschedulable and not then.spec.unschedulable:
        return f'node "{name}" has been cordoned'
    return None
