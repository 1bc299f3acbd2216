"""Binding of claims before the pods that mount them.

What a cycle decides about the pods of one gang belongs together: if a claim of one of them has to be bound first, all of
them wait until all such claims are. For a claim that is to get a volume that exists, the volume's `claimRef` is written; for
one that a volume is to be made for, the annotation with the selected node. The controllers of the cluster then bind the
claim, which shows in the watch. When that fails or takes too long, what was written is taken back, the pods are forgotten,
and the gang waits for a delay that grows with each failure, in which others may use what it held.

None of this is stored: a later process takes claims in the state in which it finds them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any

from pumice.api.meta import ObjectMeta
from pumice.api.volumes import PersistentVolume
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, Conflict
from pumice.cluster.subscribers import Subscriber
from pumice.cluster.turns import Slots, first_segment
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import Reason
from pumice.scheduler.model.claim_choices import VolumeChoice
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.claim_checks import ClaimBatch, ClaimChecks
from pumice.scheduler.worker.claim_writes import BindingError, ClaimWriter
from pumice.scheduler.worker.context import NOT_LEADING_SECONDS, TermContext

logger = logging.getLogger(__name__)

_AT_ONCE = 16
"""Claims of one gang that are written at once, and gangs of one namespace whose claims are."""
_CONFLICT_SECONDS = 0.2
"""How long a write waits for the watch when an object was not as it was last shown."""


class ClaimBinder:
    """Binds claims, and then passes their pods on for binding."""

    def __init__(
        self,
        context: TermContext,
        binder: Binder,
        timeout: Callable[[], float | None],
        concurrent: int,
    ) -> None:
        """Create a binder; `run` must run, within `watching`.

        Args:
            context: What the leadership works with.
            binder: Binds pods whose claims are bound.
            timeout: Seconds that the claims of a gang may take; None where they are not looked at.
            concurrent: Writes under way at once, and gangs; namespaces take turns.
        """
        self._context = context
        self._binder = binder
        self._timeout = timeout
        self._checks = ClaimChecks(context, timeout)
        self._writer = ClaimWriter(context)
        self._concurrent = concurrent
        self._slots = Slots(concurrent)
        self._faults = context.faults_of("claims", context.caches.pod_groups)
        self._queue: WorkQueue[tuple[str, int]] = WorkQueue(
            "claims", itemgetter(0), of_one=_AT_ONCE
        )
        self._released: WorkQueue[str] = WorkQueue(
            "gangs whose claims were not bound", first_segment
        )
        self._backoff = Backoff(base=1.0, cap=300.0, seed="claims")
        self._requests = Backoff(base=0.25, cap=30.0, seed="claims taken back")
        self._batches: dict[int, ClaimBatch] = {}
        self._of_claim: dict[str, set[int]] = {}
        self._of_pod: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._tries: dict[int, int] = {}
        self._next = 0

    def bind(self, binds: Mapping[str, str]) -> None:
        """Have the bindings of a cycle carried out, `namespace/pod` to node: at once, or when the gang's claims are bound."""
        try:
            self._bind_gangs(binds)
        except Exception as error:
            self._undo(binds, error)

    def _bind_gangs(self, binds: Mapping[str, str]) -> None:
        state = self._context.state
        self._wake_for_pods()
        if not state.claims.choices.by_claim and not self._batches:
            self._pass_on(binds)
            return
        gangs: dict[str, dict[str, str]] = {}
        for key, node in binds.items():
            gangs.setdefault(self._gang_of(key), {})[key] = node
        for gang, pods in gangs.items():
            try:
                self._begin_for(gang, pods)
            except Exception as error:
                self._unexpected(gang, pods, error)

    def _begin_for(self, gang: str, pods: dict[str, str]) -> None:
        state = self._context.state
        tasks = [state.tasks[key] for key in pods if key in state.tasks]
        claims = state.claims.choices.of(key for task in tasks for key in task.shape.claims)
        whole = self._needed_by(gang)
        if claims or whole:
            uids = {task.key: task.uid for task in tasks}
            self._begin(gang, {key: pods[key] for key in uids}, uids, claims, whole)
        else:
            self._pass_on(pods)

    def _undo(self, binds: Iterable[str], error: Exception) -> None:
        """Let the gangs wait of those pods that nothing will bind, because what was decided could not be begun as a whole."""
        tasks = self._context.state.tasks
        gangs: dict[str, list[str]] = {}
        for key in binds:
            task = tasks.get(key)
            if task is None:
                continue
            if self.is_binding(key, task.uid) or self._binder.is_binding(key, task.uid):
                continue
            gangs.setdefault(task.job or key, []).append(key)
        for gang, pods in gangs.items():
            self._unexpected(gang, pods, error)

    def _pass_on(self, binds: Mapping[str, str]) -> None:
        """Have pods bound whose claims are bound."""
        failed = self._binder.bind(binds)
        if not failed and not self._failures:
            return
        gangs = {key: self._gang_of(key) for key in binds}
        for key, error in failed.items():
            self._unexpected(gangs[key], [key], error)
        for gang in set(gangs.values()) - {gangs[key] for key in failed}:
            if self._failures.pop(gang, None) is not None:
                self._faults.passed(gang)

    def _gang_of(self, pod: str) -> str:
        task = self._context.state.tasks.get(pod)
        return (task.job if task is not None else "") or pod

    def _unexpected(self, gang: str, pods: Iterable[str], error: Exception) -> None:
        """Let a gang wait for whose pods a binding could not be begun."""
        tasks = self._context.state.tasks
        uids = {key: tasks[key].uid for key in pods if key in tasks}
        delay = self._wait(gang, uids, "SchedulingError", f"{type(error).__name__}: {error}")
        self._faults.failed(gang, error, delay)

    def is_binding(self, key: str, uid: str) -> bool:
        """Whether a pod waits for claims to be bound."""
        number = self._of_pod.get(key)
        return number is not None and self._batches[number].uids.get(key) == uid

    async def run(self) -> None:
        """Bind claims until cancelled, for several gangs concurrently."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._queue.work(self._turn, self._concurrent))
                group.create_task(self._released.work(self._release))
        finally:
            self._queue.close()
            self._released.close()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Follow claims and volumes for as long as the block lasts."""
        caches = self._context.caches
        ends = [
            await caches.claims.replay(_changes(self._claim_changed)),
            await caches.volumes.replay(_changes(self._volume_changed)),
        ]
        try:
            yield
        finally:
            for end in ends:
                end()

    # -- what is under way -------------------------------------------------------------------

    def _needed_by(self, gang: str) -> int:
        """The batch under way without whose pods a gang has less than its minimum; 0 for none.

        What is decided later about such a gang belongs to this batch: the gang must not be left with these pods alone.
        """
        numbers = [number for number, batch in self._batches.items() if batch.gang == gang]
        job = self._context.state.jobs.get(gang)
        if not numbers or job is None:
            return 0
        waiting = sum(len(self._batches[number].binds) for number in numbers)
        return numbers[0] if job.ready - waiting < job.min_member else 0

    def _begin(
        self,
        gang: str,
        binds: dict[str, str],
        uids: dict[str, str],
        claims: dict[str, VolumeChoice],
        whole: int,
    ) -> None:
        known = ((key, self._checks.claim(key)) for key in claims)
        claim_uids = {key: claim.metadata.uid for key, claim in known if claim is not None}
        nodes = {node: self._context.caches.nodes.get(node) for node in binds.values()}
        due = self._context.clock.monotonic() + (self._timeout() or 0.0)
        if whole:
            number, batch = whole, self._batches[whole]
            for key in binds:
                if batch.uids.get(key, uids[key]) != uids[key]:
                    batch.failure = f'pod "{key.partition("/")[2]}" has been deleted'
            batch.binds |= binds
            batch.uids |= uids
            batch.nodes = nodes | batch.nodes
            batch.claims = claims | batch.claims  # what has been written is known to the first
            batch.claim_uids = claim_uids | batch.claim_uids
        else:
            number = self._next = self._next + 1
            self._batches[number] = ClaimBatch(
                gang, binds, uids, nodes, claims, claim_uids, due, self._checks.restores
            )
        for key in claims:
            self._of_claim.setdefault(key, set()).add(number)
        for key in binds:
            self._of_pod[key] = number
        self._look_at(number)

    def _end(self, number: int) -> None:
        batch = self._batches.pop(number)
        self._tries.pop(number, None)
        for key in batch.claims:
            self._of_claim[key].discard(number)
            if not self._of_claim[key]:
                del self._of_claim[key]
        for key in batch.binds:
            if self._of_pod.get(key) == number:
                del self._of_pod[key]

    def _claim_changed(self, meta: ObjectMeta, _obj: object) -> None:
        self._wake(self._of_claim.get(meta.key, ()))

    def _volume_changed(self, _meta: ObjectMeta, volume: PersistentVolume) -> None:
        owner = volume.spec.claim_ref
        if owner is not None and self._of_claim:
            self._wake(self._of_claim.get(f"{owner.namespace}/{owner.name}", ()))

    def _wake_for_pods(self) -> None:
        """Have another look at gangs of which a pod has gone or is terminating, or whose node takes no pods any more."""
        for key, number in self._of_pod.items():
            try:
                is_due = self._is_due(key, self._batches[number])
            except Exception:
                is_due = True  # the look at it finds the same, and sets the gang aside
            if is_due:
                self._look_at(number)

    def _is_due(self, key: str, batch: ClaimBatch) -> bool:
        task = self._context.state.tasks.get(key)
        if task is None or task.status is not SchedulingStatus.BINDING:
            return True
        return self._checks.why_unfit(batch, task.node) is not None

    def _wake(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        self._queue.add((first_segment(self._batches[number].gang), number))

    # -- a turn ------------------------------------------------------------------------------

    async def _turn(self, key: tuple[str, int]) -> float | None:
        number = key[1]
        batch = self._batches.get(number)
        if batch is None:
            return None
        if not self._context.leads():
            return NOT_LEADING_SECONDS
        if batch.failure is None:
            try:
                await self._write(batch)
                if self._checks.are_bound(batch):
                    self._succeeded(number, batch)
                    return None
            except Conflict:
                if batch.due > self._context.clock.monotonic():
                    return _CONFLICT_SECONDS  # the watch is about to show what has changed
                batch.failure = self._checks.why_late(batch)
            except (BindingError, ApiError) as error:
                batch.failure = str(error)
            except Exception as error:
                pause = self._backoff.delay(self._failures.get(batch.gang, 0))
                self._faults.failed(batch.gang, error, pause)
                batch.failure = f"unexpected error: {type(error).__name__}: {error}"
            else:
                left = batch.due - self._context.clock.monotonic()
                if left > 0:
                    return left
                batch.failure = self._checks.why_late(batch)
            logger.warning("claims of %s: %s", batch.gang, batch.failure)
        try:
            await self._take_back(batch)
        except Exception as error:
            tries = self._tries[number] = self._tries.get(number, 0) + 1
            delay = self._requests.delay(tries - 1, getattr(error, "retry_after", None))
            if not isinstance(error, ApiError):
                self._faults.failed(batch.gang, error, delay)
                return delay
            logger.warning("claims of %s: %s; again in %.1f s", batch.gang, error, delay)
            return delay
        self._end(number)
        self._wait(batch.gang, batch.uids, "VolumeBindingFailed", str(batch.failure))
        return None

    def _succeeded(self, number: int, batch: ClaimBatch) -> None:
        self._failures.pop(batch.gang, None)
        self._faults.passed(batch.gang)
        self._end(number)
        try:
            self._pass_on(batch.binds)
        except Exception as error:
            self._undo(batch.binds, error)

    def _wait(self, gang: str, uids: Mapping[str, str], reason: str, why: str) -> float:
        """Forget pods of a gang that have no place after all, and try the gang again after a pause, which is returned.

        Args:
            gang: Its key.
            uids: The pods, each with its uid.
            reason: Why it waits, in one word.
            why: Why it waits.
        """
        context = self._context
        known = {key: count for key, count in self._failures.items() if key in context.state.jobs}
        failures = known.get(gang, 0) + 1
        self._failures = known | {gang: failures}
        delay = self._backoff.delay(failures - 1)
        message = f"{why}; the gang is tried again in {delay:.0f} s"
        for key, uid in uids.items():
            context.state.pods.forget(key, uid)
        if gang in context.state.jobs:
            context.state.gangs.quarantine(gang, Reason(reason, message))
            self._released.add_after(gang, delay)
        if failures == 1:
            context.warn_owner(gang, reason, message)
        context.wake()
        return delay

    async def _release(self, gang: str) -> None:
        if self._context.state.gangs.release(gang):
            self._context.wake()

    # -- writing -----------------------------------------------------------------------------

    async def _write(self, batch: ClaimBatch) -> None:
        """Write what is to be for each claim that waits, once.

        Raises:
            BindingError: An object is not as it was when it was chosen.
            ApiError: The API server refused a write.
        """
        todo = [key for key in sorted(batch.claims) if key not in batch.written]
        for start in range(0, len(todo), _AT_ONCE):
            some = todo[start : start + _AT_ONCE]
            writes = [self._write_one(batch, key) for key in some]
            for result in await asyncio.gather(*writes, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _write_one(self, batch: ClaimBatch, key: str) -> None:
        async with self._slots.slot(first_segment(key)):
            await self._writer.write(key, batch.claims[key], batch.written)

    async def _take_back(self, batch: ClaimBatch) -> None:
        """Take back what has been written for claims that are not bound.

        Raises:
            ApiError: The API server refused a write; it is to be repeated.
        """
        for key in sorted(batch.written):
            async with self._slots.slot(first_segment(key)):
                await self._writer.take_back(key, batch.claims[key], batch.claim_uids.get(key, ""))
            del batch.written[key]


def _changes(follow: Callable[[ObjectMeta, Any], None]) -> Subscriber[Any]:
    def report(old: Any, new: Any) -> None:
        follow((new or old).metadata, new or old)

    return report
