"""Pods as targets of other pods' terms: which terms they match, and how many pods match or have a term on each node.

Terms of pods are interned and counted by their users. Labels matter as far as selectors of these terms name their keys: pods
of a namespace with equal values of these keys are of one kind, and only kinds are matched against terms. While no pod says
anything about other pods, nothing is kept.

Terms, kinds and their counts are in one file because each of them changes with the others.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.domains import DomainCounts
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus, TaskInfo
from pumice.scheduler.model.terms import PeerRequirement, PeerRules, TermKey, holds

__all__ = ["PeerClass", "PeerTable", "PeerTerm"]

Labels = Mapping[str, str]
Place = Callable[[TaskInfo], int]
"""Row of the node of a pod; below 0 when there is none."""


class PeerTerm:
    """Pods that terms of pods select.

    Attributes:
        number: Identity, unique while the term is in use.
        tally: Pods that match.
        repelling: Pods with a required anti-affinity to those that match, by topology key.
        attracting: Pods that would rather, or rather not, be near to those that match, by topology key: sums of weights.
    """

    __slots__ = ("attracting", "key", "kinds", "number", "repelling", "tally", "users")

    def __init__(self, number: int, key: TermKey) -> None:
        self.number = number
        self.key = key
        self.users = 0
        self.tally = DomainCounts()
        self.repelling: dict[str, DomainCounts] = {}
        self.attracting: dict[str, DomainCounts] = {}
        self.kinds: dict[PeerClass, None] = {}

    def tallies(self) -> Iterable[DomainCounts]:
        """Everything that is counted for it."""
        return (self.tally, *self.repelling.values(), *self.attracting.values())

    def __repr__(self) -> str:
        return f"<Term {self.number}: {self.users} shapes>"


class PeerClass:
    """Pods of one namespace that no term tells apart.

    Attributes:
        terms: Terms that they match, in the order of their numbers.
    """

    __slots__ = ("key", "labels", "namespace", "tasks", "terms")

    def __init__(self, key: Hashable, namespace: str, labels: Labels) -> None:
        self.key = key
        self.namespace = namespace
        self.labels = labels
        self.tasks: dict[str, TaskInfo] = {}
        self.terms: tuple[PeerTerm, ...] = ()


class _Rules:
    """The rules of some pods, in use."""

    __slots__ = ("counted", "held", "users")

    def __init__(self, counted: list[PeerTerm], held: list[tuple[DomainCounts, int]]) -> None:
        self.users = 0
        self.counted = counted
        self.held = held


class PeerTable:
    """All terms in use, and the pods that they concern.

    Attributes:
        is_live: Whether any pod says anything about other pods.
        terms: Terms in use.
        epoch: Grows when something about pods, nodes or namespaces has changed that terms depend on; not with what
            statements do.
        namespaces: Labels of the namespaces.
    """

    __slots__ = (
        "_anywhere",
        "_by_pair",
        "_is_prepared",
        "_keys",
        "_kinds",
        "_kinds_by_pair",
        "_known_namespaces",
        "_matched",
        "_new",
        "_next",
        "_of",
        "_rules",
        "epoch",
        "is_live",
        "namespaces",
        "terms",
    )

    def __init__(self) -> None:
        self.is_live = False
        self.terms: dict[TermKey, PeerTerm] = {}
        self.epoch = 0
        self.namespaces: dict[str, dict[str, str]] = {}
        self._rules: dict[PeerRules, _Rules] = {}
        self._next = 0
        self._forget()

    def _forget(self) -> None:
        self._keys: tuple[str, ...] | None = None
        self._known_namespaces = True
        self._is_prepared = True
        self._new: dict[PeerTerm, None] = {}
        self._matched: dict[PeerTerm, None] = {}
        self._kinds: dict[Hashable, PeerClass] = {}
        self._of: dict[str, PeerClass] = {}
        self._by_pair: dict[tuple[str, str], dict[PeerTerm, None]] = {}
        self._anywhere: dict[PeerTerm, None] = {}
        self._kinds_by_pair: dict[tuple[str, str], dict[PeerClass, None]] = {}

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
        if not any(part.namespace_selector for key in self.terms for part in key):
            return False
        self._known_namespaces = False
        self.epoch += 1
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
        for term in rules.counted:
            term.users -= 1
            if not term.users:
                self._end(term)
        if not self.terms:
            self.is_live = False
            self._forget()

    def join(self, task: TaskInfo) -> None:
        """Note the kind of a pod that is not on a node yet."""
        if self._keys is not None:
            kind = self._kind_for(task)
            kind.tasks[task.key] = task
            self._of[task.key] = kind

    def part(self, task: TaskInfo) -> None:
        """Remove a pod that is no longer on a node."""
        kind = self._of.pop(task.key, None)
        if kind is None:
            return
        kind.tasks.pop(task.key, None)
        if not kind.tasks:
            self._drop_kind(kind)

    def is_alike(self, old: TaskInfo, new: TaskInfo) -> bool:
        """Whether no term tells two versions of a pod apart."""
        known = self._of.get(old.key)
        return known is None or known.key == self._key(new)

    def matters(self, task: TaskInfo) -> bool:
        """Whether terms depend on a pod, or the pod on terms."""
        return self.is_live and (task.shape.peers is not None or bool(self.terms_of(task)))

    # -- counting ------------------------------------------------------------------------------

    def count(self, task: TaskInfo, row: int, sign: int) -> None:
        """Count a pod on a node, or take it back (-1), by its status."""
        status = task.status
        if task.shape.peers is not None:
            for tally, weight in self._rules[task.shape.peers].held:
                tally.add(row, status, sign * weight)
        kind = self._of.get(task.key)
        if kind is not None:
            for term in kind.terms:
                term.tally.add(row, status, sign)

    def reorder(self, moved: Ints) -> None:
        """Apply a new order of the node table: the new row of each old row, -1 for a removed one."""
        for term in self.terms.values():
            for tally in term.tallies():
                tally.reorder(moved)

    def forget_views(self) -> None:
        """Drop counts by domain: those of a session that has ended know neither new rows nor new labels."""
        for term in self.terms.values():
            for tally in term.tallies():
                tally.forget_views()

    def terms_of(self, task: TaskInfo) -> tuple[PeerTerm, ...]:
        """Terms that a pod matches."""
        kind = self._of.get(task.key)
        return kind.terms if kind is not None else ()

    def signature(self, task: TaskInfo) -> tuple[int, ...]:
        """A key that is equal for pods that match the same terms."""
        return tuple([term.number for term in self.terms_of(task)])

    # -- before a session ------------------------------------------------------------------------

    def preparing(self, tasks: Mapping[str, TaskInfo]) -> Iterator[None]:
        """Look at the labels of all pods for the first time, one pod after the other; `settle` would do it at once.

        Pods may come, change and go between two of them.

        Args:
            tasks: All pods, by key.
        """
        if not self.is_live or self._keys is not None:
            return
        for term in self._new:
            self._index(term)
        self._keys = tuple(sorted({key for term in self._new for key in _keys_of(term.key)}))
        terms, self._is_prepared = dict(self._new), False
        for key, task in list(tasks.items()):
            if tasks.get(key) is task:
                self.join(task)
            yield
        self._matched, self._is_prepared = terms, True

    def settle(self, tasks: Collection[TaskInfo], place: Place) -> None:
        """Find the pods that new terms select; a cycle does this first.

        Args:
            tasks: All pods.
            place: Row of the node of a pod.
        """
        if not self.is_live:
            return
        self.forget_views()
        if not self._known_namespaces:
            self._known_namespaces = True
            self._new.update(dict.fromkeys(self.terms.values()))
            self._by_pair.clear()
            self._anywhere.clear()
            self._keys = None
        if not self._new:
            return
        if not self._is_prepared:
            self._is_prepared, self._keys = True, None
        new, matched = list(self._new), self._matched
        self._new.clear()
        self._matched = {}
        for term in new:
            self._index(term)
        keys = {key for term in new for key in _keys_of(term.key)}
        if self._keys is None or not keys.issubset(self._keys):
            known = {key for term in self.terms.values() for key in _keys_of(term.key)}
            self._project(tuple(sorted(known)), tasks)
        else:
            for term in new:
                for kind in self._candidates(term) if term not in matched else ():
                    self._match(kind, [term])
        for term in new:
            term.tally.clear()
            for kind in term.kinds:
                for task in kind.tasks.values():
                    row = place(task) if task.node else -1
                    if row >= 0 and (
                        task.status in NEEDS_ROOM or task.status is SchedulingStatus.PIPELINED
                    ):
                        term.tally.add(row, task.status, 1)

    def _project(self, keys: tuple[str, ...], tasks: Collection[TaskInfo]) -> None:
        """Look at the labels of all pods again."""
        self._keys = keys
        self._kinds.clear()
        self._of.clear()
        self._kinds_by_pair.clear()
        for term in self.terms.values():
            term.kinds.clear()
        for task in tasks:
            self.join(task)

    # -- internals ------------------------------------------------------------------------------

    def _begin(self, rules: PeerRules) -> _Rules:
        counted = [self._term(key) for key in rules.counted()]
        held = [(_tally(self._term(wish.term).repelling, wish), 1) for wish in rules.anti_affinity]
        for wish in (*rules.wishes, *rules.attractions):
            term = self._term(wish.term)
            counted.append(term)
            held.append((_tally(term.attracting, wish), wish.weight))
        for term in counted:
            term.users += 1
        return _Rules(counted, held)

    def _term(self, key: TermKey) -> PeerTerm:
        term = self.terms.get(key)
        if term is None:
            term = self.terms[key] = PeerTerm(self._next, key)
            self._next += 1
            self._new[term] = None
        return term

    def _end(self, term: PeerTerm) -> None:
        del self.terms[term.key]
        self._new.pop(term, None)
        for kind in term.kinds:
            kind.terms = tuple([each for each in kind.terms if each is not term])
        for pair in _pairs(term.key):
            index = self._by_pair.get(pair, {})
            index.pop(term, None)
            if not index:
                self._by_pair.pop(pair, None)
        self._anywhere.pop(term, None)

    def _index(self, term: PeerTerm) -> None:
        pairs = _pairs(term.key)
        if pairs:
            for pair in pairs:
                self._by_pair.setdefault(pair, {})[term] = None
        elif all(part.selector is not None for part in term.key):
            self._anywhere[term] = None

    def _candidates(self, term: PeerTerm) -> Iterable[PeerClass]:
        """Kinds that may match a term."""
        pairs = _pairs(term.key)
        if not pairs:
            return list(self._kinds.values())
        return dict.fromkeys(kind for pair in pairs for kind in self._kinds_by_pair.get(pair, ()))

    def _key(self, task: TaskInfo) -> Hashable:
        labels = task.labels or {}
        return task.namespace, tuple([labels.get(key) for key in self._keys or ()])

    def _kind_for(self, task: TaskInfo) -> PeerClass:
        key = self._key(task)
        kind = self._kinds.get(key)
        if kind is None:
            labels = task.labels or {}
            known = {name: labels[name] for name in self._keys or () if name in labels}
            kind = self._kinds[key] = PeerClass(key, task.namespace, known)
            terms = dict(self._anywhere)
            for pair in known.items():
                self._kinds_by_pair.setdefault(pair, {})[kind] = None
                terms.update(self._by_pair.get(pair, {}))
            self._match(kind, terms)
        return kind

    def _drop_kind(self, kind: PeerClass) -> None:
        if self._kinds.get(kind.key) is not kind:
            return
        del self._kinds[kind.key]
        for term in kind.terms:
            term.kinds.pop(kind, None)
        for pair in kind.labels.items():
            index = self._kinds_by_pair.get(pair, {})
            index.pop(kind, None)
            if not index:
                self._kinds_by_pair.pop(pair, None)

    def _match(self, kind: PeerClass, terms: Iterable[PeerTerm]) -> None:
        found = [term for term in terms if self._selects(term.key, kind)]
        if found:
            for term in found:
                term.kinds[kind] = None
            merged = dict.fromkeys((*kind.terms, *found))
            kind.terms = tuple(sorted(merged, key=lambda term: term.number))

    def _selects(self, key: TermKey, kind: PeerClass) -> bool:
        return all(
            holds(part.selector, kind.labels)
            and (
                kind.namespace in part.namespaces
                or part.namespace_selector == ()
                or (
                    kind.namespace in self.namespaces
                    and holds(part.namespace_selector, self.namespaces[kind.namespace])
                )
            )
            for part in key
        )


def _tally(tallies: dict[str, DomainCounts], wish: PeerRequirement) -> DomainCounts:
    return tallies.setdefault(wish.key, DomainCounts())


def _keys_of(key: TermKey) -> Iterable[str]:
    return [requirement[0] for part in key for requirement in part.selector or ()]


def _pairs(key: TermKey) -> list[tuple[str, str]]:
    """Labels of which every pod has one that a term selects; empty if there are no such labels."""
    for part in key:
        for name, operator, values in part.selector or ():
            if operator == "In":
                return [(name, value) for value in values]
    return []
