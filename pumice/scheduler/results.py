"""Results of a scheduling cycle: bindings, the outcome of each gang, and why pods are pending."""

import traceback
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from pumice.api.messages import shortened
from pumice.api.podgroups import PodGroupStatus

OTHER_SCHEDULER = "OtherScheduler"
"""Reason of a gang that has too few pods because some that name it are left to another scheduler."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something waits.

    Attributes:
        reason: One word, for example `NotEnoughResources`.
        message: One sentence.
        details: The reason as data, ready for JSON.
        causes: Resources, rules and queues that it names; reasons that differ only in numbers have equal causes.
        plain: One sentence for people, where `message` follows Volcano's wording; see `summary`.
        numbers: The numbers of that sentence as data, ready for JSON: asked, free, too small.
    """

    reason: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = field(default=(), compare=False)
    plain: str = field(default="", compare=False)
    numbers: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Shorten the sentences: they are written into conditions and statuses."""
        for name in ("message", "plain"):
            object.__setattr__(self, name, shortened(getattr(self, name)))

    @property
    def summary(self) -> str:
        """One sentence for people; the message if it needs no other form."""
        return self.plain or self.message

    def after(self, text: str) -> "Reason":
        """The same reason with a text that comes first for people, and last in the message; the same if there is none."""
        if not text:
            return self
        return replace(self, message=with_text(self.message, text), plain=f"{text}; {self.summary}")

    @property
    def cause(self) -> tuple[str, ...]:
        """The kind of reason and what it names, without numbers."""
        return (self.reason, *self.causes)


def with_text(sentence: str, text: str) -> str:
    """A sentence that goes on with a text."""
    return f"{sentence.removesuffix('.')}; {text}"


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """The condition `PodScheduled=False` of a pending pod.

    Attributes:
        reason: `Unschedulable` or `SchedulingGated`.
        message: One sentence.
        is_new: The cause is new, so an event is recorded as well.
    """

    reason: str
    message: str
    is_new: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        """Shorten the message: it is written into the condition."""
        object.__setattr__(self, "message", shortened(self.message))


class Finding(msgspec.Struct, frozen=True):
    """The result of a session for a gang that is not completely placed.

    Attributes:
        reason: Why it waits.
        is_unschedulable: Whether the condition of its PodGroup is set.
        pods: Conditions of pods with a reason of their own, by key.
    """

    reason: Reason
    is_unschedulable: bool
    pods: Mapping[str, PodVerdict] = msgspec.field(default_factory=dict)


class Event(msgspec.Struct, frozen=True):
    """An event for the owner of an object.

    Attributes:
        kind: Kind of the object, `PodGroup`, `Pod`, `Queue` or `HyperNode`.
        namespace: Its namespace; empty for a Queue or HyperNode.
        name: Its name.
        type: `Normal` or `Warning`.
        reason: One word.
        message: One sentence.
    """

    kind: str
    namespace: str
    name: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class CycleResult(msgspec.Struct, frozen=True):
    """Outcome of one cycle.

    Attributes:
        all_pod_groups: Statuses of all PodGroups; valid until the state is touched again.
        pending: Why each waiting gang waits; valid until the state is touched again.
        binds: Pods to bind, `namespace/name` to node.
        pipelined: Pods that get a node once terminating pods have left it; they need no write yet.
        evicted: Pods to delete so that others fit.
        nominations: Pods whose nominated node changed: those for which others are evicted, and the node; empty for pods
            that are not nominated any more.
        opened: Pods whose gate `scheduling.volcano.sh/queue-allocation-gate` is to be taken away, in the order of their keys.
        pod_groups: Statuses that changed and are to be written.
        urgent: Keys of those that are to be written at once; the others may wait for a moment (`ReportDelays.counts`).
        pods: Conditions of waiting pods that changed.
        events: Events for the owners.
        started: Keys of gangs whose minimum of pods is bound since the last cycle.
        decided: Pods that were tried: placed, pipelined or refused.
        preemptions: Number of searches for victims.
        transactions: Number of decisions with evictions, by action.
        errors: Unexpected exceptions, by the gang that they concern. These gangs are in `ClusterState.quarantined`
            until `ClusterState.release`.
        unreached: Number of gangs for which the budget was not enough; the next cycle tries them.
        error: An unexpected exception that concerns no single gang. It ended the cycle: earlier decisions are included,
            and statuses and reasons follow in the next cycle.
    """

    all_pod_groups: Mapping[str, PodGroupStatus]
    pending: Mapping[str, Reason]
    binds: dict[str, str] = msgspec.field(default_factory=dict)
    pipelined: dict[str, str] = msgspec.field(default_factory=dict)
    evicted: list[str] = msgspec.field(default_factory=list)
    pod_groups: dict[str, PodGroupStatus] = msgspec.field(default_factory=dict)
    urgent: Set[str] = frozenset()
    pods: dict[str, PodVerdict] = msgspec.field(default_factory=dict)
    events: list[Event] = msgspec.field(default_factory=list)
    decided: int = 0
    preemptions: int = 0
    transactions: Mapping[str, int] = msgspec.field(default_factory=dict)
    nominations: Mapping[str, str] = msgspec.field(default_factory=dict)
    opened: list[str] = msgspec.field(default_factory=list)
    started: list[str] = msgspec.field(default_factory=list)
    errors: Mapping[str, Exception] = msgspec.field(default_factory=dict)
    unreached: int = 0
    error: Exception | None = None


class CycleFailedError(ValueError):
    """A cycle failed, or the turn of a gang in it, as a plugin of a third party may; the message is a sentence for the user."""

    @classmethod
    def of(cls, error: Exception, gang: str = "") -> "CycleFailedError":
        """The failure, with where it was raised.

        Args:
            error: What was raised.
            gang: The gang that it concerns; empty if it ended the cycle.
        """
        what = f"the scheduler failed at gang {gang}" if gang else "a cycle of the scheduler failed"
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
        return cls(f"{what}: {type(error).__name__}: {error}{where}")
