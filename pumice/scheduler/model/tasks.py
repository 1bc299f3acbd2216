"""A pod in the scheduler: a small record with a status, a shape and a node.

"Task" is Volcano's word for a pod that belongs to a gang. Pods of other schedulers are kept as tasks, too, because they
use resources of nodes; they have no job.
"""

import math
import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache

import msgspec

from pumice.api import keys
from pumice.api.durations import parse_seconds
from pumice.api.messages import listed
from pumice.api.meta import parse_bool, parse_time
from pumice.api.nodes import NEVER, SYSTEM_CLASSES
from pumice.api.pods import Pod
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.results import PodVerdict


class SchedulingStatus(IntEnum):
    """Where a pod stands; the number is the index of its counter."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9


(
    PENDING,
    ALLOCATED,
    PIPELINED,
    BINDING,
    BOUND,
    RUNNING,
    RELEASING,
    SUCCEEDED,
    FAILED,
    UNKNOWN,
) = SchedulingStatus
"""The same for code that asks of each pod: Python 3.11 takes ten times as long to find a member in its class."""

TITLES = {status: status.name.capitalize() for status in SchedulingStatus}
"""Statuses as messages show them, for example `Running`."""

ALLOCATED_LIKE = frozenset(
    {
        SchedulingStatus.BOUND,
        SchedulingStatus.BINDING,
        SchedulingStatus.RUNNING,
        SchedulingStatus.ALLOCATED,
    }
)
"""Pods that hold their place."""

READY = ALLOCATED_LIKE | {SchedulingStatus.SUCCEEDED}
"""Pods that count towards a gang's minimum."""

NEEDS_ROOM = ALLOCATED_LIKE | {SchedulingStatus.RELEASING, SchedulingStatus.UNKNOWN}
"""Statuses of pods that use resources of their node."""

TENTATIVE = (SchedulingStatus.ALLOCATED, SchedulingStatus.PIPELINED)
"""Pods that the session has given or promised a place, while that is not committed."""

PLACED = frozenset({SchedulingStatus.BOUND, SchedulingStatus.RUNNING, SchedulingStatus.UNKNOWN})
"""Pods that the API server shows on a node, and neither terminating nor finished."""

_PHASES = {
    "Running": SchedulingStatus.RUNNING,
    "Succeeded": SchedulingStatus.SUCCEEDED,
    "Failed": SchedulingStatus.FAILED,
    "Unknown": SchedulingStatus.UNKNOWN,
}

_LONGEST_GATES = 256
"""Bytes of the text about scheduling gates, of which a pod may have any number."""

_DEFAULT_PRIORITY = 1

_PRIORITIES = range(-(2**31), 2**31)
"""Priorities have 32 bits; an annotation with another number is ignored."""


Natural = tuple[str | int, ...]
"""Text and numbers in turn, beginning with text, so that any two compare."""

_DIGITS = re.compile(r"([0-9]+)")

_LONGEST_NAME = 253

_LONGEST_DURATION = 101
"""Characters of a cool-down that are kept; no duration is longer than 100."""

_LAST_MOMENT = 253_402_300_799.0
"""The last second of the year 9999, UNIX seconds."""


class CoolDown(msgspec.Struct, frozen=True):
    """For how long a pod asks to be spared after it was placed.

    Attributes:
        text: What the pod says.
        seconds: The duration; None if the text is not one.
        since: When the API server placed the pod, UNIX seconds; None if it does not say so.
    """

    text: str
    seconds: float | None
    since: float | None

    @property
    def until(self) -> float:
        """When it is over, UNIX seconds; NaN if the text is not a duration."""
        if self.seconds is None:
            return math.nan
        return 0.0 if self.since is None else min(self.since + self.seconds, _LAST_MOMENT)


class TaskInfo:
    """One pod.

    Attributes:
        key: `namespace/name`.
        job: Key of the gang it belongs to; empty for pods that Pumice does not schedule.
        role: Name of its task in the job, empty when it says none.
        counts: The job's counters of the role, by status.
        version: resourceVersion of the pod as it was last shown.
        shown: Status that follows from what the API server last showed.
        status: Where it stands, what is assumed and tentative decisions of the running cycle included.
        node: Name of the node that it is or will be on; empty when there is none.
        order: What the order falls back to: index in the name, age, name.
        placed_at: When the API server placed it, UNIX seconds, if it has failed and is not being deleted; else None.
        gates: Scheduling gates that hold it back, as text.
        is_held: Whether only the gate that holds a pod until its queue has room holds it back, and this scheduler takes that gate away.
        row: Row in the table of running pods; -1 for others.
        never_preempts: Whether others are never to be evicted for it.
        is_critical: Whether Kubernetes counts it as critical, so that it is never evicted for others.
        nominated: Node for which others were evicted for its sake; empty when there is none.
        verdict: Reason and message that were last reported on the pod.
        charge: Name of the queue under which it was bound; empty when it has no node, or when that is not known.
        cool_down: For how long it asks to be spared after it was placed; None if it does not.
    """

    __slots__ = (
        "charge",
        "cool_down",
        "counts",
        "gates",
        "is_critical",
        "is_held",
        "is_preemptable",
        "job",
        "key",
        "labels",
        "name",
        "namespace",
        "never_preempts",
        "node",
        "nominated",
        "order",
        "placed_at",
        "pod_priority",
        "priority",
        "role",
        "row",
        "shape",
        "shown",
        "status",
        "uid",
        "verdict",
        "version",
    )

    def __init__(self, pod: Pod, shape: PodShape, *, opens_gates: bool = False) -> None:
        meta, spec = pod.metadata, pod.spec
        labels, annotations = meta.labels or {}, meta.annotations or {}
        self.namespace = meta.namespace
        self.name = meta.name
        self.key = meta.key
        self.shape = shape
        self.labels = meta.labels
        self.role = annotations.get(keys.TASK_SPEC) or labels.get(keys.TASK_SPEC, "")
        self.priority = _priority(annotations, spec.priority)
        self.pod_priority = spec.priority
        self.is_held = False
        self.gates = ""
        if spec.scheduling_gates:
            gates = [str(gate.get("name", "")) for gate in spec.scheduling_gates]
            asks = annotations.get(keys.QUEUE_ALLOCATION_GATE) == "true"
            self.is_held = opens_gates and asks and gates == [keys.QUEUE_ALLOCATION_GATE]
            self.gates = "" if self.is_held else listed(gates, most=_LONGEST_GATES)
        self.order = order_of(meta.name, meta.creation_timestamp)
        self.uid = meta.uid
        self.version = meta.resource_version
        self.shown = self.status = status_of(pod)
        has_failed = self.status is SchedulingStatus.FAILED and not meta.deletion_timestamp
        self.placed_at = _placed_at(pod) if has_failed else None
        self.node = ""
        self.job = ""
        self.counts: list[int] = []
        self.row = -1
        self.is_preemptable = _is_preemptable(annotations, labels)
        self.never_preempts = spec.preemption_policy == NEVER
        self.is_critical = (
            meta.namespace == "kube-system" or spec.priority_class_name in SYSTEM_CLASSES
        )
        self.nominated = pod.status.nominated_node_name
        self.verdict = _standing(pod)
        self.charge = annotations.get(keys.QUEUE, "") if spec.node_name else ""
        self.cool_down = _cool_down(labels, annotations, pod)

    @property
    def facts(self) -> tuple[object, ...]:
        """Fields of a pod, besides status, node and job, whose change is relevant."""
        return (
            self.shape, self.role, self.priority, self.pod_priority, self.gates, self.order,
            self.is_preemptable, self.never_preempts, self.is_critical, self.nominated, self.is_held,
            self.placed_at, self.charge, self.cool_down,
        )  # fmt: skip

    @property
    def created(self) -> float:
        """UNIX seconds."""
        return self.order[1]

    def __repr__(self) -> str:
        place = f" on {self.node}" if self.node else ""
        return f"<Task {self.key} {TITLES[self.status]}{place}>"


def status_of(pod: Pod) -> SchedulingStatus:
    """Status that follows from the state in the API server."""
    known = _PHASES.get(pod.status.phase)
    if known is not None and known is not SchedulingStatus.RUNNING:
        return known
    if pod.metadata.deletion_timestamp:
        return SchedulingStatus.RELEASING
    if known is SchedulingStatus.RUNNING:
        return known
    return SchedulingStatus.BOUND if pod.spec.node_name else SchedulingStatus.PENDING


def _standing(pod: Pod) -> PodVerdict | None:
    """The reason in the pod's condition `PodScheduled`."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return PodVerdict(condition.reason, condition.message)
    return None


def _placed_at(pod: Pod) -> float | None:
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            return parse_time(condition.last_transition_time)
    return None


def _cool_down(
    labels: Mapping[str, str], annotations: Mapping[str, str], pod: Pod
) -> CoolDown | None:
    """What the label `volcano.sh/cooldown-time` says, or the annotation of a pod without the label."""
    for entries in (labels, annotations):
        if keys.COOLDOWN_TIME in entries:
            text = entries[keys.COOLDOWN_TIME]
            return CoolDown(text[:_LONGEST_DURATION], parse_seconds(text), _placed_at(pod))
    return None


def _is_preemptable(*ways: Mapping[str, str]) -> bool:
    """The value of `volcano.sh/preemptable` in annotations or labels, in that order; true if neither is valid."""
    for entries in ways:
        if keys.PREEMPTABLE in entries:
            said = parse_bool(entries[keys.PREEMPTABLE])
            if said is not None:
                return said
    return True


def _priority(annotations: Mapping[str, str], stated: int | None) -> int:
    if keys.TASK_PRIORITY in annotations:
        try:
            value = int(annotations[keys.TASK_PRIORITY])
        except ValueError:
            pass
        else:
            if value in _PRIORITIES:
                return value
    return _DEFAULT_PRIORITY if stated is None else stated


@lru_cache(maxsize=1024)
def order_of(name: str, created: str | None) -> tuple[int, float, Natural]:
    """What the order falls back to; a pod is shown several times soon after it was created.

    The number after the last dash of `job-task-3` comes first, 0 for a name of fewer than three parts: Volcano compares it
    where no plugin decides the order of two pods, before it compares their age.
    """
    age = parse_time(created) or 0.0
    stem, dash, last = name.rpartition("-")
    if not (dash and last.isascii() and last.isdigit()):
        return 0, age, natural(name)
    number = _number(last)
    return number if "-" in stem else 0, age, (*_stem(stem), number, "")


@lru_cache(maxsize=256)
def _stem(name: str) -> Natural:
    """The beginning of such a key, up to a dash that follows; pods of a task have the same."""
    return natural(f"{name}-")


def natural(name: str) -> Natural:
    """Sort key that compares digits as numbers."""
    parts: list[str | int] = [*_DIGITS.split(name)]
    parts[1::2] = [_number(str(part)) for part in parts[1::2]]
    return tuple(parts)


def _number(digits: str) -> int:
    """A number in a name; of names in files that no API server takes, only so many digits as a name has count."""
    return int(digits[:_LONGEST_NAME])
