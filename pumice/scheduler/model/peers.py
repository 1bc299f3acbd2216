"""Pods as targets of other pods' terms: which terms they match, and how many pods match or have a term on each node.

Terms of pods are interned and counted by their users. What a term selects is a sum of groups of pods (`peer_groups`), which many
terms share, and only groups are counted. Labels matter as far as selectors of these terms name their keys: pods of a namespace
with equal values of these keys are of one class, and only classes are compared with groups. While no pod says anything about other
pods, nothing is kept.

Terms, classes and their counts are in one file because each of them changes with the others.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set

from pumice.scheduler.model.affinity_terms import PeerRules, Selection, TermKey, holds
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.domains import DomainCounts, PodCounts, total
from pumice.scheduler.model.group_tree import (
    GroupMembers,
    GroupTree,
    Held,
    PeerClass,
    PeerGroup,
    Side,
)
from pumice.scheduler.model.peer_groups import (
    HAS_LABEL,
    IN_NAMESPACE,
    IS_KNOWN,
    NAMESPACE_HAS_LABEL,
    Mark,
    groups_of,
)
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import NEEDS_ROOM, PIPELINED, TaskInfo

Labels = Mapping[str, str]
Place = Callable[[TaskInfo], int]
"""Row of the node of a pod; below 0 when there is none."""


class PeerTerm:
    """Pods that terms of pods select.

    Attributes:
        users: Rules that have it.
        held: What pods with the term, on nodes, ask of those that it selects.
        groups: The groups of which it is the sum, and how often it counts each.
        is_indexed: Whether they are known; they are from the next `settle` on.
    """

    __slots__ = ("groups", "held", "is_indexed", "key", "users")

    def __init__(self, key: TermKey) -> None:
        self.key = key
        self.users = 0
        self.held = Held()
        self.groups: tuple[tuple[PeerGroup, int], ...] = ()
        self.is_indexed = False


class _Rules:
    """The rules of some pods, in use.

    Attributes:
        terms: Terms that they name, each once.
        asked: Terms that pods hold, on which side of `Held`, by which topology key, and with which weight.
        own: The counts of these terms.
        counts: These, and those of the groups of these terms.
        moment: When the latter were collected.
    """

    __slots__ = ("asked", "counts", "moment", "own", "terms", "users")

    def __init__(self) -> None:
        self.users = 0
        self.terms: dict[PeerTerm, None] = {}
        self.asked: list[tuple[PeerTerm, Side, str, int]] = []
        self.own: list[tuple[DomainCounts, int]] = []
        self.counts: list[tuple[DomainCounts, int]] = []
        self.moment = -1

    def ask(self, term: PeerTerm, side: Side, key: str, weight: int) -> None:
        """Add a term that the pods hold."""
        self.terms[term] = None
        self.asked.append((term, side, key, weight))
        self.own.append((term.held.of(side, key), weight))


class PeerTable:
    """All terms in use, and the pods that they concern.

    Attributes:
        is_live: Whether any pod says anything about other pods.
    """

    def __init__(self) -> None:
        self.is_live = False
        self.terms: dict[TermKey, PeerTerm] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self._rules: dict[PeerRules, _Rules] = {}
        self._moment = 0
        self._forget()

    def _forget(self) -> None:
        self.tree = GroupTree()
        self._keys: set[str] | None = None
        self._namespace_keys: set[str] = set()
        self._known_namespaces = True
        self._is_prepared = True
        self._new: dict[PeerTerm, None] = {}
        self._matched: dict[PeerGroup, None] = {}
        self._uncounted: dict[PeerGroup, None] = {}
        self._fresh: dict[PeerGroup, None] = {}
        self._with_members: dict[PeerGroup, GroupMembers] = {}
        self._sums: dict[TermKey, PodCounts] = {}
        self._classes: dict[Hashable, PeerClass] = {}
        self._of: dict[str, PeerClass] = {}
        self._classes_by_mark: dict[Mark, dict[PeerClass, None]] = {}
        self._marks_of_namespace: dict[str, tuple[Mark, ...]] = {}

    # -- events --------------------------------------------------------------------------------

    def set_namespace(self, name: str, labels: Labels) -> bool:
        """Set the labels of a namespace; True if they changed."""
        if self.namespaces.get(name) == labels:
            return False
        self.namespaces[name] = dict(labels)
        return self._namespaces_changed()

    def remove_namespace(self, name: str) -> bool:
        """Remove a namespace; True if it existed."""
        if self.namespaces.pop(name, None) is None:
            return False
        return self._namespaces_changed()

    def _namespaces_changed(self) -> bool:
        if not self._namespace_keys and not any(_namespace_keys(term) for term in self._new):
            return False
        self._known_namespaces = False
        return True

    def use(self, shape: PodShape) -> None:
        """Count one more pod of a shape."""
        if shape.peers is None:
            return
        rules = self._rules.get(shape.peers)
        if rules is None:
            rules = self._rules[shape.peers] = self._begin(shape.peers)
            self.is_live = True
        rules.users += 1

    def release(self, shape: PodShape) -> None:
        """Count one pod less; terms that no pod uses any more are forgotten."""
        if shape.peers is None:
            return
        rules = self._rules[shape.peers]
        rules.users -= 1
        if rules.users:
            return
        del self._rules[shape.peers]
        for term in rules.terms:
            term.users -= 1
            if not term.users:
                self._end(term)
        if not self.terms:
            self.is_live = False
            self._forget()

    def join(self, task: TaskInfo) -> None:
        """Note the class of a pod that is not on a node yet."""
        if self._keys is not None:
            found = self._class_for(task, self._keys)
            found.tasks[task.key] = task
            self._of[task.key] = found

    def part(self, task: TaskInfo) -> None:
        """Remove a pod that is no longer on a node."""
        found = self._of.pop(task.key, None)
        if found is None:
            return
        found.tasks.pop(task.key, None)
        if not found.tasks:
            self._drop_class(found)

    def is_alike(self, old: TaskInfo, new: TaskInfo) -> bool:
        """Whether no term tells two versions of a pod apart."""
        known = self._of.get(old.key)
        return known is None or known.key == _class_key(new, self._keys or set())[0]

    # -- counting ------------------------------------------------------------------------------

    def count(self, task: TaskInfo, row: int, sign: int) -> None:
        """Count a pod on a node, or take it back (-1), by its status."""
        status = task.status
        if task.shape.peers is not None:
            rules = self._rules[task.shape.peers]
            if rules.moment != self._moment:
                self._collect(rules)
            for tally, weight in rules.counts:
                tally.add(row, status, sign * weight)
        known = self._of.get(task.key)
        if known is not None:
            for tally in known.tallies:
                tally.add(row, status, sign)

    def reorder(self, moved: Ints) -> None:
        """Apply a new order of the node table: the new row of each old row, -1 for a removed one."""
        for term in self.terms.values():
            for tally in term.held.tallies():
                tally.reorder(moved)
        for members in self._with_members.values():
            for tally in members.tallies():
                tally.reorder(moved)

    def forget_views(self) -> None:
        """Drop counts by domain: those of a session that has ended know neither new rows nor new labels."""
        self._sums.clear()
        for members in self._with_members.values():
            for tally in members.tallies():
                tally.forget_views()

    def class_of(self, task: TaskInfo) -> PeerClass | None:
        """The class of a pod; None while no pod says anything about other pods."""
        return self._of.get(task.key)

    def signature(self, task: TaskInfo) -> tuple[int, ...]:
        """A key that is equal only for pods that match the same terms."""
        found = self._of.get(task.key)
        return found.signature if found is not None else ()

    def tally(self, key: TermKey) -> PodCounts:
        """The pods that a term selects."""
        found = self._sums.get(key)
        if found is None:
            groups = self.terms[key].groups
            parts = [(each.members.tally, times) for each, times in groups if each.members]
            found = self._sums[key] = total(parts)
        return found

    def selects(self, key: TermKey, pods: PeerClass | None) -> bool:
        """Whether a term selects pods of a class."""
        return pods is not None and all(
            holds(part.selector, pods.labels)
            and (
                pods.namespace in part.namespaces
                or part.namespace_selector == ()
                or (
                    pods.namespace in self.namespaces
                    and holds(part.namespace_selector, self.namespaces[pods.namespace])
                )
            )
            for part in key
        )

    # -- before a session ------------------------------------------------------------------------

    def preparing(self, tasks: Mapping[str, TaskInfo]) -> Iterator[None]:
        """Look at the labels of all pods for the first time, one pod after the other; `settle` would do it at once.

        Pods may come, change and go between two of them.
        """
        if not self.is_live or self._keys is not None:
            return
        for term in self._new:
            self._index(term)
        self._learn_keys(self._new)
        matched, self._is_prepared = dict(self._uncounted), False
        for key, task in list(tasks.items()):
            if tasks.get(key) is task:
                self.join(task)
            yield
        self._matched, self._is_prepared = matched, True

    def settle(self, tasks: Collection[TaskInfo], place: Place) -> None:
        """Find the pods that new terms select; a cycle does this first."""
        if not self.is_live:
            return
        self.forget_views()
        if not self._known_namespaces or not self._is_prepared:
            self._known_namespaces = self._is_prepared = True
            self._keys = None
        if not self._new and not self._fresh and self._keys is not None:
            return
        new = list(self._new)
        self._new.clear()
        for term in new:
            self._index(term)
        matched, self._matched = self._matched, {}
        if self._keys is None or not self._knows_keys(new):
            self._project(tasks)
        else:
            for group in self._uncounted:
                if group.users and group not in matched:
                    self._find_members(group)
        self._count_members(place)
        self._share(new)

    def _project(self, tasks: Collection[TaskInfo]) -> None:
        """Look at the labels of all pods again."""
        self._learn_keys(self.terms.values())
        self._classes.clear()
        self._of.clear()
        self._classes_by_mark.clear()
        for group in self._with_members:
            group.members = None
        self._with_members.clear()
        self._fresh.clear()
        for task in tasks:
            self.join(task)
        self._uncounted = dict(self._fresh)

    def _count_members(self, place: Place) -> None:
        """Count the pods on nodes that belong to new groups."""
        for group in self._uncounted:
            members = group.members
            if members is None:
                continue
            members.tally.clear()
            for each in members.classes:
                for task in each.tasks.values():
                    row = place(task) if task.node else -1
                    if row >= 0 and (task.status in NEEDS_ROOM or task.status is PIPELINED):
                        members.tally.add(row, task.status, 1)
        self._uncounted.clear()

    def _share(self, new: Collection[PeerTerm]) -> None:
        """Let groups count what pods on nodes ask by new terms, and new groups what they ask by all terms.

        Groups have counts also of what only waiting pods ask: such a pod may get a node after filters have looked for them.
        """
        fresh, self._fresh = self._fresh, {}
        self._moment += 1
        is_new = dict.fromkeys(new)
        for term in self.terms.values() if fresh else new:
            if not term.users or not term.held.asks():
                continue
            for group, times in term.groups:
                if group.members is not None and (term in is_new or group in fresh):
                    group.members.merge(term.held, times)

    # -- internals ------------------------------------------------------------------------------

    def _begin(self, rules: PeerRules) -> _Rules:
        found = _Rules()
        for key in rules.counted():
            found.terms[self._term(key)] = None
        for wish in rules.anti_affinity:
            found.ask(self._term(wish.term), "repelling", wish.key, 1)
        for wish in (*rules.wishes, *rules.attractions):
            found.ask(self._term(wish.term), "attracting", wish.key, wish.weight)
        for term in found.terms:
            term.users += 1
        return found

    def _term(self, key: TermKey) -> PeerTerm:
        term = self.terms.get(key)
        if term is None:
            term = self.terms[key] = PeerTerm(key)
            self._new[term] = None
        return term

    def _end(self, term: PeerTerm) -> None:
        del self.terms[term.key]
        self._new.pop(term, None)
        for group, _ in term.groups:
            if self.tree.release(group):
                self._drop_members(group)

    def _drop_members(self, group: PeerGroup) -> None:
        """Forget a group, or that pods belong to it."""
        self._uncounted.pop(group, None)
        self._fresh.pop(group, None)
        members = self._with_members.pop(group, None)
        group.members = None
        if members is not None:
            for each in members.classes:
                each.belong(other for other in each.groups if other is not group)

    def _index(self, term: PeerTerm) -> None:
        """Find the groups of a new term."""
        if term.is_indexed:
            return
        term.is_indexed = True
        found = []
        for steps, times in groups_of(term.key).items():
            group = self.tree.use(steps)
            if group.users == 1:
                self._uncounted[group] = None
            found.append((group, times))
        term.groups = tuple(found)

    def _knows_keys(self, terms: Iterable[PeerTerm]) -> bool:
        known, namespaces = self._keys or (), self._namespace_keys
        return all(
            all(key in known for key in _label_keys(term))
            and all(key in namespaces for key in _namespace_keys(term))
            for term in terms
        )

    def _learn_keys(self, terms: Collection[PeerTerm]) -> None:
        self._keys = {key for term in terms for key in _label_keys(term)}
        self._namespace_keys = {key for term in terms for key in _namespace_keys(term)}
        self._marks_of_namespace.clear()

    def _collect(self, rules: _Rules) -> None:
        """Collect the counts of the groups in which the pods of some rules count."""
        rules.moment = self._moment
        found: dict[DomainCounts, int] = {}
        for term, side, key, weight in rules.asked:
            for group, times in term.groups:
                if group.members is not None and group not in self._fresh:
                    tally = group.members.of(side, key)
                    found[tally] = found.get(tally, 0) + weight * times
        shared = [(tally, weight) for tally, weight in found.items() if weight]
        rules.counts = [*rules.own, *shared]

    def _class_for(self, task: TaskInfo, keys: Set[str]) -> PeerClass:
        key, labels = _class_key(task, keys)
        found = self._classes.get(key)
        if found is None:
            marks = dict.fromkeys(self._namespace_marks(task.namespace))
            for name, value in labels.items():
                marks[HAS_LABEL, name, value] = marks[HAS_LABEL, name, None] = None
            new = found = self._classes[key] = PeerClass(key, task.namespace, labels, marks)
            for mark in marks:
                self._classes_by_mark.setdefault(mark, {})[new] = None
            self._enter(new, self.tree.having(marks, lambda each: self.selects((each,), new)))
        return found

    def _namespace_marks(self, name: str) -> tuple[Mark, ...]:
        found = self._marks_of_namespace.get(name)
        if found is None:
            marks: list[Mark] = [(IN_NAMESPACE, "", name)]
            labels = self.namespaces.get(name)
            if labels is not None:
                marks.append((IS_KNOWN, "", None))
                for key in self._namespace_keys & labels.keys():
                    marks += (
                        (NAMESPACE_HAS_LABEL, key, labels[key]),
                        (NAMESPACE_HAS_LABEL, key, None),
                    )
            found = self._marks_of_namespace[name] = tuple(marks)
        return found

    def _find_members(self, group: PeerGroup) -> None:
        """Find the classes that belong to a new group."""
        steps = list(group.steps())
        marks = [each for each in steps if not isinstance(each, Selection)]
        conditions = tuple([each for each in steps if isinstance(each, Selection)])
        alike = [self._classes_by_mark.get(mark, {}) for mark in marks]
        for each in min(alike, key=len, default=self._classes.values()):
            self.tree.compared += 1
            if all(mark in each.marks for mark in marks) and self.selects(conditions, each):
                self._enter(each, (group,))

    def _enter(self, pods: PeerClass, groups: Iterable[PeerGroup]) -> None:
        """Add a class to groups."""
        for group in groups:
            if group.members is None:
                group.members = self._with_members[group] = GroupMembers()
                self._fresh[group] = None
            group.members.classes[pods] = None
        pods.belong((*pods.groups, *groups))

    def _drop_class(self, pods: PeerClass) -> None:
        if self._classes.get(pods.key) is not pods:
            return
        del self._classes[pods.key]
        for group in pods.groups:
            if group.members is not None:
                group.members.classes.pop(pods, None)
                if not group.members.classes:
                    self._drop_members(group)
        for mark in pods.marks:
            index = self._classes_by_mark.get(mark, {})
            index.pop(pods, None)
            if not index:
                self._classes_by_mark.pop(mark, None)


def _label_keys(term: PeerTerm) -> Iterable[str]:
    return [requirement[0] for part in term.key for requirement in part.selector or ()]


def _namespace_keys(term: PeerTerm) -> Iterable[str]:
    return [requirement[0] for part in term.key for requirement in part.namespace_selector or ()]


def _class_key(task: TaskInfo, keys: Set[str]) -> tuple[Hashable, Labels]:
    """What sets the class of a pod apart, and the labels that matter."""
    labels = task.labels or {}
    found: Labels = labels
    if keys >= labels.keys():
        pass
    elif len(labels) <= len(keys):
        found = {key: value for key, value in labels.items() if key in keys}
    else:
        found = {key: labels[key] for key in keys if key in labels}
    return (task.namespace, frozenset(found.items())), found
