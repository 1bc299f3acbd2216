"""nodegroup: which groups of nodes a queue may use, and which it would rather use.

A node belongs to the group that its label `volcano.sh/nodegroup-name` names; a queue says in `spec.affinity`
what it wants. By default the words mean what `docs/design/node-group.md` of Volcano says:

* required groups, if there are any, are the only ones besides the preferred;
* without them every group will do, the preferred ones first;
* a group in required anti-affinity is never used, whatever else is said of it;
* a group in preferred anti-affinity is used when nothing else has room.

Preferences come before the scores of other plugins, whatever their ranges. Mode `volcano` is what Volcano
ships: a queue must name every group that it uses, preferred anti-affinity beats required, and the score is
added to the others.
"""

import json
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from pumice.api import keys
from pumice.api.quantities import QuantityError, parse_milli
from pumice.api.queues import NodeGroupTerms, Queue, QueueAffinity
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Floats, Ints, in_units
from pumice.scheduler.model.facts import ABSENT
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_REQUIRED, _PREFERRED, _AVOIDED = 100.0, 50.0, -1.0

_HOLDING = (SchedulingStatus.BINDING, *VICTIMS)
"""Pods that take room in a group before a session decides anything."""

Limits = Mapping[str, Mapping[str, int]]


class GroupRules(msgspec.Struct, frozen=True):
    """What a queue says about node groups.

    Attributes:
        required: Groups to use.
        preferred: Groups to use first, in order.
        forbidden: Groups never to use.
        avoided: Groups to use last.
    """

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    @classmethod
    def of(cls, affinity: QueueAffinity) -> "GroupRules":
        """Rules of a queue's affinity."""
        wanted = affinity.node_group_affinity or NodeGroupTerms()
        unwanted = affinity.node_group_anti_affinity or NodeGroupTerms()
        return cls(
            tuple(wanted.required),
            tuple(wanted.preferred),
            tuple(unwanted.required),
            tuple(unwanted.preferred),
        )

    def allows(self, group: str) -> bool:
        """Whether a group may be used, as `docs/design/node-group.md` of Volcano says."""
        if group in self.forbidden:
            return False
        if group in self.avoided or group in self.preferred:
            return True
        return group in self.required if self.required else True

    def allows_as_volcano(self, group: str) -> bool:
        """Whether a group may be used, as Volcano decides: what is said last counts."""
        if group in self.avoided:
            return True
        if group in self.forbidden:
            return False
        return group in self.required or group in self.preferred

    def score(self, group: str, *, ordered: bool) -> float:
        """How much a group is wanted; `ordered`: earlier preferred groups are worth more than later ones."""
        if group in self.avoided:
            return _AVOIDED
        score = _REQUIRED if group in self.required else 0.0
        if group in self.preferred:
            count = len(self.preferred)
            rank = self.preferred.index(group) if ordered else 0
            score += _PREFERRED * (count - rank) / count
        return score


class NodeGroup(LastingPlugin):
    """Filters and scores nodes by the wishes of the queue."""

    def __init__(self, arguments: Arguments) -> None:
        self._is_volcano = arguments.text("nodegroup.mode") == "volcano"
        self._is_strict = arguments.flag("strict")
        self._is_open = arguments.flag("nodegroup.open")
        self._is_ordered = arguments.flag("enablePreferredOrder")
        self._is_hierarchical = False
        self._queues: Sequence[Queue] | None = None
        self._limits: dict[str, Limits | None] = {}
        self._used: dict[tuple[str, str], Ints] = {}

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the filter and the scorer."""
        self._is_hierarchical = register.is_on("enableHierarchy")
        register.alike_queues(self._kind)
        register.node_filter(self._judge, by_rules=True, wakes=Cause.NODES)
        register.node_score(self._score, ranked=not self._is_volcano, by_rules=True)
        self.reopen(session)
        if self._limits:
            self._count_used()
            register.node_filter(self._judge_limits, scope="all", wakes=Cause.NODES)
            register.on_allocate(lambda task, record: self._note(task, record.name, 1))
            register.on_deallocate(lambda task, record: self._note(task, record.name, -1))

    @property
    def lasts(self) -> bool:
        """What is counted for queues with limits serves one session."""
        return not self._limits

    def reopen(self, session: SessionView) -> bool:
        """Begin a session, with the limits of queues as they are now."""
        self._session = session
        if self._queues is not session.shares.queues:  # one of them has changed
            self._queues = session.shares.queues
            limits = [
                (queue.metadata.name, text)
                for queue in self._queues
                if queue.metadata.annotations
                and (text := queue.metadata.annotation(keys.NODE_GROUP_LIMITS))
            ]
            self._limits = {name: _read_limits(text) for name, text in limits}
        return self.lasts

    def _kind(self, queue: str) -> str | None:
        """Queues that may use every node, and prefer none, are alike."""
        has_rules = not self._is_open or queue in self._limits or self._rules(queue) is not None
        return queue if has_rules else None

    # -- wishes ------------------------------------------------------------------------------

    def _rules(self, queue: str) -> GroupRules | None:
        """Rules of a queue, or with `enableHierarchy` of its nearest ancestor that has some."""
        seen: set[str] = set()
        name = queue
        while name not in seen:
            seen.add(name)
            found: Queue | None = self._session.queues.get(name)
            affinity = found.spec.affinity if found else None
            if affinity is not None:
                return GroupRules.of(affinity)
            if not self._is_hierarchical:
                return None
            name = (found.spec.parent if found else "") or keys.ROOT_QUEUE
        return None

    def _judge(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        rules = self._rules(pods.queue)
        text = f"node(s) are in no node group that queue {pods.queue} may use"
        if rules is None:
            if self._is_open:
                return None
            refused = np.ones(len(self._session.node_names), dtype=np.int64)
            if not self._is_strict:
                refused[self._session.facts.label(keys.NODE_GROUP).codes == ABSENT] = 0
            return FilterResult(refused[rows.index], (text,))
        allows = rules.allows_as_volcano if self._is_volcano else rules.allows
        groups = self._session.facts.label(keys.NODE_GROUP)
        codes = groups.numbers(lambda group: not allows(group), absent=1.0)
        return FilterResult(codes[rows.index].astype(np.int64), (text,))

    def _score(self, pods: PodClass, _rows: Rows) -> Floats | None:
        rules = self._rules(pods.queue)
        if rules is None:
            return None
        groups = self._session.facts.label(keys.NODE_GROUP)
        return groups.numbers(lambda group: rules.score(group, ordered=self._is_ordered))

    # -- limits ------------------------------------------------------------------------------

    def _count_used(self) -> None:
        """What pods of queues with limits hold in each group."""
        for job in self._session.jobs.values():
            if job.queue in self._limits or job.elsewhere:
                for task in job.tasks.values():
                    if task.status in _HOLDING:
                        self._note(task, task.node, 1)

    def _note(self, task: TaskInfo, node: str, sign: int) -> None:
        job = self._session.jobs.get(task.job)
        group = self._group_of(node)
        queue = job.holder(task).queue if job is not None else ""
        if queue not in self._limits or not group:
            return
        used = self._used.get((queue, group), 0)
        self._used[queue, group] = used + sign * task.shape.vector

    def _group_of(self, node: str) -> str:
        row = self._session.row_of(node)
        column = self._session.facts.label(keys.NODE_GROUP)
        place = column.codes[row] if row >= 0 else ABSENT
        return column.values[place] if place != ABSENT else ""

    def _judge_limits(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        if pods.queue not in self._limits:
            return None
        limits = self._limits[pods.queue]
        if limits is None:
            text = f"node group limits of queue {pods.queue} cannot be read"
            return FilterResult(np.ones(len(rows), dtype=np.int64), (text,))
        groups = self._session.facts.label(keys.NODE_GROUP)
        codes = groups.numbers(lambda group: self._exceeds(pods, group, limits))
        text = f"node group limits of queue {pods.queue} exceeded"
        return FilterResult(codes.astype(np.int64)[rows.index], (text,))

    def _exceeds(self, pods: PodClass, group: str, limits: Limits) -> bool:
        used = self._used.get((pods.queue, group))
        for resource, limit in limits.get(group, {}).items():
            column = self._session.column(resource)
            if column is None:
                continue
            wanted = int(pods.shape.vector[column])
            if wanted and wanted + (int(used[column]) if used is not None else 0) > in_units(
                column, limit, has=True
            ):
                return True
        return False


_LONGEST = 64 * 1024
"""Characters of limits that are read."""


def _read_limits(text: str) -> Limits | None:
    """Limits by group and resource in milli-units; None when the text cannot be read."""
    if len(text) > _LONGEST:
        return None
    try:
        document = json.loads(text)
        return {
            str(group): {str(name): parse_milli(value) for name, value in resources.items()}
            for group, resources in document.items()
        }
    except (ValueError, AttributeError, RecursionError, QuantityError):
        return None


SPEC = PluginSpec(
    name="nodegroup",
    summary="Keeps the pods of a queue to the node groups that the queue names.",
    build=NodeGroup,
    arguments=(
        SchedulerArgument(
            "strict", True, "Whether nodes of no group are closed to queues that name none."
        ),
        SchedulerArgument(
            "nodegroup.open",
            False,
            "Whether queues that name no groups may use every node; Pumice's own configuration says so.",
        ),
        SchedulerArgument(
            "enablePreferredOrder",
            False,
            "Whether earlier preferred groups are worth more than later ones.",
        ),
        SchedulerArgument(
            "nodegroup.mode",
            "design",
            "`design`: what the words say; `volcano`: what Volcano makes of them.",
            choices=("design", "volcano"),
        ),
    ),
)
