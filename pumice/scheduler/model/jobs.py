"""A gang in the scheduler: a PodGroup, its pods, and counters that are updated with the pods.

The file is long because each pod of a gang changes all of its counters, also those that another queue is charged for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Protocol

import numpy as np

from pumice.api import keys
from pumice.api.meta import parse_bool, parse_time
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.quantities import parse_milli
from pumice.api.requests import Amounts
from pumice.scheduler.model.axis import PODS, Ints
from pumice.scheduler.model.report_times import Report
from pumice.scheduler.model.sub_groups import SubGroups
from pumice.scheduler.model.tasks import (
    ALLOCATED_LIKE,
    BOUND,
    FAILED,
    PENDING,
    PIPELINED,
    READY,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    SchedulingStatus,
    TaskInfo,
)
from pumice.scheduler.results import Finding

_PENDING, _PIPELINED, _BOUND, _RUNNING, _RELEASING, _SUCCEEDED, _FAILED = map(
    int, (PENDING, PIPELINED, BOUND, RUNNING, RELEASING, SUCCEEDED, FAILED)
)
"""Places in lists of counts, which Python looks up faster by a plain number."""
_NONE_FAILED: tuple[Sequence[TaskInfo], Mapping[str, int]] = ((), {})
_NO_COUNTS = [0] * len(SchedulingStatus)
_READY = tuple(int(status in READY) for status in SchedulingStatus)
_of_ready = itemgetter(*map(int, READY))
"""Those of a list of counts whose pods count towards the minimum."""
_QUOTA_NAMES = ("count/", "requests.", "limits.")
"""Names that a quota counts under; what they stand for has a name of its own."""

_HOLDS = tuple(int(status in ALLOCATED_LIKE or status is PIPELINED) for status in SchedulingStatus)
"""Whether a pod counts as holding what it asks for. Within a session, that includes a place that it was promised."""

_CHANGES = [
    [
        (
            _READY[new] - _READY[old],
            _HOLDS[new] - _HOLDS[old],
            (new == _PENDING) - (old == _PENDING),
        )
        for new in SchedulingStatus
    ]
    for old in SchedulingStatus
]
"""How many pods more are ready, hold what they ask for, and wait, once one has another status; by old and new status."""

_NO_GROUP = PodGroup()

_LARGEST_COUNT = (1 << 31) - 1
"""Counts have 32 bits in the API; files may have more."""

_INITIAL_PHASES = ("", "Pending")
_STARTING_PHASES = (*_INITIAL_PHASES, "Inqueue")


class Sums(Protocol):
    """Sums over the jobs of a queue, which each job keeps current."""

    @property
    def width(self) -> int:
        """Columns of the sums."""

    def hold(self, job: "JobInfo", vector: Ints, step: int) -> None:
        """Count what a pod of a job has come to hold (1), or holds no more (-1)."""

    def wait(self, job: "JobInfo", vector: Ints, step: int) -> None:
        """Count what a waiting pod of a job asks for (1), or asks for no more (-1)."""

    def outdate(self, job: "JobInfo") -> None:
        """Note that pods of a job have changed."""


class JobInfo:
    """A PodGroup and its pods; one that pods name but that does not exist has no `group`.

    Attributes:
        key: `namespace/name`.
        group: The PodGroup as it was last seen.
        order_priority: The priority by which it is ordered: that of its PodGroup, or the lowest of its pods if that is
            lower. Quotas of namespaces limit what pods of a priority may ask for; a PodGroup is not limited so, and must
            not take pods further up than they may go.
        never_preempts: Whether its PriorityClass says that no pods are evicted for it.
        pod_priorities: Priorities that its pods have, each with the number of pods.
        min_member: Pods that must be schedulable together.
        min_task: The same for each role.
        min_resources: What it needs at least, milli-units by name; empty when it does not say.
        minimum: The same in columns.
        required: Columns and amounts of that which are not zero, but for the number of pods.
        created: UNIX seconds.
        is_pending: Whether it has not been let into its queue.
        counts: How many pods have which status.
        roles: The same for each role.
        allocated: What its pods hold, in columns; within a session also what they were promised.
        counted: Pods of which that is the sum.
        elsewhere: Pods of it whose amounts count for another queue, by key, and where; see `ChargedPods`.
        pending: What its waiting pods ask for, in columns.
        row: Row of its queue in the table of queues; -1 when the queue is not there.
        reserved: What it reserves in its queue, as the table of queues last counted it.
        elastic: What it holds beyond `minimum`, as the table of queues last counted it.
        is_left: Whether it has been in its queue without pods for so long that no room is kept for it.
        is_too_large: Whether the nodes could not hold it even if they were empty, as far as the last session found out.
        finding: What the last session that looked at it found out.
        report: What stands on its PodGroup.
        pod_report: What stands on its pods.
        empty_since: Since when it is in its queue without pods, UNIX seconds; None if it is not.
        arrived: When the newest of its pods arrived, UNIX seconds, and how many there are.
    """

    __slots__ = (
        "_failed_at_start",
        "_priority",
        "_ready",
        "_status",
        "_sub_groups",
        "_table",
        "allocated",
        "arrived",
        "counted",
        "counts",
        "created",
        "elastic",
        "elsewhere",
        "empty_since",
        "finding",
        "group",
        "is_left",
        "is_pending",
        "is_too_large",
        "key",
        "min_member",
        "min_resources",
        "min_task",
        "min_task_total",
        "minimum",
        "name",
        "namespace",
        "never_preempts",
        "order_priority",
        "pending",
        "pending_empty",
        "pod_priorities",
        "pod_report",
        "queue",
        "report",
        "required",
        "reserved",
        "roles",
        "row",
        "tasks",
    )

    def __init__(self, namespace: str, name: str, table: "Sums") -> None:
        """A job without PodGroup and pods, whose pods are to be counted in sums."""
        self._table = table
        width = table.width
        self.allocated: Ints = np.zeros(width, dtype=np.int64)
        self.pending: Ints = np.zeros(width, dtype=np.int64)
        self.minimum: Ints = np.zeros(width, dtype=np.int64)
        self.required: tuple[tuple[int, int], ...] = ()
        self.reserved: Ints | None = None
        self.elastic: Ints | None = None
        self.row = -1
        self.namespace = namespace
        self.name = name
        self.key = f"{namespace}/{name}"
        self.group: PodGroup | None = None
        self.queue = ""
        self.pod_priorities: dict[int, int] = {}
        self._priority = self.order_priority = 0
        self.min_member = 0
        self.min_task: dict[str, int] = {}
        self.min_task_total = 0
        self.min_resources: Amounts = {}
        self.created = 0.0
        self.status = _NO_GROUP.status
        self.tasks: dict[str, TaskInfo] = {}
        self.elsewhere: dict[str, ChargedPods] = {}
        self.counts = list(_NO_COUNTS)
        self.roles: dict[str, list[int]] = {}
        self._ready = 0
        self._failed_at_start: tuple[Sequence[TaskInfo], Mapping[str, int]] | None = None
        self._sub_groups: SubGroups | None = None
        self.counted = 0
        self.pending_empty = 0
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what sessions found out about it; its PodGroup is another one."""
        self.never_preempts = False
        self.is_left = self.is_too_large = False
        self.empty_since: float | None = None
        self.finding: Finding | None = None
        self.report: Report | None = None
        self.pod_report: Report | None = None
        self.arrived = (0.0, 0)

    # -- events ------------------------------------------------------------------------------

    def set_group(self, group: PodGroup | None, default_queue: str) -> None:
        """Take in a PodGroup, or forget it.

        Raises:
            QuantityError: An amount of `minResources` cannot be read.
        """
        spec = (group or _NO_GROUP).spec
        resources = {
            name: parse_milli(value)
            for name, value in (spec.min_resources or {}).items()
            if not name.startswith(_QUOTA_NAMES)
        }
        policies = spec.sub_group_policy
        if policies != (self.group.spec.sub_group_policy if self.group is not None else None):
            self._sub_groups = SubGroups(policies, self.tasks.values()) if policies else None
        self.group = group
        self.min_resources = resources
        self.queue = spec.queue or default_queue
        self.min_member = min(max(spec.min_member, 0), _LARGEST_COUNT)
        self.min_task = dict(spec.min_task_member or {})
        self.min_task_total = sum(self.min_task.values())
        self.created = parse_time(group.metadata.creation_timestamp) or 0.0 if group else 0.0
        self.status = (group or _NO_GROUP).status

    def add(self, task: TaskInfo, charged: "ChargedPods | None" = None) -> None:
        """Add a pod to the counts; its amounts count elsewhere if it is charged there."""
        self.tasks[task.key] = task
        if charged is not None:
            self.elsewhere[task.key] = charged
            charged.pods += 1
        task.job = self.key
        task.counts = self.roles.setdefault(task.role, list(_NO_COUNTS))
        self._count(task, task.status, 1)
        if self._sub_groups is not None:
            self._sub_groups.add(task)
        if (stated := task.pod_priority) is not None:
            self.pod_priorities[stated] = self.pod_priorities.get(stated, 0) + 1
            self.order_priority = min(self.order_priority, stated)

    def discard(self, task: TaskInfo) -> None:
        """Remove a pod from the counts."""
        del self.tasks[task.key]
        self._count(task, task.status, -1)
        if self._sub_groups is not None:
            self._sub_groups.discard(task)
        if (stated := task.pod_priority) is not None:
            self.pod_priorities[stated] -= 1
            if not self.pod_priorities[stated]:
                del self.pod_priorities[stated]
                self.order_priority = min([self._priority, *self.pod_priorities])
        task.job = ""
        if not any(task.counts):
            self.roles.pop(task.role, None)
        if (charged := self.elsewhere.pop(task.key, None)) is not None:
            charged.pods -= 1

    def move(self, task: TaskInfo, status: SchedulingStatus) -> None:
        """Give a pod of this job another status."""
        old = task.status
        task.status = status
        counts, role = self.counts, task.counts
        counts[old] -= 1
        role[old] -= 1
        counts[status] += 1
        role[status] += 1
        ready, holds, waits = _CHANGES[old][status]
        self._ready += ready
        if self._sub_groups is not None:
            self._sub_groups.move(task, old, status)
        if holds or waits:
            if task.shape.is_empty:
                self.pending_empty += waits
            self._account(task, holds, waits)
        if self.elsewhere or not (holds or waits):
            self._table.outdate(self)

    def _count(self, task: TaskInfo, status: SchedulingStatus, step: int) -> None:
        self._failed_at_start = None
        self.counts[status] += step
        task.counts[status] += step
        self._ready += step * _READY[status]
        waits = step if status is PENDING else 0
        if task.shape.is_empty:
            self.pending_empty += waits
        self._account(task, step * _HOLDS[status], waits)
        self._table.outdate(self)

    def account(self, task: TaskInfo, step: int) -> None:
        """Count the amounts of one of its pods (1), or count them no more (-1), because its shape is counted again."""
        status = task.status
        waits = step if status is PENDING else 0
        self._account(task, step * _HOLDS[status], waits)

    def charge(self, task: TaskInfo, charged: "ChargedPods | None") -> None:
        """Let the amounts of one of its pods count elsewhere, or here again."""
        self.account(task, -1)
        if (before := self.elsewhere.pop(task.key, None)) is not None:
            before.pods -= 1
        if charged is not None:
            self.elsewhere[task.key] = charged
            charged.pods += 1
        self.account(task, 1)

    def _account(self, task: TaskInfo, holds: int, waits: int) -> None:
        """Count what a pod holds, and what it waits for, once more (1) or no more (-1)."""
        vector = task.shape.vector
        if holds:
            holder = self.holder(task) if self.elsewhere else self
            holder.counted += holds
            held = holder.allocated
            (np.add if holds > 0 else np.subtract)(held, vector, held)
            self._table.hold(holder, vector, holds)
        if waits:
            asked = self.pending
            (np.add if waits > 0 else np.subtract)(asked, vector, asked)
            self._table.wait(self, vector, waits)

    def set_minimum(self, minimum: Ints) -> None:
        """Note what `min_resources` is in columns."""
        self.minimum = minimum
        columns = minimum.nonzero()[0].tolist()
        self.required = tuple((each, minimum.item(each)) for each in columns if each != PODS)

    def widen(self, width: int) -> None:
        """Append columns of zeros, one for each new resource."""
        missing = width - len(self.allocated)
        for name in ("allocated", "pending", "minimum", "reserved", "elastic"):
            vector = getattr(self, name)
            if vector is not None and missing > 0:
                setattr(self, name, np.pad(vector, (0, width - len(vector))))

    # -- queries ---------------------------------------------------------------------------

    def holder(self, task: TaskInfo) -> "JobInfo":
        """To what the amounts of one of its pods are charged: itself, unless the pod was bound under another queue."""
        return self.elsewhere.get(task.key, self) if self.elsewhere else self

    @property
    def says_preemptable(self) -> bool | None:
        """Whether the annotation of its PodGroup, else the label, says that its pods may be evicted; None if neither says anything."""
        if self.group is None:
            return None
        meta = self.group.metadata
        said = parse_bool(meta.annotation(keys.PREEMPTABLE))
        return parse_bool(meta.label(keys.PREEMPTABLE)) if said is None else said

    @property
    def gang(self) -> "JobInfo":
        """The gang whose pods these are; itself."""
        return self

    @property
    def has_queue(self) -> bool:
        """Whether what it holds and waits for counts in its queue."""
        return self.group is not None

    @property
    def priority(self) -> int:
        """Value of its PriorityClass."""
        return self._priority

    @priority.setter
    def priority(self, value: int) -> None:
        self._priority = value
        self.order_priority = min([value, *self.pod_priorities])

    @property
    def phase(self) -> str:
        """Phase of the PodGroup; an empty one counts as Pending."""
        return self.status.phase or "Pending"

    @property
    def status(self) -> PodGroupStatus:
        """What is or will be written on the PodGroup."""
        return self._status

    @status.setter
    def status(self, value: PodGroupStatus) -> None:
        self._status = value
        self.is_pending = value.phase in _INITIAL_PHASES

    @property
    def has_pending(self) -> bool:
        """Whether any of its pods waits for a place."""
        return self.counts[_PENDING] > 0

    @property
    def holding(self) -> int:
        """Pods that hold a place."""
        return self.counted - self.counts[_PIPELINED]

    @property
    def is_short(self) -> bool:
        """Whether it has fewer pods or sub-groups than its minimum."""
        if self.ready < self.min_member:
            return True
        groups = self.sub_groups
        return groups is not None and not groups.is_ready()

    @property
    def lacking(self) -> int:
        """Pods that must at least find places before it has its minimum of pods and of sub-groups; not positive if it has."""
        pods = self.min_member - self.ready
        groups = self.sub_groups
        return pods if groups is None else max(pods, groups.lacking())

    @property
    def is_broken(self) -> bool:
        """Whether it has entered its queue and holds places, but fewer than its minimum, for example because it lost a pod."""
        return self.holding > 0 and self.is_short

    @property
    def is_waiting(self) -> bool:
        """Whether a cycle may have something to do for it."""
        return self.counts[_PENDING] > 0 or (self.group is not None and self.is_pending)

    @property
    def valid(self) -> int:
        """Pods that hold a place, are done, promised or waiting."""
        counts = self.counts
        return self.ready + counts[_PIPELINED] + counts[_PENDING]

    @property
    def scheduled(self) -> int:
        """Pods whose placement the API server knows, without terminating ones."""
        counts = self.counts
        return counts[_BOUND] + counts[_RUNNING] + counts[_SUCCEEDED] + counts[_FAILED]

    @property
    def releasing_placed(self) -> int:
        """Terminating pods that are still on a node."""
        if not self.counts[_RELEASING]:
            return 0
        return sum(task.status is RELEASING and task.node != "" for task in self.tasks.values())

    def least_asked(self, count: int) -> Ints | None:
        """What so many of its waiting pods ask for at least, by column; None when none can be placed yet."""
        vectors = [
            task.shape.vector
            for task in self.tasks.values()
            if task.status is PENDING and not task.gates
        ]
        if not vectors:
            return None
        least: Ints = np.sort(np.array(vectors), axis=0)[:count].sum(axis=0)
        return least

    @property
    def ready(self) -> int:
        """Pods that count towards the minimum."""
        if not self.counts[_FAILED]:
            return self._ready
        return self._ready + sum(self.failed_at_start().values())

    def role_ready(self, role: str, *others: SchedulingStatus) -> int:
        """Pods of a role that count towards its minimum, and those that have one of the other statuses."""
        counts = self.roles.get(role)
        if counts is None:
            return 0
        found: int = sum(_of_ready(counts))
        for status in others:
            found += counts[status]
        return found + self.failed_at_start().get(role, 0) if self.counts[_FAILED] else found

    def failed_at_start(self) -> Mapping[str, int]:
        """How many pods of each role failed before the gang was complete; they count towards the minimum.

        The pods of a gang are bound one after the other. If the scheduler stops in between, or a binding fails, the pods that
        are bound may fail because the others are missing. Without them the gang would never reach its minimum again, and
        pods for which there was a place would wait for ever.

        A failed pod counts only until the phase says that the gang was complete, and only if no pod of the gang was created after
        it was bound: a newer pod replaces one that is gone, so that this is another start. Times have whole seconds.
        """
        return self._failed_early()[1]

    @property
    def sub_groups(self) -> SubGroups | None:
        """Its sub-groups, in which pods that failed at its start count as well; None if its PodGroup has no policies."""
        found = self._sub_groups
        if found is not None:
            found.count_early(self._failed_early()[0])
        return found

    def _failed_early(self) -> tuple[Sequence[TaskInfo], Mapping[str, int]]:
        """Pods that failed at the start, and how many of each role."""
        if not self.counts[_FAILED] or self.status.phase not in _STARTING_PHASES:
            return _NONE_FAILED
        if self._failed_at_start is None:
            newest = max(task.created for task in self.tasks.values())
            failed = [
                task
                for task in self.tasks.values()
                if task.placed_at is not None and task.placed_at >= newest
            ]
            self._failed_at_start = failed, Counter(task.role for task in failed)
        return self._failed_at_start

    def __repr__(self) -> str:
        return f"<Job {self.key} {self.phase}: {len(self.tasks)} pods>"


class ChargedPods(JobInfo):
    """Pods of a gang that are charged to another queue than the gang has now, or whose PodGroup is not there.

    They were bound under that queue, and hold their places there until they end. They stay pods of their gang, which counts
    them; only their amounts are counted here, and for others of the queue they are victims like any.

    Attributes:
        pods: How many there are.
    """

    __slots__ = ("_gang", "pods")

    def __init__(self, gang: JobInfo, queue: str, table: Sums) -> None:
        """None yet, of a gang, in a queue."""
        self._gang = gang
        self.pods = 0
        super().__init__(gang.namespace, gang.name, table)
        self.key = self.key_of(gang, queue)
        self.queue = queue

    @staticmethod
    def key_of(gang: JobInfo, queue: str) -> str:
        """A key that no gang has: no namespace begins so."""
        return f"@{queue}/{gang.key}"

    @property
    def gang(self) -> JobInfo:
        """The gang whose pods these are."""
        return self._gang

    @property
    def has_queue(self) -> bool:
        """They do, although they have no PodGroup of their own."""
        return True

    @property
    def priority(self) -> int:
        """That of the gang."""
        return self._gang.priority

    @priority.setter
    def priority(self, value: int) -> None:
        """It has none of its own."""

    @property
    def order_priority(self) -> int:
        """That of the gang."""
        return self._gang.order_priority

    @order_priority.setter
    def order_priority(self, value: int) -> None:
        """It has none of its own."""
