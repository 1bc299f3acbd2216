"""Inter-pod affinity: filter and score by domain, for plugins `predicates` and `nodeorder`.

A pod that another one wants to be near to must be there now; a promised place is not relied upon. Required anti-affinity holds
in both directions: against pods on nodes, and against the pod of those that are on nodes.
"""

import numpy as np

from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.domains import Domains, Tally
from pumice.scheduler.model.facts import ABSENT
from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.points import PodClass, Verdict
from pumice.scheduler.view import SessionView

__all__ = ["AffinityFilter", "AffinityScore", "affinity_filter", "affinity_score", "domains_of"]

_TEXTS = (
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
)
_EVERY = slice(None)
_FULL = 100


def label_codes(session: SessionView, key: str) -> tuple[Ints, int]:
    """For each row the number of its value of a label, and the number of values; that number for nodes without the label."""

    def compute() -> tuple[Ints, int]:
        column = session.facts.label(key)
        size = len(column.values)
        return np.where(column.codes == ABSENT, size, column.codes), size

    return session.facts.cached(("domains", key), compute)


def domains_of(session: SessionView, tally: Tally, key: str) -> Domains:
    """Counts of a tally by the domains of a topology key, on all nodes."""
    codes, size = label_codes(session, key)
    return tally.domains(key, codes, size)


class AffinityFilter:
    """Which nodes a class of pods may use because of other pods.

    Args:
        near: Counts of the pods of which one must be near, by each topology key.
        apart: Counts of the pods of which none may be near.
        repelling: Counts of pods that do not want to be near to the class.
        starts: Whether the pods are themselves such pods, so that the first of them may go anywhere.
    """

    __slots__ = ("_apart", "_column", "_near", "_repelling", "_seen", "_starts")

    def __init__(
        self,
        near: list[Domains],
        apart: list[Domains],
        repelling: list[Domains],
        *,
        starts: bool,
    ) -> None:
        self._near = near
        self._starts = starts
        self._apart = apart
        self._repelling = repelling
        self._seen = -1
        self._column: Floats = np.zeros(0)

    def column(self) -> Floats:
        """0 for nodes that pods may use now, otherwise minus infinity."""
        seen = 0
        for domains in (*self._near, *self._apart, *self._repelling):
            seen += len(domains.touched)
        if seen != self._seen:
            self._seen = seen
            blocked: list[Bools] = []
            if self._near:
                blocked.append(~self._is_near(_EVERY, later=False))
            for domains in (*self._apart, *self._repelling):
                counts = domains.near(later=False)[-1]
                blocked.append((counts > 0)[domains.codes])
            self._column = np.where(np.logical_or.reduce(blocked), -np.inf, 0.0)
        return self._column

    def judge(self, rows: Rows) -> Verdict | None:
        """Judge rows as they are."""
        index, later = rows.index, rows.is_later
        codes: Ints = np.zeros(len(rows), dtype=np.int64)
        if self._near:
            codes[~self._is_near(index, later=later)] = 1
        for code, group in ((2, self._apart), (3, self._repelling)):
            for domains in group:
                found = domains.near(later=later)[-1][domains.codes[index]] > 0
                codes[found & (codes == 0)] = code
        return Verdict(codes, _TEXTS) if codes.any() else None

    def _is_near(self, index: slice | Ints, *, later: bool) -> Bools:
        """Whether pods of which one must be near are near to rows."""
        has_promises = not later and any(each.promised is not None for each in self._near)
        found: Bools | None = None
        for moment in (0, -1) if has_promises else (-1,):
            counts = [each.near(later=later)[moment] for each in self._near]
            is_first = self._starts and not any(each.any() for each in counts)
            for domains, each in zip(self._near, counts, strict=True):
                codes = domains.codes[index]
                fits: Bools = codes < len(domains.exists) if is_first else each[codes] > 0
                found = fits if found is None else found & fits
        assert found is not None
        return found


def affinity_filter(session: SessionView, pods: PodClass) -> AffinityFilter | None:
    """The filter of a class of pods; None where other pods do not matter to it."""
    rules = pods.shape.peers
    near: list[Domains] = []
    apart: list[Domains] = []
    starts = False
    if rules is not None:
        terms = session.peers.terms
        if rules.affinity is not None:
            term = terms[rules.affinity]
            near = [domains_of(session, term.tally, key) for key in rules.affinity_keys]
            starts = term in pods.terms
        apart = [
            domains_of(session, terms[wish.term].tally, wish.key) for wish in rules.anti_affinity
        ]
    repelling = [
        domains_of(session, tally, key)
        for term in pods.terms
        for key, tally in term.repelling.items()
    ]
    if not near and not apart and not repelling:
        return None
    return AffinityFilter(near, apart, repelling, starts=starts)


class AffinityScore:
    """How near nodes are to pods that pods prefer to be near to, and that prefer to be near to them: 0 to 100."""

    __slots__ = ("_allowed", "_column", "_parts", "_seen", "_weight")

    def __init__(self, parts: list[tuple[Domains, int]], allowed: Bools, weight: int) -> None:
        self._parts = parts
        self._allowed = allowed
        self._weight = weight
        self._seen = -1
        self._column: Floats = np.zeros(0)

    def column(self) -> Floats:
        """The score of every node now, with its weight."""
        seen = sum(len(domains.touched) for domains, _ in self._parts)
        if seen != self._seen:
            self._seen = seen
            self._column = self._scores()
        return self._column

    def _scores(self) -> Floats:
        sums: Ints = np.zeros(len(self._allowed), dtype=np.int64)
        for domains, weight in self._parts:
            sums += (domains.placed * weight)[domains.codes]
        open_sums = sums[self._allowed]
        if not len(open_sums) or open_sums.min() == open_sums.max():
            return np.zeros(len(sums))
        least, most = int(open_sums.min()), int(open_sums.max())
        score = np.trunc(_FULL * ((sums - least) / (most - least)))
        found: Floats = self._weight * score
        return found


def affinity_score(session: SessionView, pods: PodClass, weight: int) -> AffinityScore | None:
    """The score of a class of pods; None where no preferred term concerns it."""
    parts: list[tuple[Domains, int]] = []
    if pods.shape.peers is not None:
        for wish in pods.shape.peers.wishes:
            tally = session.peers.terms[wish.term].tally
            parts.append((domains_of(session, tally, wish.key), wish.weight))
    for term in pods.terms:
        for key, tally in term.attracting.items():
            parts.append((domains_of(session, tally, key), 1))
    return AffinityScore(parts, pods.allowed, weight) if parts else None
