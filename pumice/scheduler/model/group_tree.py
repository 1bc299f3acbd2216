"""Groups of pods in a tree of their marks, so that the groups of a pod are found by its own marks.

The way from the root to a group is its marks in one order. A pod is only compared with groups that begin with marks which it has:
groups that differ in one value are branches of one node, of which a pod takes a single one.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Literal

from pumice.scheduler.model.affinity_terms import Selection
from pumice.scheduler.model.domains import DomainCounts
from pumice.scheduler.model.peer_groups import HAS_LABEL, Mark
from pumice.scheduler.model.tasks import TaskInfo

Side = Literal["repelling", "attracting"]


class PeerClass:
    """Pods of one namespace that no term tells apart.

    Attributes:
        groups: Groups that they belong to, in the order of their numbers.
        signature: These numbers.
        marks: The marks of the pods, as far as selectors name their keys.
    """

    __slots__ = ("groups", "key", "labels", "marks", "namespace", "signature", "tallies", "tasks")

    def __init__(
        self, key: Hashable, namespace: str, labels: Mapping[str, str], marks: dict[Mark, None]
    ) -> None:
        self.key = key
        self.namespace = namespace
        self.labels = labels
        self.marks = marks
        self.tasks: dict[str, TaskInfo] = {}
        self.groups: tuple[PeerGroup, ...] = ()
        self.signature: tuple[int, ...] = ()
        self.tallies: list[DomainCounts] = []

    def belong(self, groups: "Iterable[PeerGroup]") -> None:
        """Set the groups, all of which have members."""
        self.groups = tuple(sorted(groups, key=lambda group: group.number))
        self.signature = tuple([group.number for group in self.groups])
        self.tallies = [each.members.tally for each in self.groups if each.members]


class Held:
    """What pods on nodes ask of other pods.

    Attributes:
        by_side: By side and topology key: `repelling` are pods with a required anti-affinity to them, `attracting` those that would
            rather, or rather not, be near to them, as sums of weights.
    """

    __slots__ = ("by_side",)

    def __init__(self) -> None:
        self.by_side: dict[Side, dict[str, DomainCounts]] = {"repelling": {}, "attracting": {}}

    def of(self, side: Side, key: str) -> DomainCounts:
        """The counts of one side by a topology key."""
        counts = self.by_side[side]
        found = counts.get(key)
        if found is None:
            found = counts[key] = DomainCounts()
        return found

    def tallies(self) -> Iterator[DomainCounts]:
        """All counts."""
        for counts in self.by_side.values():
            yield from counts.values()

    def asks(self) -> bool:
        """Whether pods ask anything, also those without a node."""
        return any(self.by_side.values())

    def merge(self, other: "Held", times: int) -> None:
        """Count all that another one counts."""
        for side, counts in other.by_side.items():
            for key, tally in counts.items():
                self.of(side, key).merge(tally, times)


class GroupMembers(Held):
    """What is kept about a group to which pods belong."""

    __slots__ = ("classes", "tally")

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[PeerClass, None] = {}
        self.tally = DomainCounts()

    def tallies(self) -> Iterator[DomainCounts]:
        """All counts."""
        yield self.tally
        yield from super().tallies()


class PeerGroup:
    """A group of pods, or the beginning of others.

    Attributes:
        number: Identity, unique while the group is in use.
        users: Terms whose sum it is part of; 0 for one that is only the beginning of others.
        members: What is kept about it; None while no pod belongs to it, as to most of those that selectors name.
        parent: The group with one mark or condition less; None for all pods.
        step: That mark or condition.
    """

    __slots__ = ("branches", "conditions", "members", "number", "parent", "step", "users")

    def __init__(
        self, parent: "PeerGroup | None" = None, step: Mark | Selection | None = None
    ) -> None:
        self.number = -1
        self.users = 0
        self.members: GroupMembers | None = None
        self.parent = parent
        self.step = step
        self.branches: dict[Mark, PeerGroup] = {}
        self.conditions: dict[Selection, PeerGroup] = {}

    def steps(self) -> "Iterator[Mark | Selection]":
        """Its marks and conditions, the last one first."""
        group = self
        while group.parent is not None and group.step is not None:
            yield group.step
            group = group.parent


class GroupTree:
    """All groups in use.

    Attributes:
        compared: How many groups and beginnings of groups pods have been compared with.
    """

    def __init__(self) -> None:
        self._root = PeerGroup()
        self._next = 0
        self.compared = 0

    def use(self, steps: Iterable[Mark | Selection]) -> PeerGroup:
        """The group of these marks and conditions, for one more term."""
        group = self._root
        for step in sorted(steps, key=_order):
            new = PeerGroup(group, step)
            if isinstance(step, Selection):
                group = group.conditions.setdefault(step, new)
            else:
                group = group.branches.setdefault(step, new)
        if not group.users:
            group.number = self._next
            self._next += 1
        group.users += 1
        return group

    def release(self, group: PeerGroup) -> bool:
        """Count a term less; True if it was the last one, and the group is forgotten."""
        group.users -= 1
        if group.users:
            return False
        leaf = group
        while leaf.parent is not None and not (leaf.users or leaf.branches or leaf.conditions):
            if isinstance(leaf.step, Selection):
                del leaf.parent.conditions[leaf.step]
            elif leaf.step is not None:
                del leaf.parent.branches[leaf.step]
            leaf = leaf.parent
        return True

    def having(
        self, marks: Collection[Mark], fulfils: Callable[[Selection], bool]
    ) -> list[PeerGroup]:
        """The groups of which pods with these marks have all marks and fulfil all conditions, in the order of their numbers."""
        found: list[PeerGroup] = []
        ways = [self._root]
        while ways:
            self.compared += 1
            group = ways.pop()
            if group.users:
                found.append(group)
            branches = group.branches
            fewer, others = (marks, branches) if len(marks) < len(branches) else (branches, marks)
            ways.extend([branches[mark] for mark in fewer if mark in others])
            self.compared += len(group.conditions)
            ways.extend(each for step, each in group.conditions.items() if fulfils(step))
        found.sort(key=lambda group: group.number)
        return found


def _order(step: Mark | Selection) -> tuple[int, str, str]:
    """Namespaces first, which most groups begin with; conditions last."""
    if isinstance(step, Selection):
        return HAS_LABEL + 1, repr(step), ""
    about, key, value = step
    return about, key, value or ""
