"""The controller of queues: their states, up and down the tree, their counts of PodGroups, and Commands for them.

PodGroups are counted by their changes. If other PodGroups stay in the queue, the pass runs a second after the change,
together with later changes. So the number of passes and writes does not grow with the number of changes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

from pumice.api.commands import Command, targets
from pumice.api.kinds import COMMAND, POD_GROUP, QUEUE
from pumice.api.meta import Raw
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.events import Reference
from pumice.cluster.turns import no_namespace
from pumice.controller.jobs.status import COUNT_SECONDS
from pumice.controller.plan import Plan
from pumice.controller.queues import (
    GroupCounts,
    ObservedQueue,
    climb,
    own_status,
    parent_of,
    plan_queue,
)
from pumice.controller.worker.controller import Controller, PlannedObject, Source
from pumice.controller.worker.memory import PlanOutcome
from pumice.controller.worker.process import ControllerProcess, Watches

CHANGE_SECONDS = 5.0
"""How long a change of the counts waits for others; so long the scheduler waits with the amounts."""

_BELOW = "parent"
_BY_QUEUE = "queue"


class QueueCaches:
    """Watches for queues.

    Attributes:
        queues: Queues.
        commands: Commands.
        pod_groups: PodGroups, raw.
    """

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self.queues = watches.of(QUEUE, Queue)
        self.commands = watches.of(COMMAND, Command)
        self.pod_groups: WatchCache[Raw] = watches.of(POD_GROUP, dict)
        self.queues.index(_BELOW, _parent)
        self.commands.index(_BY_QUEUE, _target)


class QueueController(Controller[str]):
    """The queue controller, while this process is the leader; keys are names of queues."""

    def __init__(self, worker: ControllerProcess, caches: QueueCaches) -> None:
        """Create a controller; it must `run`."""
        super().__init__(
            worker,
            "queues",
            (caches.queues, caches.commands, caches.pod_groups),
            no_namespace,
        )
        self._collector = worker.metrics.queues
        self._queues = caches.queues
        self._commands = caches.commands
        self._pod_groups = caches.pod_groups
        self._counts = GroupCounts()
        self._sees_all = worker.settings.namespace is None
        self._written: dict[str, float] = {}

    async def run(self) -> None:
        """Work until cancelled, and show the counts meanwhile if they are those of all namespaces."""
        with (
            self._collector.showing(self._counts, self._names) if self._sees_all else nullcontext()
        ):
            await super().run()

    def sources(self) -> Iterable[Source]:
        """PodGroups, Commands and queues, in this order: all PodGroups are counted before the first pass over a queue."""
        yield self._pod_groups, self._group_changed
        yield self._commands, self._command_changed
        yield self._queues, self._queue_changed

    def keys(self) -> Iterable[str]:
        """The names of all queues."""
        return self._names()

    def about(self, key: str) -> Reference:
        """A queue."""
        return self._queues.reference(key)

    def look(self, key: str) -> PlannedObject | None:
        """A queue; if it does not exist, the oldest Command for it."""
        queue = self._queues.get(key)
        if queue is not None:
            meta = queue.metadata
            named = {"name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version}
            return PlannedObject(QUEUE, {"metadata": named, "status": own_status(queue)})
        return self.command_for(self._commands.indexed(_BY_QUEUE, key))

    async def plan(self, key: str, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """Plan the writes for a queue; a Command for a queue that does not exist is refused."""
        del finds
        queue = self._queues.get(key)
        if queue is None:
            return await self.refusal(subject.obj, QUEUE, key)
        above, missing = climb(queue, self._queues.get)
        wait = self._written.get(key, 0.0) + COUNT_SECONDS - self.clock.monotonic()
        return plan_queue(
            ObservedQueue(
                queue=queue,
                above=above,
                missing=missing,
                groups=self._counts.of(key) if self._sees_all else None,
                commands=self._commands.indexed(_BY_QUEUE, key),
                wait=wait if key in self._written else 0.0,
            )
        )

    def carried_out(
        self, key: str, subject: PlannedObject, plan: Plan, outcome: PlanOutcome
    ) -> None:
        """Note when the status was written."""
        del subject, plan
        if outcome.wrote_status:
            self._written[key] = self.clock.monotonic()

    def forget(self, key: str) -> None:
        """A queue is gone."""
        self._written.pop(key, None)

    def _names(self) -> Iterator[str]:
        return (name for _, name in self._queues.identities())

    def _group_changed(self, old: Raw | None, new: Raw | None) -> None:
        for name in self._counts.change(old, new):
            if self._counts.of(name):
                self.queue.add_after(name, CHANGE_SECONDS)
            else:
                self.queue.add(name)  # a queue that is Closing is Closed now

    def _command_changed(self, old: Command | None, new: Command | None) -> None:
        for each in (old, new):
            for name in _target(each) if each is not None else ():
                self.queue.add(name)

    def _queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        name = (new or old or Queue()).metadata.name
        before, after = (_read_of(each) if each is not None else None for each in (old, new))
        if before != after:
            for each in self._all_below(name):
                self.queue.add(each)
        elif old is None or new is None or own_status(old) != own_status(new):
            self.queue.add(name)

    def _all_below(self, name: str) -> Iterable[str]:
        """A queue and all queues below it."""
        found = {name: None}
        waiting = [name]
        while waiting:
            for child in self._queues.indexed(_BELOW, waiting.pop()):
                if child.metadata.name not in found:
                    found[child.metadata.name] = None
                    waiting.append(child.metadata.name)
        return found


def _read_of(queue: Queue) -> tuple[object, ...]:
    """The fields on which the plans of this queue and of the queues below depend, without its counts."""
    meta, status = queue.metadata, queue.status
    return meta.uid, meta.deletion_timestamp, meta.annotations, queue.spec.parent, status.state


def _parent(queue: Queue) -> Iterable[str]:
    parent = parent_of(queue)
    return (parent,) if parent else ()


def _target(command: Command) -> Iterable[str]:
    name = targets(command, QUEUE)
    return (name,) if name else ()
