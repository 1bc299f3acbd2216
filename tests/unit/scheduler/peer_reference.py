"""Inter-pod affinity and topology spread, pod by pod and node by node: the rules of the documentation in plain Python.

What the scheduler keeps in columns is compared with this. It reads manifests and knows nothing of the scheduler.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Raw = dict[str, Any]

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
SYMMETRY = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEW = "node(s) didn't match pod topology spread constraints"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def refusals(
    pod: Raw, nodes: Mapping[str, Raw], pods: Sequence[Raw], namespaces: Mapping[str, Raw]
) -> dict[str, str]:
    """Why a pod may not use nodes; empty where it may.

    Args:
        pod: The pod.
        nodes: Labels and taints of the nodes, by name.
        pods: Pods that are on nodes.
        namespaces: Labels of the namespaces.
    """
    placed = [
        each
        for each in pods
        if each["spec"].get("nodeName") in nodes
        and each["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    found = {}
    for name in nodes:
        found[name] = (
            _near(pod, name, nodes, placed, namespaces)
            or _apart(pod, name, nodes, placed, namespaces)
            or _repelled(pod, name, nodes, placed, namespaces)
            or _skewed(pod, name, nodes, placed)
        )
    return found


def _terms(pod: Raw, side: str) -> list[Raw]:
    affinity = pod["spec"].get("affinity") or {}
    return list((affinity.get(side) or {}).get(_REQUIRED) or [])


def _near(pod: Raw, name: str, nodes: Any, placed: list[Raw], namespaces: Any) -> str:
    terms = _terms(pod, "podAffinity")
    if not terms:
        return ""
    labels = nodes[name]["labels"]
    if any(term["topologyKey"] not in labels for term in terms):
        return AFFINITY
    friends = [
        other for other in placed if all(_matches(term, pod, other, namespaces) for term in terms)
    ]
    near = [nodes[other["spec"]["nodeName"]]["labels"] for other in friends]
    keys = [term["topologyKey"] for term in terms]
    if all(any(there.get(key) == labels[key] for there in near) for key in keys):
        return ""
    counted = any(key in there for there in near for key in keys)
    if not counted and all(_matches(term, pod, pod, namespaces) for term in terms):
        return ""
    return AFFINITY


def _apart(pod: Raw, name: str, nodes: Any, placed: list[Raw], namespaces: Any) -> str:
    for term in _terms(pod, "podAntiAffinity"):
        for other in placed:
            there = nodes[other["spec"]["nodeName"]]["labels"]
            if _same(term, nodes[name]["labels"], there) and _matches(term, pod, other, namespaces):
                return ANTI_AFFINITY
    return ""


def _repelled(pod: Raw, name: str, nodes: Any, placed: list[Raw], namespaces: Any) -> str:
    for other in placed:
        there = nodes[other["spec"]["nodeName"]]["labels"]
        for term in _terms(other, "podAntiAffinity"):
            if _same(term, nodes[name]["labels"], there) and _matches(term, other, pod, namespaces):
                return SYMMETRY
    return ""


def _same(term: Raw, here: Raw, there: Raw) -> bool:
    key = term["topologyKey"]
    return key in here and key in there and here[key] == there[key]


def _matches(term: Raw, owner: Raw, other: Raw, namespaces: Mapping[str, Raw]) -> bool:
    """Whether a term of one pod selects another one."""
    namespace = other["metadata"]["namespace"]
    listed, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not listed and selector is None:
        listed = [owner["metadata"]["namespace"]]
    if namespace not in listed:
        if selector is None:
            return False
        if (selector.get("matchLabels") or selector.get("matchExpressions")) and (
            namespace not in namespaces or not _selects(selector, namespaces[namespace])
        ):
            return False
    if term.get("labelSelector") is None:
        return False
    own, labels = owner["metadata"]["labels"], other["metadata"]["labels"]
    for key in term.get("matchLabelKeys") or []:
        if key in own and labels.get(key) != own[key]:
            return False
    for key in term.get("mismatchLabelKeys") or []:
        if key in own and labels.get(key) == own[key]:
            return False
    return _selects(term["labelSelector"], labels)


def _selects(selector: Raw, labels: Raw) -> bool:
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or []:
        key, values = each["key"], each.get("values")
        answers = {
            "In": key in labels and labels[key] in (values or ()),
            "NotIn": key not in labels or labels[key] not in (values or ()),
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not answers[each["operator"]]:
            return False
    return True


def _skewed(pod: Raw, name: str, nodes: Any, placed: list[Raw]) -> str:
    rules = [
        rule
        for rule in pod["spec"].get("topologySpreadConstraints") or []
        if rule["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    for rule in rules:
        key = rule["topologyKey"]
        if key not in nodes[name]["labels"]:
            return MISSING
        counted = [
            each
            for each, node in nodes.items()
            if all(other["topologyKey"] in node["labels"] for other in rules)
            and _counts(rule, pod, each, node)
        ]
        domains = {nodes[each]["labels"][key]: 0 for each in counted}
        for other in placed:
            place = other["spec"]["nodeName"]
            if (
                place in counted
                and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and "deletionTimestamp" not in other["metadata"]
                and _is_counted(rule, pod, other)
            ):
                domains[nodes[place]["labels"][key]] += 1
        fewest = min(domains.values(), default=0)
        if len(domains) < (rule.get("minDomains") or 1):
            fewest = 0
        here = domains.get(nodes[name]["labels"][key], 0)
        if here + _is_counted(rule, pod, pod) - fewest > rule["maxSkew"]:
            return SKEW
    return ""


def _is_counted(rule: Raw, owner: Raw, other: Raw) -> bool:
    selector = rule.get("labelSelector")
    own, labels = owner["metadata"]["labels"], other["metadata"]["labels"]
    if selector is None:
        return False
    keys = [key for key in rule.get("matchLabelKeys") or [] if key in own]
    if not keys and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return False  # kube-scheduler counts no pod for an empty selector
    return all(labels.get(key) == own[key] for key in keys) and _selects(selector, labels)


def _counts(rule: Raw, pod: Raw, name: str, node: Raw) -> bool:
    if rule.get("nodeAffinityPolicy", "Honor") == "Honor":
        selector = pod["spec"].get("nodeSelector") or {}
        if any(node["labels"].get(key) != value for key, value in selector.items()):
            return False
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        if _REQUIRED in affinity and not any(
            _selects(term, node["labels"]) for term in affinity[_REQUIRED]["nodeSelectorTerms"]
        ):
            return False
    if rule.get("nodeTaintsPolicy") == "Honor":
        tolerated = {each["key"] for each in pod["spec"].get("tolerations") or []}
        if any(
            taint["key"] not in tolerated and taint["effect"] != "PreferNoSchedule"
            for taint in node.get("taints", [])
        ):
            return False
    return True
