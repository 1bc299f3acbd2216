"""Topology spread: filter and score by domain, for plugins `predicates` and `nodeorder`."""

import msgspec
import numpy as np

from pumice.scheduler.model.affinity_terms import Spread
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.domains import Domains
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.plugins.pod_affinity import DomainColumn, topology_of
from pumice.scheduler.points import DomainFilter, FilterResult, PodClass
from pumice.scheduler.view import SessionView

_TEXTS = (
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
_HARD = ("NoSchedule", "NoExecute")
_HOSTNAME = "kubernetes.io/hostname"
_FULL = 100


class Constraint(msgspec.Struct, frozen=True):
    """A constraint of a class of pods.

    Attributes:
        domains: Counts of its pods, on nodes that count for it.
        own: 1 if the pods count themselves.
        has_all: Whether every domain has a node that counts.
    """

    spread: Spread
    domains: Domains
    own: int
    has_all: bool

    def skewed(self, *, later: bool) -> Bools:
        """Domains that one more pod would make exceed the skew; the last entry has no meaning."""
        found: Bools | None = None
        for counts in self.domains.spread(later=later):
            exceeds = counts > self.spread.max_skew - self.own + self._fewest(counts)
            found = exceeds if found is None else found | exceeds
        assert found is not None
        return found

    def _fewest(self, counts: Ints) -> int:
        exists = self.domains.exists
        known = counts[:-1] if self.has_all else counts[:-1][exists]
        if len(known) < self.spread.min_domains or not len(known):
            return 0
        return int(known.min())


class SpreadFilter(DomainColumn, DomainFilter):
    """Which nodes a class of pods may use so that its pods stay spread."""

    def __init__(self, constraints: list[Constraint]) -> None:
        super().__init__([each.domains for each in constraints])
        self._constraints = constraints

    def _computed(self) -> Floats:
        """0 for nodes that pods may use now, otherwise minus infinity."""
        found = np.zeros(0)
        for number, each in enumerate(self._constraints):
            answers = np.where(each.skewed(later=False), -np.inf, 0.0)
            answers[-1] = -np.inf
            column = answers.take(each.domains.codes)
            found = found + column if number else column
        return found

    def judge(self, rows: Rows) -> FilterResult | None:
        """Judge rows as they are: the first constraint that is not fulfilled gives the reason."""
        codes: Ints = np.zeros(len(rows), dtype=np.int64)
        for each in self._constraints:
            each.domains.sync()
            answers = each.skewed(later=rows.is_later).astype(np.int64)
            answers[-1] = 2
            codes = np.where(codes == 0, answers.take(each.domains.codes[rows.index]), codes)
        return FilterResult(codes, _TEXTS) if codes.any() else None


def spread_filter(session: SessionView, pods: PodClass) -> SpreadFilter | None:
    """The filter of a class of pods; None without constraints."""
    rules = pods.shape.peers
    if rules is None or not rules.spreads:
        return None
    constraints = [_constraint(session, pods, each, rules.spreads) for each in rules.spreads]
    return SpreadFilter(constraints)


def _constraint(
    session: SessionView, pods: PodClass, spread: Spread, group: tuple[Spread, ...]
) -> Constraint:
    topology = topology_of(session, spread.key)
    keys = tuple(sorted({each.key for each in group}))
    honors = (spread.honors_affinity, spread.honors_taints)
    place = ("spread", keys, honors, pods.shape.key.placement if any(honors) else b"")
    mask = session.facts.cached(place, lambda: _counting(session, pods.shape, spread, keys))
    tally = session.peers.tally(spread.term)
    domains = tally.domains((spread.key, place), topology, mask)
    own = session.peers.selects(spread.term, pods.peers)
    return Constraint(spread, domains, int(own), bool(domains.exists.all()))


def _counting(
    session: SessionView, shape: PodShape, spread: Spread, keys: tuple[str, ...]
) -> Bools:
    """Nodes whose pods count."""
    mask = np.ones(len(session.rows), dtype=np.bool_)
    for key in keys:
        topology = topology_of(session, key)
        mask &= topology.codes < topology.size
    if spread.honors_affinity:
        mask &= session.matcher.required(shape.node_selector, shape.node_affinity)
    if spread.honors_taints:
        facts, tolerance = session.facts, Tolerance(shape.tolerations)
        accepted = [
            all(each.effect not in _HARD or tolerance.accepts(each) for each in taints)
            for taints in facts.taint_sets
        ]
        mask &= np.array(accepted, dtype=np.bool_)[facts.taint_codes]
    return mask


class SpreadScore(DomainColumn):
    """How few of the pods' like there are in the domains of nodes: 0 to 100."""

    def __init__(
        self, constraints: list[Constraint], weights: list[float], known: Bools, weight: int
    ) -> None:
        super().__init__([each.domains for each in constraints])
        self._constraints = constraints
        self._weights = weights
        self._known = known
        self._weight = weight

    def _computed(self) -> Floats:
        sums = np.zeros(len(self._known))
        for each, weight in zip(self._constraints, self._weights, strict=True):
            domains = each.domains
            counts = domains.placed if domains.leaving is None else domains.placed - domains.leaving
            sums += (counts * weight + (each.spread.max_skew - 1))[domains.codes]
        sums = np.floor(sums + 0.5)
        known = sums[self._known]
        most = int(known.max(initial=0))
        if most == 0:
            return np.where(self._known, float(self._weight * _FULL), 0.0)
        least = int(known.min())
        scores = (_FULL * (most + least - sums)) // most
        return np.where(self._known, self._weight * scores, 0.0)


def spread_score(session: SessionView, pods: PodClass, weight: int) -> SpreadScore | None:
    """The score of a class of pods; None without constraints that schedule anyway."""
    rules = pods.shape.peers
    if rules is None or not rules.soft_spreads:
        return None
    constraints = [
        _constraint(session, pods, each, rules.soft_spreads) for each in rules.soft_spreads
    ]
    known = pods.allowed.copy()
    for each in constraints:
        known &= each.domains.codes < len(each.domains.exists)
    weights = []
    for each in constraints:
        is_host = each.spread.key == _HOSTNAME
        places = each.domains.codes[known]
        weights.append(float(np.log((len(places) if is_host else len(set(places.tolist()))) + 2)))
    return SpreadScore(constraints, weights, known, weight)
