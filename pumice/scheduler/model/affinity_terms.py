"""Rules of pods about other pods: affinity, anti-affinity and topology spread, in a form that can be compared and interned.

A term selects pods: by namespace, and by labels. Semantics are Kubernetes' own:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity and
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/.
"""

from collections.abc import Iterator, Mapping

import msgspec

from pumice.api.meta import LabelSelector, labels_match
from pumice.api.not_here_yet import LONGEST_ABOUT_PODS
from pumice.api.pods import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

Requirement = tuple[str, str, tuple[str, ...]]
Requirements = tuple[Requirement, ...]
"""Key, operator and values of each expression of a label selector; without any it selects everything."""


class Selection(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods that one term selects.

    Attributes:
        namespaces: Namespaces by name.
        namespace_selector: More namespaces, by their labels; None for no more.
        selector: Labels of the pods; None selects no pod.
    """

    namespaces: tuple[str, ...]
    namespace_selector: Requirements | None
    selector: Requirements | None


TermKey = tuple[Selection, ...]
"""Pods that each of these selections selects."""

NOTHING: TermKey = (Selection((), None, None),)
"""Selects no pod."""


class PeerRequirement(msgspec.Struct, frozen=True, cache_hash=True):
    """Nearness to some pods: in a domain with one of them, or not.

    Attributes:
        term: The pods.
        key: Label of nodes whose values are the domains.
        weight: How much a node in a domain with such a pod is preferred, below 0 if it is avoided; 1 for required terms.
    """

    term: TermKey
    key: str
    weight: int = 1


class Spread(msgspec.Struct, frozen=True, cache_hash=True):
    """A topology spread constraint.

    Attributes:
        term: Pods that are counted.
        key: Label of nodes whose values are the domains.
        max_skew: By how many pods a domain may exceed the one with the fewest.
        min_domains: Domains below which the fewest count as none.
        honors_affinity: Whether only nodes count that match the pod's node selector and node affinity.
        honors_taints: Whether only nodes count whose taints the pod tolerates.
    """

    term: TermKey
    key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


class PeerRules(msgspec.Struct, frozen=True, cache_hash=True):
    """All that a pod says about other pods.

    Attributes:
        affinity: Pods of which one must be near; None if the pod does not say so. With several terms, a pod must match all.
        affinity_keys: Domains in which one must be, a label for each term.
        anti_affinity: Pods of which none may be near.
        attractions: The terms of the required affinity, one by one, for the scores of other pods.
        wishes: Preferred terms.
        spreads: Constraints that say DoNotSchedule.
        soft_spreads: Constraints that say ScheduleAnyway.
    """

    affinity: TermKey | None
    affinity_keys: tuple[str, ...]
    anti_affinity: tuple[PeerRequirement, ...]
    attractions: tuple[PeerRequirement, ...]
    wishes: tuple[PeerRequirement, ...]
    spreads: tuple[Spread, ...]
    soft_spreads: tuple[Spread, ...]

    @property
    def may_be_helped(self) -> bool:
        """Whether a placement of another pod can give the pod a node that it did not have."""
        return self.affinity is not None or bool(self.spreads)

    def counted(self) -> Iterator[TermKey]:
        """Terms whose pods have to be counted for pods with these rules."""
        if self.affinity is not None:
            yield self.affinity
        for wish in (*self.anti_affinity, *self.wishes):
            yield wish.term
        for spread in (*self.spreads, *self.soft_spreads):
            yield spread.term


def too_long(spec: PodSpec) -> Iterator[str]:
    """Fields with more rules about other pods than are read."""
    affinity = spec.affinity or _NO_AFFINITY
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if (near or apart) and len(_ENCODER.encode((near, apart))) > LONGEST_ABOUT_PODS:
        yield "affinity"
    constraints = spec.topology_spread_constraints
    if constraints and len(_ENCODER.encode(constraints)) > LONGEST_ABOUT_PODS:
        yield "topologySpreadConstraints"


def is_too_long(selector: LabelSelector | None) -> bool:
    """Whether a selector of a claim or a budget has more than is read."""
    return selector is not None and len(_ENCODER.encode(selector)) > LONGEST_ABOUT_PODS


def peer_rules(pod: Pod) -> PeerRules | None:
    """The rules of a pod about other pods; None if it has none, or more than are read."""
    meta, spec = pod.metadata, pod.spec
    constraints = spec.topology_spread_constraints
    if spec.affinity is None and not constraints:
        return None
    affinity = spec.affinity or _NO_AFFINITY
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if near is None and apart is None and not constraints:
        return None
    if any(too_long(spec)):
        return None
    namespace, labels = meta.namespace, meta.labels or {}
    required = [_wish(term, namespace, labels, 1) for term in _required(near)]
    wishes = [
        _wish(each.pod_affinity_term, namespace, labels, sign * each.weight)
        for sign, side in ((1, near), (-1, apart))
        for each in _preferred(side)
    ]
    spreads = [(each, _spread(each, namespace, labels)) for each in constraints or ()]
    rules = PeerRules(
        affinity=tuple(sorted({wish.term[0] for wish in required}, key=repr)) or None,
        affinity_keys=tuple(sorted({wish.key for wish in required})),
        anti_affinity=tuple(
            dict.fromkeys(_wish(term, namespace, labels, 1) for term in _required(apart))
        ),
        attractions=tuple(required),
        wishes=tuple(wishes),
        spreads=tuple(found for each, found in spreads if _is_hard(each)),
        soft_spreads=tuple(found for each, found in spreads if not _is_hard(each)),
    )
    return None if rules == _NO_RULES else rules


_NO_AFFINITY = Affinity()
_ENCODER = msgspec.json.Encoder()

_NO_RULES = PeerRules(None, (), (), (), (), (), ())


def holds(requirements: Requirements | None, labels: Mapping[str, str]) -> bool:
    """Whether labels fulfil all expressions of a selector."""
    return requirements is not None and labels_match(requirements, labels)


def _required(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    found = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return found or []


def _preferred(affinity: PodAffinity | None) -> list[WeightedPodAffinityTerm]:
    found = affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
    return found or []


def _wish(
    term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], weight: int
) -> PeerRequirement:
    names = tuple(sorted(set(term.namespaces or ())))
    if not names and term.namespace_selector is None:
        names = (namespace,)
    own = _own(term.match_label_keys, "In", labels)
    own += _own(term.mismatch_label_keys, "NotIn", labels)
    selection = Selection(
        names, _requirements(term.namespace_selector), _requirements(term.label_selector, own)
    )
    return PeerRequirement((selection,), term.topology_key, weight)


def _spread(
    constraint: TopologySpreadConstraint, namespace: str, labels: Mapping[str, str]
) -> Spread:
    own = _own(constraint.match_label_keys, "In", labels)
    selector = _requirements(constraint.label_selector, own)
    # kube-scheduler counts no pods for a selector without expressions.
    term = (Selection((namespace,), None, selector),) if selector else NOTHING
    return Spread(
        term,
        constraint.topology_key,
        constraint.max_skew,
        constraint.min_domains if constraint.min_domains is not None else 1,
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _own(keys: list[str] | None, operator: str, labels: Mapping[str, str]) -> list[Requirement]:
    """Expressions about the labels that a pod has itself."""
    return [(key, operator, (labels[key],)) for key in keys or () if key in labels]


def _is_hard(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable != "ScheduleAnyway"


def _requirements(
    selector: LabelSelector | None, more: list[Requirement] | None = None
) -> Requirements | None:
    """A selector in one form, whatever the order in which it is written; with further expressions."""
    if selector is None:
        return None
    found: set[Requirement] = set(more or ())
    for key, operator, values in selector.expressions():
        found.add((key, operator, tuple(sorted(set(values)))))
    return tuple(sorted(found))
