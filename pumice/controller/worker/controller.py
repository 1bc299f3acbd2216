"""Base of all controllers: a queue of keys, a plan for each key, and the executor.

A pass looks at one object in the caches, makes a plan for it by a pure function, and carries the plan out. It waits
until the caches show the writes of the pass before. State between passes only saves work; all of it may be lost at any
time (`memory`).

Every object is looked at again once in ten minutes, although nothing about it seems to have changed. Controllers act on
what watches report, and a wake-up that is due at some time is a timer. An event that is lost by a defect, or a timer of a
machine whose clock is set, would leave an object as it is until something else changes. So all keys are queued in turn, a
few each second: there is no burst, and nothing is written for an object that is as it should be.
"""

import asyncio
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pumice.api.commands import Command, oldest
from pumice.api.kinds import COMMAND, Kind
from pumice.api.meta import Raw
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.clock import Backoff, Clock
from pumice.cluster.errors import ApiError, NotFound, TooManyRequests
from pumice.cluster.events import Reference
from pumice.cluster.lifecycle import SentRequests
from pumice.cluster.subscribers import Subscriber
from pumice.cluster.turns import first_part
from pumice.cluster.workqueue import WorkQueue
from pumice.controller.jobs.situation import PlanFailure
from pumice.controller.plan import DeleteObject, Plan, RecordEvent, RequeueAfter
from pumice.controller.worker.execution import OUTAGE_SECONDS, Executor
from pumice.controller.worker.memory import Memories, ObjectKey, ObjectMemory, PlanOutcome
from pumice.controller.worker.process import ControllerProcess

K = TypeVar("K", bound=Hashable)

Source = tuple[WatchCache[Any], Subscriber[Any]]
"""A cache, and what is called with each of its changes."""

logger = logging.getLogger(__name__)

UNSEEN_SECONDS = 5.0
"""How long until something that the caches do not show is checked again."""

LONGEST_SECONDS = 3600.0
"""Maximum delay of a pass that was requested for later."""

UNEXPECTED = "ReconcileError"
"""Reason of the event about an object at which a pass failed unexpectedly."""

RESYNC_SECONDS = 600.0
"""How long until all objects have been looked at again."""

SLICE_SECONDS = 1.0
"""Shortest time between two slices of keys."""


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """The object of a pass.

    Attributes:
        kind: Its kind.
        obj: The observed object, at least its name, namespace and uid; also its status if a plan patches that.
    """

    kind: Kind
    obj: Raw

    @classmethod
    def named(cls, kind: Kind, name: str, namespace: str, uid: str) -> "PlannedObject":
        """An object whose status no plan patches."""
        return cls(kind, {"metadata": {"name": name, "namespace": namespace, "uid": uid}})

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.obj["metadata"]["uid"])


class Controller(ABC, Generic[K]):
    """One controller, while this process is the leader.

    Attributes:
        queue: Keys of the objects to look at.
        clock: Tells the time.
        find_seconds: How long an existing object counts whose name a creation needed, although no cache shows it.
    """

    find_seconds = 1.0

    def __init__(
        self,
        worker: ControllerProcess,
        name: str,
        caches: Sequence[WatchCache[Any]],
        namespace_of: Callable[[K], str],
        memories: Memories[K, Any] | None = None,
    ) -> None:
        """Create a controller; it must `run`.

        Args:
            worker: The process.
            name: Name of the controller in logs: `cronjobs`.
            caches: Caches that must be synced before the first plan.
            namespace_of: The namespace of a key; see `WorkQueue`.
            memories: State between passes, if it is more than `ObjectMemory`.
        """
        faults = worker.faults.of_queue(name, self.about, UNEXPECTED)
        self.queue: WorkQueue[K] = WorkQueue(
            name, namespace_of, of_one=worker.settings.workers, faults=faults
        )
        self._namespace_of = namespace_of
        self.clock = worker.clock
        self._worker = worker
        self._required = caches
        self._by_kind = {each.kind: each for each in reversed(caches)}
        self._memories: Memories[K, Any] = memories or Memories(ObjectMemory)
        self._busy_until: dict[str, float] = {}
        self._backoff = Backoff(base=0.1, cap=300.0, spread=0.1, seed=worker.settings.identity)
        self._sent = SentRequests()
        self._executors: dict[Kind, Executor] = {}

    # What a controller gives

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Caches whose changes affect plans, in the order in which their objects are reported at first.

        Each comes with a function that adds the keys that a change affects to the queue.
        """

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
            finds: Objects, with their kinds, whose name a creation of an earlier pass needed.
        """

    def cache_of(self, kind: Kind) -> WatchCache[Any] | None:
        """The cache that shows writes of a kind; None for a kind that is not watched."""
        return self._by_kind.get(kind)

    def forget(self, key: K) -> None:
        """Drop the state of a deleted object."""

    def carried_out(self, key: K, subject: PlannedObject, plan: Plan, outcome: PlanOutcome) -> None:
        """Called after a plan was carried out, with its outcome."""

    def report(self, subject: PlannedObject, trouble: PlanFailure) -> None:
        """Report what the API server refused."""
        meta = subject.obj["metadata"]
        about = Reference(subject.kind, meta["name"], meta.get("namespace", ""), meta["uid"])
        self._worker.recorder.record(about, "Warning", trouble.reason, trouble.message)

    # What several controllers share

    def was_refused(self, key: K) -> bool:
        """True if the API server refused a write for an object, and no plan was carried out completely since."""
        memory = self._memories.get(key)
        return memory is not None and memory.trouble is not None

    def add_refused(self) -> None:
        """Add all these objects to the queue; for example, admission refuses PodGroups for closed queues."""
        for key in self._memories.refused():
            self.queue.add(key)

    def command_for(self, commands: Iterable[Command]) -> PlannedObject | None:
        """The subject of a pass over an object that does not exist: the oldest Command for it."""
        command = oldest(commands)
        if command is None:
            return None
        meta = command.metadata
        return PlannedObject.named(COMMAND, meta.name, meta.namespace, meta.uid)

    async def refusal(self, command: Raw, kind: Kind, name: str) -> Plan:
        """The plan for a Command whose target the caches do not show: it is deleted if there is none."""
        meta = command["metadata"]
        namespace = meta["namespace"] if kind.namespaced else None
        try:
            await self._worker.client.get(kind, name, namespace)
        except NotFound:
            message = f"Command {meta['name']} is refused: there is no {kind.kind} {name}"
            delete = DeleteObject(COMMAND, meta["namespace"], meta["name"], meta["uid"])
            return Plan.of([delete], [RecordEvent("Warning", "CommandRefused", message)])
        except TooManyRequests as error:
            return Plan.of([RequeueAfter(error.patience)])
        except ApiError as error:
            logger.warning("get %s %s: %s", kind.kind, name, error)
        return Plan.of([RequeueAfter(UNSEEN_SECONDS)])  # its event arrives here earlier

    # What all share

    async def run(self) -> None:
        """Work until cancelled; then wait for the responses to open requests."""
        try:
            await wait_synced(*self._required)
            with ExitStack() as stack:
                stack.callback(self.queue.close)
                for cache, changed in self.sources():
                    stack.callback(await cache.replay(changed))
                async with asyncio.TaskGroup() as group:
                    group.create_task(resync(self.keys, self.queue.add, self.clock))
                    group.create_task(self.queue.work(self._pass, self._worker.settings.passes))
        finally:
            await self._sent.answered()

    async def _pass(self, key: K) -> float | None:
        """One pass over an object. Returns the seconds until the next pass, if known."""
        namespace, now = self._namespace_of(key), self.clock.monotonic()
        if (until := self._busy_until.get(namespace, now)) > now:
            return until - now
        subject = self.look(key)
        if subject is None:
            self.forget(key)
            self._memories.forget(key)
            return None
        memory: ObjectMemory = self._memories.of(key, subject.uid)
        if (unseen := memory.writes.unseen(self.cache_of, now)) is not None:
            return unseen  # the event that shows the write arrives here earlier
        finds = memory.found(now, self.find_seconds)
        plan = await self.plan(key, subject, finds)
        outcome = await self._executor(subject.kind).carry_out(
            _news(plan, memory.recorded),
            subject.obj,
            namespace,
            wide=memory.creates_pods,
            others_wait=lambda: self.queue.others_wait(key),
        )
        had_trouble = memory.trouble is not None
        memory.learn(outcome, self.clock.monotonic())
        self.carried_out(key, subject, plan, outcome)
        if outcome.trouble is not None:
            self.report(subject, outcome.trouble)
        if outcome.busy is not None:
            return self._busy(namespace, outcome.busy)
        if outcome.interrupted:
            return 0.0
        if not outcome.complete:
            return self._after_failure(memory, outcome, plan.wake)
        memory.failures, memory.trouble = 0, None
        memory.recorded = frozenset(each for each in plan.built if isinstance(each, RecordEvent))
        if outcome.finds or had_trouble:
            return 0.0
        after = math.inf if outcome.after is None else min(outcome.after, LONGEST_SECONDS)
        if finds:
            # They may be gone, with their events before this pass: run another pass without them.
            after = min(after, self.find_seconds)
        return None if after == math.inf else after

    def _busy(self, namespace: str, seconds: float) -> float:
        """Send nothing for any object of a namespace for some time: it is not one object that has too many requests.

        Other namespaces go on, because an admission webhook or plugin may refuse the requests of one alone. If the API server
        is overloaded, each namespace learns it from its next request.
        """
        now = self.clock.monotonic()
        until = max(self._busy_until.get(namespace, now), now + seconds)
        self._busy_until = {key: each for key, each in self._busy_until.items() if each > now}
        self._busy_until[namespace] = until
        return seconds

    def _after_failure(
        self, memory: ObjectMemory, outcome: PlanOutcome, wake: float | None
    ) -> float:
        """Seconds until the next pass after a plan that was not carried out completely."""
        memory.failures += 1
        delay = self._backoff.delay(memory.failures - 1)
        if outcome.trouble is None:  # the API server did not answer, or had a newer state
            delay = min(delay, OUTAGE_SECONDS)
        return delay if wake is None else min(delay, wake)  # an action is due by then, also now

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


class NamespacedController(Controller[ObjectKey]):
    """A controller of one kind, whose objects are in namespaces and are kept as raw JSON."""

    def __init__(
        self,
        worker: ControllerProcess,
        name: str,
        caches: Sequence[WatchCache[Any]],
        objects: WatchCache[Raw],
        memories: Memories[ObjectKey, Any] | None = None,
    ) -> None:
        """Create a controller; the arguments are those of `Controller`, and the cache of the kind."""
        super().__init__(worker, name, caches, first_part, memories)
        self._objects = objects

    def keys(self) -> Iterable[ObjectKey]:
        """All objects of the kind."""
        return self._objects.identities()

    def about(self, key: ObjectKey) -> Reference:
        """One of them, whether it exists or not."""
        return self._objects.reference(key[1], key[0])

    def look(self, key: ObjectKey) -> PlannedObject | None:
        """One of them."""
        found = self._objects.get(key[1], key[0])
        return None if found is None else PlannedObject(self._objects.kind, found)

    def add(self, obj: Raw | None, delay: float = 0.0) -> None:
        """Add an object to the queue, for a pass after some seconds."""
        if obj is not None:
            self.queue.add_after(object_key(obj), delay)

    def added_or_changed(self, old: Raw | None, new: Raw | None) -> None:
        """Add an object that has changed to the queue; a subscriber of its cache."""
        self.add(new or old)


def object_key(obj: Raw) -> ObjectKey:
    """Key of an object in a namespace."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _news(plan: Plan, recorded: frozenset[RecordEvent]) -> Plan:
    """The plan without events that the plan before recorded."""
    if not recorded:
        return plan
    return plan.without(lambda step: isinstance(step, RecordEvent) and step in recorded)


async def resync(
    keys: Callable[[], Iterable[K]],
    add: Callable[[K], None],
    clock: Clock,
) -> None:
    """Queue all keys once in each round, until cancelled.

    The order of the keys is kept from round to round as far as `keys` keeps it, so the time between two turns of a key is about
    one round. Keys that come during a round are looked at for their own event, and are part of the next.
    """
    while True:
        begun = clock.monotonic()
        try:
            turn = list(keys())
        except Exception:  # nothing depends on a round: objects have their own events
            logger.exception("the keys of a round cannot be listed")
            turn = []
        slices = max(1, min(len(turn), int(RESYNC_SECONDS / SLICE_SECONDS)))
        for number in range(1, slices + 1):
            await clock.sleep(begun + RESYNC_SECONDS * number / slices - clock.monotonic())
            for key in turn[len(turn) * (number - 1) // slices : len(turn) * number // slices]:
                add(key)
