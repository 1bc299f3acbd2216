"""Sub-groups of a gang: smaller gangs inside it, which policies of its PodGroup make of its pods, and counters that are updated with the pods.

A pod belongs to the first policy, in the order of the list, whose selector it matches and of whose keys it has a value each.
Pods of one policy with equal values of all keys are one sub-group; without keys all its pods are one.

A PodGroup has any number of policies, and so has each of its pods labels. Policies are found by the labels that they require, so that
a pod is compared with few; where that does not suffice, no pod belongs to any, and the gang waits and says why.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pumice.api.jobs import NetworkTopology
from pumice.api.messages import listed
from pumice.api.meta import LabelExpression, LabelSelector, labels_match
from pumice.api.podgroups import SubGroupPolicy
from pumice.scheduler.model.tasks import READY, SchedulingStatus, TaskInfo
from pumice.scheduler.results import Reason

MOST_COMPARED = 256
"""Labels of a pod that are looked at to find out to which sub-group it belongs."""

_HOLDS, _PROMISED, _WAITS, _DONE_FOR = range(4)
"""Levels of pods. A pod counts for its own and for those after it, but the last one counts for none."""

_LEVEL = tuple(
    _HOLDS
    if status in READY
    else {SchedulingStatus.PIPELINED: _PROMISED, SchedulingStatus.PENDING: _WAITS}.get(
        status, _DONE_FOR
    )
    for status in SchedulingStatus
)

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_LARGEST_COUNT = (1 << 31) - 1


class PolicyCount:
    """A policy, and how many sub-groups it has.

    Attributes:
        place: Its place in the list of the PodGroup.
        minimum: Sub-groups that must start together.
        size: Pods of each that must start together.
        keys: Labels whose values tell its sub-groups apart.
        expressions: What its pods must fulfil besides the labels by which it is found.
        complete: How many of its sub-groups are ready, are ready or promised, and have pods enough.
        partial: Pods that hold places in sub-groups that are not ready.
    """

    __slots__ = ("complete", "expressions", "keys", "minimum", "partial", "place", "policy", "size")

    def __init__(self, place: int, policy: SubGroupPolicy) -> None:
        self.place = place
        self.policy = policy
        self.minimum = min(max(policy.min_sub_groups or 0, 0), _LARGEST_COUNT)
        self.size = min(max(policy.sub_group_size or 1, 1), _LARGEST_COUNT)
        self.keys = tuple(policy.match_label_keys or ())
        selector = policy.label_selector or LabelSelector()
        self.expressions: list[LabelExpression] = [
            (each.key, each.operator, frozenset(each.values or ()))
            for each in selector.match_expressions or ()
        ]
        self.complete = [0, 0, 0]
        self.partial = 0

    @property
    def ready(self) -> int:
        """Sub-groups that are ready."""
        return self.complete[_HOLDS]

    @property
    def promised(self) -> int:
        """Sub-groups that are ready or promised."""
        return self.complete[_PROMISED]

    @property
    def valid(self) -> int:
        """Sub-groups that have pods enough."""
        return self.complete[_WAITS]

    def fitting(self, fit: int) -> str:
        """What messages say when so many of its sub-groups fit."""
        return f"{fit} of {self.valid} sub-groups of {self.title} fit ({self.minimum} needed)"

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.policy.name or f"subGroupPolicy[{self.place}]"

    def key_of(self, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """Values of its keys; None if the policy does not apply to a pod with these labels."""
        if self.expressions and not labels_match(self.expressions, labels):
            return None
        values: list[str] = []
        for key in self.keys:
            value = labels.get(key)
            if not value:
                return None
            values.append(value)
        return tuple(values)


class SubGroup:
    """Pods of a gang that start together.

    Attributes:
        of: Its policy, with the counts of its sub-groups.
        key: Values of the keys of the policy.
        reach: Pods that hold a place, that hold one or are promised one, and that do, are, or wait for one.
    """

    __slots__ = ("key", "of", "reach", "tasks")

    def __init__(self, of: PolicyCount, key: tuple[str, ...]) -> None:
        self.of = of
        self.key = key
        self.tasks: dict[str, TaskInfo] = {}
        self.reach = [0, 0, 0]

    @property
    def size(self) -> int:
        """Pods that must start together."""
        return self.of.size

    @property
    def topology(self) -> NetworkTopology | None:
        """How near to each other its pods must be."""
        return self.of.policy.network_topology

    @property
    def ready(self) -> int:
        """Pods that hold places, those that failed while their gang began included."""
        return self.reach[_HOLDS]

    @property
    def pipelined(self) -> int:
        """Pods that are promised a place."""
        return self.reach[_PROMISED] - self.reach[_HOLDS]

    @property
    def is_ready(self) -> bool:
        """Whether so many pods hold places as must start together."""
        return self.reach[_HOLDS] >= self.of.size

    @property
    def is_pipelined(self) -> bool:
        """Whether so many pods hold places or are promised one."""
        return self.reach[_PROMISED] >= self.of.size

    @property
    def is_valid(self) -> bool:
        """Whether it has so many pods that are not done for."""
        return self.reach[_WAITS] >= self.of.size

    @property
    def order(self) -> tuple[int, int, tuple[str, ...]]:
        """The value of the first label as a number, 0 if it is none; then the policy, and all values. No two are equal."""
        first = self.key[0] if self.key else ""
        number = int(first) if _NUMBER.fullmatch(first) else 0
        return number, self.of.place, self.key

    @property
    def turn(self) -> tuple[bool, tuple[int, int, tuple[str, ...]]]:
        """Sort key among those that the gang requires equally: one that holds places is first, since they are of no use without the rest."""
        return not self.reach[_HOLDS], self.order

    @property
    def valid(self) -> int:
        """Pods that hold a place, are promised one, or wait."""
        return self.reach[_WAITS]


class SubGroups:
    """The sub-groups of a gang.

    Attributes:
        policies: Its policies, in the order of the list.
        is_read: Whether pods belong to sub-groups; not if too many labels would have to be compared.
    """

    __slots__ = ("_early", "_groups", "_of", "_short", "_ways", "is_read", "policies")

    def __init__(self, policies: Sequence[SubGroupPolicy], tasks: Iterable[TaskInfo]) -> None:
        """Divide the pods of a gang."""
        self.policies = [PolicyCount(place, policy) for place, policy in enumerate(policies)]
        self._ways = _ways(self.policies)
        self.is_read = _compared(self._ways) <= MOST_COMPARED
        self._groups: dict[tuple[int, tuple[str, ...]], SubGroup] = {}
        self._of: dict[str, SubGroup] = {}
        self._early: Collection[TaskInfo] = ()
        self._short = [sum(each.minimum > 0 for each in self.policies)] * 3
        for task in tasks:
            self.add(task)

    def __iter__(self) -> Iterator[SubGroup]:
        return iter(self._groups.values())

    def of(self, task: TaskInfo) -> SubGroup | None:
        """The sub-group of one of its pods; None for a pod that is in none."""
        return self._of.get(task.key)

    # -- pods --------------------------------------------------------------------------------

    def add(self, task: TaskInfo) -> None:
        """Count a pod."""
        found = self._find(task.labels or {}) if self.is_read else None
        if found is None:
            return
        of, key = found
        group = self._groups.get((of.place, key))
        if group is None:
            group = self._groups[of.place, key] = SubGroup(of, key)
        group.tasks[task.key] = task
        self._of[task.key] = group
        self._count(group, _LEVEL[task.status], _DONE_FOR, 1)

    def discard(self, task: TaskInfo) -> None:
        """Count a pod no more."""
        group = self._of.pop(task.key, None)
        if group is None:
            return
        if task in self._early:
            self._early = [each for each in self._early if each is not task]
            self._count(group, _HOLDS, _DONE_FOR, -1)
        self._count(group, _LEVEL[task.status], _DONE_FOR, -1)
        del group.tasks[task.key]
        if not group.tasks:
            del self._groups[group.of.place, group.key]

    def move(self, task: TaskInfo, old: SchedulingStatus, new: SchedulingStatus) -> None:
        """Count a pod that has got another status."""
        before, after = _LEVEL[old], _LEVEL[new]
        if before != after and (group := self._of.get(task.key)) is not None:
            self._count(group, after, before, 1)
            self._count(group, before, after, -1)

    def count_early(self, failed: Collection[TaskInfo]) -> None:
        """Count pods that failed while the gang began, instead of those that were counted before; see `JobInfo.failed_at_start`."""
        if failed is self._early:
            return
        for tasks, step in ((self._early, -1), (failed, 1)):
            for task in tasks:
                if (group := self._of.get(task.key)) is not None:
                    self._count(group, _HOLDS, _DONE_FOR, step)
        self._early = failed

    def is_alike(self, old: TaskInfo, new: TaskInfo) -> bool:
        """Whether two pods, one of which takes the place of the other, belong to the same sub-group."""
        if old.labels == new.labels or not self.is_read:
            return True
        return self._find(old.labels or {}) == self._find(new.labels or {})

    def _count(self, group: SubGroup, first: int, end: int, step: int) -> None:
        """Count a pod once more (1) or no more (-1) for some levels."""
        of = group.of
        for level in range(first, end):
            before = group.reach[level]
            group.reach[level] = after = before + step
            if level == _HOLDS:
                of.partial += after * (after < of.size) - before * (before < of.size)
            if (before >= of.size) is (after >= of.size):
                continue
            was = of.complete[level] < of.minimum
            of.complete[level] += step
            self._short[level] += (of.complete[level] < of.minimum) - was

    def _find(self, labels: Mapping[str, str]) -> tuple[PolicyCount, tuple[str, ...]] | None:
        """The policy of a pod with these labels, and the values of its keys."""
        found: tuple[PolicyCount, tuple[str, ...]] | None = None
        for names, way in self._ways.items():
            for of in way.get(tuple([labels.get(name) for name in names]), ()):
                if found is not None and found[0].place < of.place:
                    break
                if (key := of.key_of(labels)) is not None:
                    found = of, key
                    break
        return found

    # -- queries -----------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether each policy has its minimum of sub-groups that are ready."""
        return not self._short[_HOLDS]

    def is_pipelined(self) -> bool:
        """The same, places that are promised included."""
        return not self._short[_PROMISED]

    def lacking(self) -> int:
        """Pods that must at least find places before each policy has its minimum."""
        if not self._short[_HOLDS]:
            return 0
        return sum(
            max(missing, missing * each.size - each.partial)
            for each in self.policies
            if (missing := each.minimum - each.ready) > 0
        )

    def why_invalid(self) -> Reason | None:
        """Why there are too few sub-groups with pods enough, on any nodes."""
        if not self.is_read:
            path = "spec.subGroupPolicy"
            message = (
                f"to find the sub-group of a pod, more than {MOST_COMPARED} of its labels would have to be compared ({path}); "
                "tell the policies apart by matchLabels, instead of by matchExpressions"
            )
            return Reason("UnsupportedRule", message, {"fields": [path]}, (path,))
        if not self._short[_WAITS]:
            return None
        lacking = {
            each.title: (each.valid, each.minimum)
            for each in self.policies
            if each.valid < each.minimum
        }
        return too_few(
            "subGroups", "subGroups", "sub-groups to be created: it has enough for", lacking
        )

    def turns(self) -> dict[SubGroup | None, int]:
        """When each sub-group is served, the first one first: those that the gang requires, pods that are in none, others that are not ready, and the rest."""
        lacking = [each.minimum - each.ready for each in self.policies]
        required: list[SubGroup] = []
        others: list[SubGroup] = []
        for group in sorted(self._groups.values(), key=lambda group: group.turn):
            is_required = not group.is_ready and group.is_valid and lacking[group.of.place] > 0
            lacking[group.of.place] -= is_required
            (required if is_required else others).append(group)
        others.sort(key=lambda group: group.is_ready)
        return {group: turn for turn, group in enumerate([*required, None, *others])}


class SubGroupLosses:
    """Which pods sub-groups can do without, one after the other."""

    def __init__(self) -> None:
        self._lost: dict[tuple[int, SubGroup], int] = {}
        self._spare: dict[tuple[int, PolicyCount], int] = {}

    def takes(self, group: SubGroup | None, scope: int = 0) -> bool:
        """Take a pod of a sub-group, or of none, if its gang does not lose a sub-group that it requires; whether it does not.

        The first pod without which a sub-group is incomplete uses up one of those that the gang does not require; the others are then
        free to go. Pods of other scopes count as if they stayed.
        """
        if group is None or not group.is_ready:
            return True
        gone = self._lost.get((scope, group), 0)
        if gone == group.ready - group.size:
            spare = self._spare.get((scope, group.of), group.of.ready - group.of.minimum)
            if spare <= 0:
                return False
            self._spare[scope, group.of] = spare - 1
        self._lost[scope, group] = gone + 1
        return True


def too_few(what: str, field: str, plain: str, lacking: Mapping[str, tuple[int, int]]) -> Reason:
    """That a gang has too few pods on any nodes, by task or policy: how many it has, and how many it needs."""
    text = listed([f"{name}: {has} of {needs}" for name, (has, needs) in lacking.items()])
    return Reason(
        "NotEnoughPodsOfTask",
        f"Not enough valid {what} of each task for gang-scheduling, {text}",
        {field: {name: {"valid": has, "min": needs} for name, (has, needs) in lacking.items()}},
        plain=f"waits for pods of its {plain} {text}",
    )


_Way = dict[tuple[str | None, ...], list[PolicyCount]]


def _ways(policies: Iterable[PolicyCount]) -> dict[tuple[str, ...], _Way]:
    """Policies by the labels that they require: by their names, and then by their values."""
    ways: dict[tuple[str, ...], _Way] = {}
    for each in policies:
        selector = each.policy.label_selector
        labels = sorted((selector.match_labels or {}).items()) if selector is not None else []
        way = ways.setdefault(tuple([name for name, _ in labels]), {})
        way.setdefault(tuple([value for _, value in labels]), []).append(each)
    return ways


def _compared(ways: Mapping[tuple[str, ...], _Way]) -> int:
    """Labels of a pod that are looked at, at most."""
    return sum(
        1 + len(names) + max(sum(len(of.expressions) + len(of.keys) for of in found) for found in way.values())
        for names, way in ways.items()
    )  # fmt: skip
