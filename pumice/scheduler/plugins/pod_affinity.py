"""Inter-pod affinity: filter and score by domain, for plugins `predicates` and `nodeorder`.

A required peer must already be on the node; a pipelined pod does not count. Required anti-affinity holds in both
directions: against pods on nodes, and against the pod of those that are on nodes.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.domains import DomainCounts, Domains, PodCounts, Topology, total
from pumice.scheduler.model.group_tree import Side
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.view import SessionView

_TEXTS = (
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
)
_FEW = 4
"""Domains that come to have pods, or none, up to which only these are looked at again."""
_FULL = 100


def topology_of(session: SessionView, key: str) -> Topology:
    """The domains of a topology key."""
    column = session.facts.label(key)
    name = key if column.values else ""  # all keys that no node has share one
    return session.facts.cached(
        ("topology", name), lambda: Topology(column.codes, len(column.values))
    )


def domains_of(session: SessionView, tally: PodCounts, key: str) -> Domains:
    """Counts of a tally by the domains of a topology key, on all nodes."""
    return tally.domains(key, topology_of(session, key))


def _of_others(session: SessionView, pods: PodClass, side: Side) -> list[Domains]:
    """Counts of what pods on nodes ask of a class of pods, by each topology key."""
    found: dict[str, list[tuple[DomainCounts, int]]] = {}
    for group in pods.peers.groups if pods.peers is not None else ():
        if group.members is not None:
            held = group.members.by_side[side]
            for key in session.facts.known_labels(held):
                found.setdefault(key, []).append((held[key], 1))
    return [domains_of(session, total(parts), key) for key, parts in sorted(found.items())]


class DomainColumn(ABC):
    """A number for each node, computed again when the counts by domain that it follows have changed."""

    def __init__(self, followed: Sequence[Domains]) -> None:
        self._followed = followed
        self._seen = -1
        self._column: Floats = np.zeros(0)

    def column(self) -> Floats:
        """The numbers as they are now; to be read only."""
        seen = 0
        for domains in self._followed:
            seen += domains.sync()
        if seen != self._seen:
            self._seen = seen
            self._column = self._computed()
        return self._column

    @abstractmethod
    def _computed(self) -> Floats:
        """The numbers, from the counts as they are now."""


class AffinityFilter:
    """Which nodes a class of pods may use because of other pods.

    Args:
        near: Counts of the pods of which one must be near, by each topology key.
        apart: Counts of the pods of which none may be near.
        repelling: Counts of pods that do not want to be near to the class.
        starts: Whether the pods are themselves such pods, so that the first of them may go anywhere.
        alone: Topology keys of which no domain may hold two of the pods.
    """

    def __init__(
        self,
        near: list[Domains],
        apart: list[Domains],
        repelling: list[Domains],
        *,
        starts: bool,
        alone: Sequence[Topology],
    ) -> None:
        self._near = near
        self._starts = starts
        self._alone = alone
        self._apart = apart
        self._repelling = repelling
        self._blocking = [*apart, *repelling]
        self._all = [*near, *apart, *repelling]
        self._seen: list[int] = []
        self._column: Floats = np.zeros(0)
        self._starting: Sequence[Topology] = ()

    def column(self) -> Floats:
        """0 for nodes that pods may use now, otherwise minus infinity."""
        seen = []
        for domains in self._all:
            domains.sync()
            seen.append(len(domains.turned))
        if seen == self._seen:
            return self._column
        before, self._seen = self._seen, seen
        if before and not self._near and sum(seen) - sum(before) <= _FEW:
            self._update(before)
            return self._column
        columns = []
        for domains, near in zip(self._near, self._near_domains(later=False), strict=True):
            columns.append(np.where(near, 0.0, -np.inf).take(domains.codes))
        for domains in self._blocking:
            apart = domains.near(later=False)[-1] > 0
            columns.append(np.where(apart, -np.inf, 0.0).take(domains.codes))
        is_first = self._starts and not any(each.near(later=False)[-1].any() for each in self._near)
        self._starting = [each.topology for each in self._near] if is_first else ()
        self._column = columns[0]
        for each in columns[1:]:
            self._column += each
        return self._column

    def _update(self, before: list[int]) -> None:
        """Look again at the domains that have come to have pods, or none."""
        turned: dict[tuple[Topology, int], None] = {}
        for start, changed in zip(before, self._blocking, strict=True):
            for place in changed.turned[start:]:
                turned[changed.topology, place] = None
        for topology, place in turned:
            rows = topology.rows(place)
            worth: float | Floats = 0.0
            for domains in self._blocking:
                if domains.topology is not topology:
                    counts = domains.near(later=False)[-1]
                    worth = np.where(counts.take(domains.codes[rows]) > 0, -np.inf, worth)
                elif domains.has(place):
                    worth = -np.inf
                    break
            self._column[rows] = worth

    def judge(self, rows: Rows) -> FilterResult | None:
        """Judge rows as they are."""
        index, later = rows.index, rows.is_later
        for domains in self._all:
            domains.sync()
        codes: Ints = np.zeros(len(rows), dtype=np.int64)
        if self._near:
            for domains, near in zip(self._near, self._near_domains(later=later), strict=True):
                codes[~near.take(domains.codes[index])] = 1
        for code, group in ((2, self._apart), (3, self._repelling)):
            for domains in group:
                found = domains.near(later=later)[-1].take(domains.codes[index]) > 0
                codes[found & (codes == 0)] = code
        return FilterResult(codes, _TEXTS) if codes.any() else None

    def starting(self) -> Sequence[Topology]:
        """The topology keys of the affinity, if no pod is there yet that the pods want to be near to, other than themselves."""
        if self._starts:
            self.column()
        return self._starting

    def alone(self) -> Sequence[Topology]:
        """Those of a required anti-affinity of the pods to themselves."""
        return self._alone

    def _near_domains(self, *, later: bool) -> list[Bools]:
        """For each topology key the domains with a pod of those of which one must be near; False at the end, for no domain."""
        has_promises = not later and any(each.promised is not None for each in self._near)
        found = [np.ones(len(each.placed), dtype=np.bool_) for each in self._near]
        for moment in (0, -1) if has_promises else (-1,):
            counts = [each.near(later=later)[moment] for each in self._near]
            if not self._starts or any(each.any() for each in counts):
                for holds, each in zip(found, counts, strict=True):
                    holds &= each > 0
        for holds in found:
            holds[-1] = False
        return found


def affinity_filter(session: SessionView, pods: PodClass) -> AffinityFilter | None:
    """The filter of a class of pods; None where other pods do not matter to it."""
    rules = pods.shape.peers
    near: list[Domains] = []
    apart: list[Domains] = []
    starts = False
    alone: list[Topology] = []
    if rules is not None:
        peers = session.peers
        if rules.affinity is not None:
            term = peers.tally(rules.affinity)
            near = [domains_of(session, term, key) for key in rules.affinity_keys]
            starts = peers.selects(rules.affinity, pods.peers)
        apart = [
            domains_of(session, peers.tally(wish.term), wish.key) for wish in rules.anti_affinity
        ]
        alone = [
            domains.topology
            for domains, wish in zip(apart, rules.anti_affinity, strict=True)
            if peers.selects(wish.term, pods.peers)
        ]
    repelling = _of_others(session, pods, "repelling")
    if not near and not apart and not repelling:
        return None
    return AffinityFilter(near, apart, repelling, starts=starts, alone=alone)


class AffinityScore(DomainColumn):
    """How near nodes are to pods that pods prefer to be near to, and that prefer to be near to them: 0 to 100."""

    def __init__(self, parts: list[tuple[Domains, int]], allowed: Bools, weight: int) -> None:
        super().__init__([domains for domains, _ in parts])
        groups: dict[Topology, list[tuple[Domains, int]]] = {}
        for domains, each in parts:
            groups.setdefault(domains.topology, []).append((domains, each))
        self._groups = groups
        self._allowed = allowed
        first = next(iter(groups))
        self._open: Bools = np.bincount(first.codes[allowed], minlength=first.size + 1) > 0
        self._weight = weight

    def _computed(self) -> Floats:
        rows: Ints | None = None
        for topology, group in self._groups.items():
            sums = group[0][0].placed * group[0][1]
            for domains, weight in group[1:]:
                sums += domains.placed * weight
            if len(self._groups) == 1:  # a node has the score of its domain
                return self._scaled(sums, self._open).take(topology.codes)
            each = sums.take(topology.codes)
            rows = each if rows is None else rows + each
        assert rows is not None
        return self._scaled(rows, self._allowed)

    def _scaled(self, sums: Ints, counts: Bools) -> Floats:
        """Scores of 0 to 100 from the least to the most of the sums that count, with the weight."""
        open_sums = sums[counts]
        if not len(open_sums):
            return np.zeros(len(sums))
        least, most = int(np.minimum.reduce(open_sums)), int(np.maximum.reduce(open_sums))
        if most == least:
            return np.zeros(len(sums))
        found: Floats = self._weight * np.trunc(_FULL * ((sums - least) / (most - least)))
        return found


def affinity_score(session: SessionView, pods: PodClass, weight: int) -> AffinityScore | None:
    """The score of a class of pods; None where no preferred term concerns it."""
    parts: list[tuple[Domains, int]] = []
    if pods.shape.peers is not None:
        for wish in pods.shape.peers.wishes:
            tally = session.peers.tally(wish.term)
            parts.append((domains_of(session, tally, wish.key), wish.weight))
    parts += [(domains, 1) for domains in _of_others(session, pods, "attracting")]
    return AffinityScore(parts, pods.allowed, weight) if parts else None
