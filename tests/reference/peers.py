"""Drawn rules about other pods: inter-pod affinity and anti-affinity, topology spread."""

from typing import Any

from tests.reference.chances import Chances
from tests.reference.nodes import HOSTNAME, REGION, ZONE

Raw = dict[str, Any]

NAMESPACES = ("blue", "green", "red")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_APPS, _TIERS, _VERSIONS = ("web", "db", "cache"), ("front", "back"), ("v1", "v2")
_KEYS = (HOSTNAME, HOSTNAME, ZONE, ZONE, REGION, "rack", "absent")


def namespaces(chances: Chances) -> list[Raw]:
    """The namespaces of one cluster, whose labels selectors look at."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": {"team": chances.one(("a", "b"))} if chances.happens(0.7) else {},
            },
        }
        for name in NAMESPACES
    ]


def labels(chances: Chances) -> dict[str, str]:
    """Labels of a pod."""
    found = {"app": chances.one(_APPS)}
    if chances.happens(0.6):
        found["tier"] = chances.one(_TIERS)
    if chances.happens(0.7):
        found["version"] = chances.one(_VERSIONS)
    return found


def inter_pod(chances: Chances, spec: Raw, *, affinity: float, anti: float) -> None:
    """Draw rules about other pods, each kind with its probability."""
    found: Raw = spec.setdefault("affinity", {})
    if chances.happens(affinity):
        found["podAffinity"] = _terms(chances, most=chances.one((1, 1, 2)))
    if chances.happens(anti):
        found["podAntiAffinity"] = _terms(chances, most=2)
    if not found:
        del spec["affinity"]


def spread(chances: Chances, spec: Raw) -> None:
    """Draw spread constraints."""
    drawn = {}
    for _ in range(chances.one((1, 1, 2, 3))):
        constraint = _constraint(chances)
        drawn[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    spec["topologySpreadConstraints"] = list(drawn.values())


def _terms(chances: Chances, most: int) -> Raw:
    found: Raw = {}
    if chances.happens(0.9):
        found[_REQUIRED] = [_term(chances) for _ in range(chances.number(1, most))]
    if not found or chances.happens(0.2):
        found[_PREFERRED] = [{"weight": 10, "podAffinityTerm": _term(chances)}]
    return found


def _term(chances: Chances) -> Raw:
    term: Raw = {"topologyKey": chances.one(_KEYS)}
    if chances.happens(0.92):
        term["labelSelector"] = _selector(chances)
        _by_own_labels(chances, term, ("matchLabelKeys", "mismatchLabelKeys"))
    if chances.happens(0.3):
        term["namespaces"] = chances.some(NAMESPACES, 1, 2)
    if chances.happens(0.3):
        term["namespaceSelector"] = chances.one(
            (
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
            )
        )
    return term


def _selector(chances: Chances) -> Raw:
    """Selectors of pods; labels `version` are left to those that name keys."""
    if chances.happens(0.08):
        return {}
    if chances.happens(0.6):
        return {"matchLabels": {"app": chances.one(_APPS)}}
    operator = chances.one(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: Raw = {"key": "tier", "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = chances.some(_TIERS, 1, 2)
    found: Raw = {"matchExpressions": [expression]}
    if chances.happens(0.3):
        found["matchLabels"] = {"app": chances.one(_APPS)}
    return found


def _by_own_labels(chances: Chances, rule: Raw, fields: tuple[str, ...]) -> None:
    if chances.happens(0.25):
        rule[chances.one(fields)] = chances.one((["version"], ["version", "absent"]))


def _constraint(chances: Chances) -> Raw:
    when = chances.one(("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    found: Raw = {
        "maxSkew": chances.one((1, 1, 2, 3)),
        "topologyKey": chances.one(_KEYS[1:]),
        "whenUnsatisfiable": when,
    }
    if chances.happens(0.93):
        found["labelSelector"] = _selector(chances)
        _by_own_labels(chances, found, ("matchLabelKeys",))
    if when == "DoNotSchedule" and chances.happens(0.25):
        found["minDomains"] = chances.number(1, 5)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if chances.happens(0.4):
            found[field] = chances.one(("Honor", "Ignore"))
    return found
