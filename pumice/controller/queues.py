"""The queue controller: the state of a queue, the reason why it is closed, its counts of PodGroups, and Commands for it.

Whether a queue is closed follows from the whole tree and not from the order of events. A queue is closed while its user
wants it closed, while a queue above it is closed by its own user, and while it is being deleted; the annotation
`volcano.sh/closed-by-parent` tells the first two apart. So a restart loses nothing, and a queue that its user closed stays
closed when the queues above it open.

A closed queue with PodGroups is Closing: these continue, and none is added. A pass writes either the annotation or the
state, in an order that is safe if the controller stops in between: the annotation is set before the queue closes, and
removed after it has opened. PodGroups are counted with each change, so the cost does not depend on the size of a queue.

Commands for queues (`vcctl queue operate --action close` creates one) are taken one at a time, the oldest first. A Command
is removed once it is carried out; if the controller stops in between, the next one carries it out again, which changes
nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pumice.api import keys
from pumice.api.commands import Command, misdirected, oldest, targets
from pumice.api.fields import did_you_mean
from pumice.api.keys import DEFAULT_QUEUE, ROOT_QUEUE
from pumice.api.kinds import COMMAND, QUEUE
from pumice.api.messages import listed
from pumice.api.meta import Raw
from pumice.api.podgroups import PHASES
from pumice.api.queues import STATES, Queue
from pumice.controller.plan import (
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    Step,
    UpdateObject,
)

_NONE: Mapping[str, int] = MappingProxyType({})


def queue_and_phase(group: Raw) -> tuple[str, str]:
    """Queue and phase of a PodGroup; one without a phase is Pending."""
    queue = (group.get("spec") or {}).get("queue") or DEFAULT_QUEUE
    phase = (group.get("status") or {}).get("phase")
    return queue, phase if phase in PHASES else PHASES[0]


class GroupCounts:
    """PodGroups by queue and phase, also for queues that do not exist."""

    def __init__(self) -> None:
        self._queues: dict[str, Counter[str]] = {}
        self._counted: dict[tuple[str, str], tuple[str, str]] = {}
        """How each PodGroup is counted, so that a change that comes twice counts once."""

    def of(self, queue: str) -> Mapping[str, int]:
        """PodGroups of a queue by phase, without phases that have none."""
        return self._queues.get(queue, _NONE)

    def change(self, old: Raw | None, new: Raw | None) -> tuple[str, ...]:
        """Update the counts for a changed PodGroup; None means that it does not exist.

        Returns:
            The queues whose counts changed.
        """
        if (either := new or old) is None:
            return ()
        after = queue_and_phase(new) if new is not None else None
        meta = either["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        before = self._counted.get(key)
        if before == after:
            return ()
        if after is None:
            del self._counted[key]
        else:
            self._counted[key] = after
        if before is not None:
            self._add(*before, -1)
        if after is not None:
            self._add(*after, 1)
        return tuple(dict.fromkeys(each[0] for each in (before, after) if each is not None))

    def _add(self, queue: str, phase: str, number: int) -> None:
        counts = self._queues.setdefault(queue, Counter())
        counts[phase] += number
        if not counts[phase]:
            del counts[phase]
        if not counts:
            del self._queues[queue]


CLOSED_STATES = ("Closed", "Closing")


def parent_of(queue: Queue) -> str:
    """Name of the queue above it; empty for `root`."""
    return "" if queue.metadata.name == keys.ROOT_QUEUE else queue.spec.parent or keys.ROOT_QUEUE


def is_marked(queue: Queue) -> bool:
    """True for a queue that is closed only because of a queue above it."""
    return queue.metadata.annotation(keys.CLOSED_BY_PARENT) == "true"


def closed_by_user(queue: Queue) -> bool:
    """True for a queue that is closed by its user."""
    return queue.status.state in CLOSED_STATES and not is_marked(queue)


def climb(queue: Queue, get: Callable[[str], Queue | None]) -> tuple[tuple[Queue, ...], str]:
    """The queues above a queue, nearest first, and the name of the one that does not exist.

    In a cycle the search stops at the first repeated queue. Queue `root` may be missing: nothing depends on it.
    """
    found: list[Queue] = []
    seen = {queue.metadata.name}
    while (name := parent_of(queue)) and name not in seen:
        seen.add(name)
        above = get(name)
        if above is None:
            return tuple(found), "" if name == keys.ROOT_QUEUE else name
        found.append(above)
        queue = above
    return tuple(found), ""


def closing_one(above: Iterable[Queue]) -> Queue | None:
    """The nearest queue above that its user has closed; it closes all queues below."""
    return next(filter(closed_by_user, above), None)


COUNTS = {phase: phase.lower() for phase in PHASES}
"""Field of a queue's status that counts the PodGroups of a phase."""


CLOSE, OPEN = "CloseQueue", "OpenQueue"


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The Command to handle now.

    Attributes:
        command: The Command.
        refusal: Why it is refused, empty when it is not.
        reason: Reason of the event about the refusal.
    """

    command: Command
    refusal: str = ""
    reason: str = "CommandRefused"

    @property
    def action(self) -> str:
        """The action to take."""
        return self.command.action

    @property
    def why(self) -> str:
        """The Command as text for a message."""
        text = self.command.message
        return f"Command {self.command.metadata.name}" + (f": {text}" if text else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQueue:
    """A queue and what its plan depends on.

    Attributes:
        queue: The queue.
        above: The queues above it, nearest first.
        missing: Name of a queue above it that does not exist; empty when all exist.
        groups: Its PodGroups by phase; None where this process does not see all of them.
        commands: Commands for it.
        wait: Seconds until its counts may be written again.
    """

    queue: Queue
    above: Sequence[Queue] = ()
    missing: str = ""
    groups: Mapping[str, int] | None = field(default_factory=dict)
    commands: Sequence[Command] = ()
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class _TargetState:
    """The state that a queue should have.

    Attributes:
        state: Its state.
        is_marked: Whether it is closed only because of a queue above it.
        message: Why it is closed, or its problem.
    """

    state: str
    is_marked: bool
    message: str


def own_status(queue: Queue) -> Raw:
    """The status fields of a queue that its controller writes, without zeros; the others are the scheduler's."""
    status = queue.status
    counts = {name: getattr(status, name) for name in COUNTS.values()}
    fields = {"state": status.state, "message": status.message} | counts
    return {name: value for name, value in fields.items() if value}


def plan_queue(seen: ObservedQueue) -> Plan:
    """The plan for a queue; empty if nothing differs."""
    queue = seen.queue
    order = next_queue_order(queue, seen.commands)
    answer: list[Step] = []
    if order is not None:
        meta = order.command.metadata
        answer = [DeleteObject(COMMAND, meta.namespace, meta.name, meta.uid)]
        if order.refusal:
            message = f"Command {meta.name} is refused: {order.refusal}"
            return Plan.of([RecordEvent("Warning", order.reason, message)], answer)
    aim = _aim(seen, order)
    note = _note(queue, aim)
    status, wait = _status(seen, aim)
    if note and status:
        if aim.state not in CLOSED_STATES:
            note = []  # the next pass drops what closed it
        elif aim.state != queue.status.state:
            return Plan.of(note)  # the next pass closes it
        else:
            status = []
    events = [*_transition(seen, aim, order), *_answer(seen, aim, order)]
    if seen.missing:
        events.append(RecordEvent("Warning", "SyncQueue", _missing(seen.missing)))
    return Plan.of(note, status, events, answer, [RequeueAfter(wait)] if wait else [])


def _aim(seen: ObservedQueue, order: QueueOrder | None) -> _TargetState:
    queue = seen.queue
    by_user = closed_by_user(queue) if order is None else order.action == CLOSE
    above = closing_one(seen.above)
    is_leaving = queue.metadata.deletion_timestamp is not None
    stored = queue.status.state
    if by_user or above is not None or is_leaving:
        if seen.groups is None:
            state = stored if stored in CLOSED_STATES else "Closing"
        else:
            state = "Closing" if seen.groups else "Closed"
    else:
        # A state that is not known is reported once, and then replaced like Unknown.
        known = order is not None or stored in ("", *STATES)
        state = "Open" if known else "Unknown"
    reasons = (
        "closed by its user" if by_user else "",
        f"queue {above.metadata.name} above it is closed" if above and not by_user else "",
        "it is being deleted" if is_leaving else "",
        _missing(seen.missing),
    )
    return _TargetState(
        state, above is not None and not by_user, listed(filter(None, reasons), "; ")
    )


def _missing(name: str) -> str:
    return f"queue {name} above it does not exist; create it, or change spec.parent" if name else ""


def _note(queue: Queue, aim: _TargetState) -> list[Step]:
    """The annotation about being closed by a queue above, and the default of the parent."""
    meta = queue.metadata
    patch: dict[str, Any] = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}
    }
    if is_marked(queue) != aim.is_marked:
        patch["metadata"]["annotations"] = {keys.CLOSED_BY_PARENT: str(aim.is_marked).lower()}
    if not queue.spec.parent and meta.name != keys.ROOT_QUEUE:
        patch["spec"] = {"parent": keys.ROOT_QUEUE}
    elif "annotations" not in patch["metadata"]:
        return []
    return [UpdateObject(QUEUE, "", meta.name, patch)]


def _status(seen: ObservedQueue, aim: _TargetState) -> tuple[list[Step], float]:
    """The write of the status, if any, and the seconds for which a change of counts alone must wait."""
    stored = own_status(seen.queue)
    wanted: Raw = {"state": aim.state} | ({"message": aim.message} if aim.message else {})
    is_urgent = wanted != {name: stored[name] for name in ("state", "message") if name in stored}
    if seen.groups is None:
        wanted |= {name: stored[name] for name in COUNTS.values() if name in stored}
    else:
        wanted |= {name: seen.groups.get(phase, 0) for phase, name in COUNTS.items()}
    if {name: value for name, value in wanted.items() if value} == stored:
        return [], 0.0
    if not is_urgent and seen.wait > 0:
        return [], seen.wait
    return [PatchStatus(wanted)], 0.0


def _transition(
    seen: ObservedQueue, aim: _TargetState, order: QueueOrder | None
) -> list[RecordEvent]:
    """The events of a change of state."""
    before, after = seen.queue.status.state, aim.state
    if before == after or (before, after) == ("", "Open"):
        return []
    by = f" ({order.why})" if order is not None else ""
    if after == "Open":
        return [RecordEvent("Normal", OPEN, f"the queue is open and takes PodGroups{by}")]
    if after == "Unknown":
        message = f"status.state is {before!r}, expected one of {', '.join(STATES)}"
        return [RecordEvent("Warning", "SyncQueue", message)]
    if before in CLOSED_STATES:
        if after == "Closing":
            return []
        return [RecordEvent("Normal", CLOSE, "the last PodGroup is gone, and the queue is Closed")]
    number = sum((seen.groups or {}).values())
    those = (
        "1 PodGroup is in it and goes" if number == 1 else f"{number} PodGroups are in it and go"
    )
    goes_on = f"; {those} on" if number else ""
    message = f"the queue is {after} and takes no new PodGroups: {aim.message}{by}{goes_on}"
    return [RecordEvent("Normal", CLOSE, message)]


def _answer(seen: ObservedQueue, aim: _TargetState, order: QueueOrder | None) -> list[RecordEvent]:
    """The events of a Command, unless the change of state has an event."""
    if order is None:
        return []
    queue, above = seen.queue, closing_one(seen.above)
    if order.action == OPEN and above is not None:
        message = (
            f"the queue stays {aim.state} ({order.why}): queue {above.metadata.name} above it is "
            f"{above.status.state}; it opens with that queue"
        )
        return [RecordEvent("Warning", OPEN, message)]
    if (queue.status.state in CLOSED_STATES) != (aim.state in CLOSED_STATES):
        return []
    if order.action == CLOSE and is_marked(queue):
        message = f"the queue stays closed when the queue above it opens ({order.why})"
        return [RecordEvent("Normal", CLOSE, message)]
    message = f"{order.action} ({order.why}) has no effect on a queue that is {aim.state}"
    return [RecordEvent("Normal", "CommandIssued", message)]


def next_queue_order(queue: Queue, commands: Sequence[Command]) -> QueueOrder | None:
    """The oldest Command for a queue, and why it is refused if it is."""
    command = oldest(each for each in commands if targets(each, QUEUE) == queue.metadata.name)
    if command is None:
        return None
    if refusal := misdirected(command, QUEUE, queue.metadata):
        return QueueOrder(command, refusal)
    action = command.action
    if action not in (CLOSE, OPEN):
        hint = did_you_mean(action, (CLOSE, OPEN))
        return QueueOrder(
            command, f"action {action!r} is unknown for a queue{hint}; use {CLOSE} or {OPEN}"
        )
    if action == CLOSE and queue.metadata.name == ROOT_QUEUE:
        refusal = f"queue {ROOT_QUEUE} holds all other queues; close those that are to be closed"
        return QueueOrder(command, refusal, CLOSE)
    if action == OPEN and queue.metadata.deletion_timestamp is not None:
        return QueueOrder(command, "the queue is being deleted", OPEN)
    return QueueOrder(command)
