"""Base of all controllers except the Job's: a queue of keys, a plan for each key, and the executor.

A pass looks at one object in the caches, makes a plan for it by a pure function, and carries the plan out. It waits
until the caches show the writes of the pass before. State between passes only saves work; all of it may be lost at any
time.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pumice.api.kinds import Kind
from pumice.api.meta import Raw
from pumice.cluster.backoff import Backoff
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.events import Reference
from pumice.cluster.sent import SentRequests
from pumice.cluster.workqueue import WorkQueue
from pumice.controller.loop.execution import OUTAGE_SECONDS, Executor
from pumice.controller.loop.own_writes import OwnWrites
from pumice.controller.loop.process import ControllerProcess
from pumice.controller.loop.resync import resync
from pumice.controller.loop.steps import PlanOutcome
from pumice.controller.plan import Plan, RecordEvent, Step

__all__ = ["UNEXPECTED", "PlannedObject", "PlannedTerm"]

K = TypeVar("K", bound=Hashable)

_FINDS_SECONDS = 1.0

UNEXPECTED = "ReconcileError"
"""Reason of the event about an object at which a pass failed unexpectedly."""


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """The object of a pass.

    Attributes:
        kind: Its kind.
        obj: The observed object, at least its name, namespace and uid; also its status if a plan patches that.
    """

    kind: Kind
    obj: Raw

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.obj["metadata"]["uid"])


@dataclass(slots=True)
class _Memory:
    """State that a pass over an object leaves for the next one.

    Attributes:
        uid: Which incarnation of the object.
        writes: Own writes that the caches may not show yet.
        finds: Existing objects whose name is needed.
        recorded: Events of the last plan that was carried out; these are not recorded again by the next.
        failures: Passes in a row whose plan was not carried out completely.
    """

    uid: str
    writes: OwnWrites = field(default_factory=OwnWrites)
    finds: list[Raw] = field(default_factory=list)
    recorded: frozenset[RecordEvent] = frozenset()
    failures: int = 0


class PlannedTerm(ABC, Generic[K]):
    """One controller, while this process is the leader.

    Attributes:
        queue: Keys of the objects to look at.
        clock: Tells the time.
    """

    def __init__(
        self,
        worker: ControllerProcess,
        name: str,
        caches: Sequence[WatchCache[Any]],
        namespace_of: Callable[[K], str],
    ) -> None:
        """Create a term; it must `run`.

        Args:
            worker: The process.
            name: Name of the controller in logs: `cronjobs`.
            caches: Caches that must be synced before the first plan.
            namespace_of: The namespace of a key; see `WorkQueue`.
        """
        faults = worker.faults.of_queue(name, self.about, UNEXPECTED)
        self.queue: WorkQueue[K] = WorkQueue(
            name, namespace_of, of_one=worker.settings.workers, faults=faults
        )
        self._namespace_of = namespace_of
        self.clock = worker.clock
        self._worker = worker
        self._required = caches
        self._memories: dict[K, _Memory] = {}
        self._backoff = Backoff(base=0.1, cap=300.0, spread=0.1, seed=worker.settings.identity)
        self._sent = SentRequests()
        self._executors: dict[Kind, Executor] = {}

    # What a controller gives

    @abstractmethod
    async def subscribe(self, stack: ExitStack) -> None:
        """Subscribe to changes that affect plans, and add their keys to the queue; the stack ends the subscriptions."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """The keys of all objects that there are; see `resync`."""

    @abstractmethod
    def about(self, key: K) -> Reference:
        """What reports about unexpected errors refer to. It must not read what may be their cause."""

    @abstractmethod
    def look(self, key: K) -> PlannedObject | None:
        """The object of a key as the caches show it; None if it is gone."""

    @abstractmethod
    async def plan(self, key: K, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """The plan for an object.

        Args:
            key: Its key.
            subject: The result of `look`.
            finds: Objects, with their kinds, whose name a creation of the pass before needed.
        """

    def cache_of(self, kind: Kind) -> WatchCache[Any] | None:
        """The cache that shows writes of a kind; None for a kind that is not watched."""
        return next((each for each in self._required if each.kind == kind), None)

    def forget(self, key: K) -> None:
        """Drop the state of a deleted object."""

    def carried_out(self, key: K, outcome: PlanOutcome) -> None:
        """Called after a plan was carried out, with its outcome."""

    # What all share

    async def run(self) -> None:
        """Work until cancelled; then wait for the responses to open requests."""
        try:
            await wait_synced(*self._required)
            with ExitStack() as stack:
                stack.callback(self.queue.close)
                await self.subscribe(stack)
                async with asyncio.TaskGroup() as group:
                    group.create_task(resync(self.keys, self.queue.add, self.clock))
                    group.create_task(self.queue.work(self._pass, self._worker.settings.passes))
        finally:
            await self._sent.answered()

    async def _pass(self, key: K) -> float | None:
        """One pass over an object. Returns the seconds until the next pass, if known."""
        subject = self.look(key)
        if subject is None:
            self._memories.pop(key, None)
            self.forget(key)
            return None
        memory = self._memories.get(key)
        if memory is None or memory.uid != subject.uid:
            memory = self._memories[key] = _Memory(subject.uid)
        now = self.clock.monotonic()
        if (unseen := memory.writes.unseen(self.cache_of, now)) is not None:
            return unseen  # the event that shows the write arrives here earlier
        finds, memory.finds = memory.finds, []
        plan = await self.plan(key, subject, finds)
        outcome = await self._executor(subject.kind).carry_out(
            _news(plan, memory),
            subject.obj,
            self._namespace_of(key),
            others_wait=lambda: self.queue.others_wait(key),
        )
        memory.finds = [found for _, found in outcome.finds]
        if outcome.interrupted:
            memory.finds = finds + memory.finds  # the next pass makes the same plan for the rest
        for each in outcome.written:
            memory.writes.add(each, self.clock.monotonic())
        self.carried_out(key, outcome)
        if outcome.interrupted:
            return 0.0
        if outcome.complete:
            memory.failures = 0
            memory.recorded = frozenset(
                each for each in plan.steps if isinstance(each, RecordEvent)
            )
            if outcome.finds:
                return 0.0
            # The object may be gone, with its event before this pass: run another pass without it.
            return _FINDS_SECONDS if finds and outcome.after is None else outcome.after
        return self._after_failure(subject, memory, outcome, plan.wake)

    def _executor(self, kind: Kind) -> Executor:
        found = self._executors.get(kind)
        if found is None:
            worker = self._worker
            found = self._executors[kind] = Executor(
                worker.client,
                worker.recorder,
                worker.metrics,
                worker.slots,
                concurrent=worker.settings.concurrent_writes,
                kind=kind,
                sent=self._sent,
            )
        return found

    def _after_failure(
        self, subject: PlannedObject, memory: _Memory, outcome: PlanOutcome, wake: float | None
    ) -> float:
        if outcome.trouble is not None:
            meta = subject.obj["metadata"]
            self._worker.recorder.record(
                Reference(subject.kind, meta["name"], meta.get("namespace", ""), meta["uid"]),
                "Warning",
                outcome.trouble.reason,
                outcome.trouble.message,
            )
        if outcome.busy is not None:
            return outcome.busy
        memory.failures += 1
        delay = self._backoff.delay(memory.failures - 1)
        if wake is not None:
            delay = min(delay, wake)  # an action is due by then, also after a failure
        return min(delay, OUTAGE_SECONDS) if outcome.broken else delay


def _news(plan: Plan, memory: _Memory) -> Plan:
    """The plan without events that the plan before recorded."""
    if not memory.recorded:
        return plan
    return Plan.of(
        *([each for each in stage if not _is_known(each, memory)] for stage in plan.stages)
    )


def _is_known(step: Step, memory: _Memory) -> bool:
    return isinstance(step, RecordEvent) and step in memory.recorded
