"""task-topology: keep the pods of a job together, or apart, as the job asks.

The default mode, `bucket`, follows `docs/design/task-topology-plugin.md` of Volcano: pods are placed bucket by
bucket, and a node scores the number of pods of the bucket that are on it or still fit on it; one that carries a
pod which this one should be apart from scores 0, and 1 less for each further one. Unless a weight is given, that comes before all other scores,
whatever their ranges, so that a bucket is not torn apart by a percent of load.

Mode `volcano` is what Volcano ships: the fullest bucket first, again after each pod, and
`(pods on the node + pods that fit + repulsion) · weight · 100 / largest bucket` added to the other scores.
"""

from collections.abc import Mapping

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.buckets.buckets import Bucket, Buckets
from pumice.scheduler.buckets.stacks import Stacks
from pumice.scheduler.buckets.task_rules import TopologyError, check_rules, read_rules
from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.points import SortKey
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView

_WEIGHT = "task-topology.weight"
_MODE = "task-topology.mode"
_FULL = 100.0
_COLUMNS = 64
"""Jobs of which columns are kept; beyond that those of the first one are dropped, and counted again when they are needed."""
_OUTSIDE = (1, 0, 0, 0, 0)


class TaskTopologyPlugin(LastingPlugin):
    """Orders pods by bucket and scores nodes by how much of a bucket they can hold."""

    def __init__(self, arguments: Arguments) -> None:
        self._is_volcano = arguments.text(_MODE) == "volcano"
        self._weight = arguments.integer(_WEIGHT)
        self._is_ranked = not self._is_volcano and not arguments.is_set(_WEIGHT)
        self._jobs: dict[str, Buckets] = {}
        self._stacks = Stacks()
        self._places: dict[str, dict[int, int]] = {}
        self._repelled: dict[str, dict[str, Ints]] = {}

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register order and scores if any job asks for it."""
        self.reopen(session)
        if not self._jobs:
            return
        register.task_order(self.task_key, moves=self._is_volcano)
        register.task_score(self.score, ranked=self._is_ranked)
        register.on_allocate(self._on_allocate)
        register.on_deallocate(self._on_deallocate)

    @property
    def lasts(self) -> bool:
        """Buckets serve one session."""
        return not self._jobs

    def reopen(self, session: SessionView) -> bool:
        """Build the buckets of the jobs that ask for it; they serve one session."""
        self._session = session
        for job in session.waiting:
            if job.group is None or not job.counts[PENDING]:
                continue
            annotations = job.group.metadata.annotations
            if not annotations:
                continue
            try:
                buckets = self._read(job, annotations)
            except TopologyError as error:
                session.warn(job, "TaskTopologyIgnored", f"task-topology is ignored: {error}")
                continue
            if buckets is not None:
                self._jobs[job.key] = buckets
                fullest = sorted(buckets.all, key=lambda each: (-len(each.pending), each.index))
                self._places[job.key] = {
                    bucket.index: place for place, bucket in enumerate(fullest)
                }
        return self.lasts

    def _read(self, job: JobInfo, annotations: Mapping[str, str]) -> Buckets | None:
        rules = read_rules(annotations, job.key)
        if rules is None:
            return None
        named = rules.tasks | set(job.min_task)
        roles = {task.key: role_in(task, named) for task in job.tasks.values()}
        check_rules(rules, {*roles.values(), *job.min_task}, job.key)
        return Buckets(
            rules,
            job.tasks.values(),
            lambda task: roles[task.key],
            outside=() if self._is_volcano else rules.conflicts(),
            as_volcano=self._is_volcano,
        )

    # -- order -------------------------------------------------------------------------------

    def task_key(self, task: TaskInfo) -> SortKey:
        """Pods of one bucket follow each other, those in no bucket come last."""
        buckets = self._jobs.get(task.job)
        bucket = buckets.of(task) if buckets else None
        if buckets is None or bucket is None:
            return _OUTSIDE
        if self._is_volcano:
            place = (-len(bucket.pending), bucket.index)
        else:
            place = (self._places[task.job][bucket.index], 0)
        return (0, *place, buckets.rank(task), -buckets.type(task))

    # -- scores ------------------------------------------------------------------------------

    def score(self, task: TaskInfo, rows: Rows) -> Floats | None:
        """How much of the pod's bucket each node can hold."""
        buckets = self._jobs.get(task.job)
        bucket = buckets.of(task) if buckets else None
        if buckets is None or bucket is None:
            return None
        counts = self.counts(task, buckets, bucket, rows)
        if self._is_ranked:
            return counts
        return counts * (self._weight * _FULL / buckets.largest)

    def counts(self, task: TaskInfo, buckets: Buckets, bucket: Bucket, rows: Rows) -> Floats:
        """Pods of the bucket that are or fit on each node, as the mode counts them."""
        others = buckets.others(task, bucket)
        stack = self._stacks.of(task, others, buckets.role_of)
        fitting = self._stacks.column(stack, rows, self._session.touched)
        counts = fitting.copy()
        for node, placed in bucket.placed.items():
            row = self._session.row_of(node)
            if row >= 0:
                counts[row] += placed.total()
        repelling = self._repelling(task, buckets, bucket)
        if repelling is not None and self._is_volcano:
            counts -= repelling
        elif repelling is not None:
            np.copyto(counts, 1 - repelling, where=repelling > 0)
        counts[fitting == 0] = 0
        return counts

    def _repelling(self, task: TaskInfo, buckets: Buckets, bucket: Bucket) -> Ints | None:
        """Pods of the job on each node that a pod should not be with; None where there are none at all.

        As designed, the pods of its own bucket do not count: it was put into the bucket although they repel it.
        """
        role = buckets.role_of(task)
        if not buckets.is_repelled(role):
            return None
        columns = self._repelled.get(task.job)
        if columns is None:
            if len(self._repelled) >= _COLUMNS:
                del self._repelled[next(iter(self._repelled))]
            columns = self._repelled[task.job] = {}
        found = columns.get(role)
        if found is None:
            found = columns[role] = self._repelled_again(buckets, role)
        if not self._is_volcano:
            for node, own in bucket.placed.items():
                number, row = buckets.attraction.repulsion(role, own), self._session.row_of(node)
                if number and row >= 0:
                    found = found.copy()
                    found[row] -= number
        return found if found.any() else None

    def _repelled_again(self, buckets: Buckets, role: str) -> Ints:
        found = np.zeros(len(self._session.node_names), dtype=np.int64)
        for node, placed in buckets.placed.items():
            row = self._session.row_of(node)
            if row >= 0:
                found[row] = buckets.attraction.repulsion(role, placed)
        return found

    # -- placements --------------------------------------------------------------------------

    def _on_allocate(self, task: TaskInfo, record: NodeRecord) -> None:
        buckets = self._jobs.get(task.job)
        if buckets is not None:
            buckets.place(task, record.name)
            self._count_repelled(task, buckets, record.row, 1)

    def _on_deallocate(self, task: TaskInfo, record: NodeRecord) -> None:
        buckets = self._jobs.get(task.job)
        if buckets is not None:
            buckets.take_back(task, record.name)
            self._count_repelled(task, buckets, record.row, -1)

    def _count_repelled(self, task: TaskInfo, buckets: Buckets, row: int, step: int) -> None:
        other = buckets.role_of(task)
        for role, column in self._repelled.get(task.job, {}).items():
            if row >= 0 and buckets.repels(role, other):
                column[row] += step


def role_in(task: TaskInfo, known: set[str]) -> str:
    """Task of a pod: what it says, or else the longest known one that its name ends with.

    `tf-ps-0` of a job without labels is a `ps`, as in Volcano 1.9.
    """
    if task.role:
        return task.role
    stem = task.name.rpartition("-")[0]
    fitting = [role for role in known if role and f"-{stem}".endswith(f"-{role}")]
    return max(fitting, key=lambda role: (len(role), role), default="")


SPEC = PluginSpec(
    name="task-topology",
    summary="Keeps the pods of a job together or apart as the job's annotations ask.",
    build=TaskTopologyPlugin,
    arguments=(
        SchedulerArgument(
            _WEIGHT,
            1,
            "Weight in the sum of scores; left out, buckets come before all other scores.",
        ),
        SchedulerArgument(
            _MODE,
            "bucket",
            "`bucket`: bucket by bucket, as designed; `volcano`: order and scores as Volcano has them.",
            choices=("bucket", "volcano"),
        ),
    ),
)
