"""Where pods may run: node selector, affinity, spread constraints, tolerations and gates.

It also checks names of objects that a pod refers to, but not their existence.
"""

import re

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.templates import metadata
from pumice.webhook.rules.templates.shapes import (
    TPL_DEPRECATED,
    TPL_DOUBTFUL,
    TPL_FEATURE,
    FieldRule,
    node_label,
    refused,
)
from pumice.webhook.rules.templates.table import Row, Site, below, compiled

TPL_AFFINITY = refused(
    "TPL-AFFINITY",
    "required node affinity has a term, and preferences weigh from 1 to 100",
    "nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {…}}]}",
)
TPL_AFFINITY_TERM = refused(
    "TPL-AFFINITY-TERM",
    "terms of affinity to pods have a topologyKey, and namespaces that can exist",
    "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {…}}]}",
)
TPL_NODE_SELECTOR = refused(
    "TPL-NODE-SELECTOR",
    "nodeSelector holds labels",
    'nodeSelector: {disk: "solid state"}',
)
TPL_SPREAD = refused(
    "TPL-SPREAD",
    "spread constraints have a positive maxSkew, a topologyKey, and policies that exist",
    "topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
)
TPL_SPREAD_DUP = refused(
    "TPL-SPREAD-DUP",
    "no two spread constraints have the same topologyKey and whenUnsatisfiable",
    "topologySpreadConstraints: [{topologyKey: zone, …}, {topologyKey: zone, …}]",
    reason="FieldValueDuplicate",
)
TPL_TOLERATION = refused(
    "TPL-TOLERATION",
    "a toleration has the operator Equal or Exists; without a key it has Exists, and with Exists no value",
    "tolerations: [{key: gpu, operator: Exists, value: a100}]",
)
TPL_TOLERATION_EFFECT = FieldRule(
    "TPL-TOLERATION-EFFECT",
    "a toleration has an effect that exists; with tolerationSeconds that is NoExecute",
    "Only NoExecute evicts pods, so only it can be delayed.",
    "tolerations: [{key: gpu, effect: NoSchedule, tolerationSeconds: 60}]",
)
TPL_GATE = refused(
    "TPL-GATE",
    "gates have qualified names, and no two scheduling gates the same",
    "schedulingGates: [{name: wait for data}]",
)
TPL_GATE_NODE = refused(
    "TPL-GATE-NODE",
    "a pod with scheduling gates is on no node yet",
    "nodeName: node-1, schedulingGates: [{name: example.com/wait}]",
    reason="FieldValueForbidden",
    later=True,
    compares=True,
)
TPL_REFERENCE = FieldRule(
    "TPL-REFERENCE",
    "names of service accounts, nodes, priority classes and runtime classes are object names",
    "Kubernetes has no objects with other names.",
    "serviceAccountName: Job_Runner",
)
TPL_SCHEDULING_GROUP = FieldRule(
    "TPL-SCHEDULING-GROUP",
    "schedulingGroup names a PodGroup of Kubernetes",
    "Where the cluster has the feature GenericWorkload on, Kubernetes refuses the pod otherwise.",
    "schedulingGroup: {}",
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_operator = TPL_TOLERATION.one_of(*_OPERATORS)


def _node_selector(site: Site, found: Raw, field: str, _: Raw) -> None:
    for key in found:
        node_label(site, key, f"{field}.{key}", found)


def _spread_twice(site: Site, found: list[Raw], field: str, _: Raw) -> None:
    kinds: dict[tuple[str, str], int] = {}
    for index, each in enumerate(found):
        kind = (each.get("topologyKey", ""), each.get("whenUnsatisfiable", ""))
        if (first := kinds.setdefault(kind, index)) != index:
            message = f"has the topologyKey and whenUnsatisfiable of {field}[{first}]"
            site.report(TPL_SPREAD_DUP, message, f"{field}[{index}]")


def _toleration(site: Site, toleration: Raw, field: str, _: Raw) -> None:
    """Check key, operator and value, which belong together."""
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator = toleration.get("operator") or "Equal"
    if key and (problem := metadata.key_problem(key)):
        site.report(TPL_TOLERATION, problem, f"{field}.key")
    if operator in _COMPARISONS:
        message = f"{operator} needs the feature TaintTolerationComparisonOperators"
        site.report(TPL_FEATURE, message, f"{field}.operator")
        if not _INTEGER.fullmatch(value) or not _LOWEST <= int(value) <= _HIGHEST:
            message = f"must be an integer for {operator}, found {quoted(value)}"
            site.report(TPL_TOLERATION, message, f"{field}.value")
    elif operator not in _OPERATORS:
        _operator(site, operator, f"{field}.operator", toleration)
    elif operator == "Exists":
        if value:
            message = f"value must be empty when `operator` is 'Exists', found {quoted(value)}"
            site.report(TPL_TOLERATION, message, f"{field}.value")
    elif problem := metadata.value_problem(value):
        site.report(TPL_TOLERATION, problem, f"{field}.value")
    if not key and operator in (*_COMPARISONS, "Equal"):
        message = f"operator must be Exists when `key` is empty, found {operator}"
        site.report(TPL_TOLERATION, message, f"{field}.operator")


def _toleration_seconds(site: Site, _found: int, field: str, toleration: Raw) -> None:
    if (effect := toleration.get("effect", "")) != "NoExecute":
        message = "effect must be 'NoExecute' when `tolerationSeconds` is set, found "
        where = field.replace("tolerationSeconds", "effect")
        site.report(TPL_TOLERATION_EFFECT, f"{message}{quoted(effect)}", where)


def _service_account(site: Site, old: str, field: str, spec: Raw) -> None:
    """Check `serviceAccount`, the old name of `serviceAccountName`, which is used if that is empty."""
    new = spec.get("serviceAccountName")
    if not new:
        _reference(site, old, field, spec)
    if old and old != new:  # where both are the same, the API server has written the old one
        site.report(TPL_DEPRECATED, "is deprecated; use serviceAccountName instead", field)


_NO_SELECTOR = "is not set, so it selects no pods; {} selects all pods"
_EMPTY = "can not be empty, found none"
_NODE = f"{_EMPTY}; kubernetes.io/hostname is the key for single nodes"
_selector = TPL_DOUBTFUL.present(metadata.LABEL_SELECTOR, message=_NO_SELECTOR)
_pod_group = TPL_SCHEDULING_GROUP.valid(dns_subdomain_problem)
_reference = TPL_REFERENCE.valid(dns_subdomain_problem, empty=True)
_topology_key = TPL_AFFINITY_TERM.required(metadata.key_problem, message=_NODE, reason=None)
_secret = TPL_DOUBTFUL.required(message="must name a Secret, found none", reason=None)
_TERM = compiled(
    Row("", metadata.label_keys(metadata.TPL_LABEL_KEYS_TWICE)),
    Row("labelSelector", _selector, None),
    Row("namespaceSelector", metadata.LABEL_SELECTOR),
    Row("namespaces[]", TPL_AFFINITY_TERM.valid(dns_label_problem)),
    Row("topologyKey", _topology_key, ""),
    Row("topologyKey", node_label),
)
_TERMS = "affinity.podAffinity|podAntiAffinity"
_NODE_TERMS = f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
_weight = TPL_AFFINITY.within(1, 100, "must be in the range 1-100")
_some_terms = TPL_AFFINITY.required(
    message="must have at least one node selector term, found none", reason=None
)
_positive = TPL_SPREAD.within(1, words="must be greater than zero")
_ONLY_HARD = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
_SPREAD = (
    # Volcano's code is that of a Kubernetes which does not add to selectors, and refuses keys that they name.
    Row("", metadata.label_keys(metadata.TPL_LABEL_KEYS)),
    Row("labelSelector", _selector, None),
    Row("maxSkew", _positive, 0),
    Row("topologyKey", TPL_SPREAD.required(message=_EMPTY, reason=None), ""),
    Row("topologyKey", node_label),
    Row("whenUnsatisfiable", TPL_SPREAD.one_of("DoNotSchedule", "ScheduleAnyway"), ""),
    Row("minDomains", _positive),
    Row("minDomains", TPL_SPREAD.only_with("whenUnsatisfiable", "DoNotSchedule", _ONLY_HARD)),
    Row("nodeAffinityPolicy|nodeTaintsPolicy", TPL_SPREAD.one_of("Honor", "Ignore")),
)

ROWS = (
    Row("nodeSelector", metadata.labels_of(TPL_NODE_SELECTOR)),
    Row("nodeSelector", _node_selector),
    Row(_NODE_TERMS, _some_terms, ()),
    Row(f"{_NODE_TERMS}[]", metadata.NODE_TERM),
    Row(f"affinity.nodeAffinity.{_PREFERRED}[].weight", _weight, 0),
    Row(f"affinity.nodeAffinity.{_PREFERRED}[].preference", metadata.NODE_PREFERENCE),
    Row(f"{_TERMS}.{_REQUIRED}[]", _TERM),
    Row(f"{_TERMS}.{_PREFERRED}[].weight", _weight, 0),
    Row(f"{_TERMS}.{_PREFERRED}[].podAffinityTerm", _TERM, {}),
    Row("topologySpreadConstraints", _spread_twice),
    *below("topologySpreadConstraints[]", *_SPREAD),
    Row("tolerations[]", _toleration),
    Row("tolerations[].effect", TPL_TOLERATION_EFFECT.one_of(*_EFFECTS, empty=True)),
    Row("tolerations[].tolerationSeconds", _toleration_seconds),
    Row("schedulingGates[].name", TPL_GATE.valid(metadata.key_problem), ""),
    Row("schedulingGates", TPL_GATE.unique("name")),
    Row("nodeName", TPL_GATE_NODE.excludes("schedulingGates")),
    Row("readinessGates[].conditionType", TPL_GATE.valid(metadata.key_problem), ""),
    Row("serviceAccountName|nodeName|priorityClassName", _reference),
    Row("serviceAccount", _service_account),
    Row("runtimeClassName", TPL_REFERENCE.valid(dns_subdomain_problem)),
    Row("schedulingGroup.podGroupName", TPL_SCHEDULING_GROUP.present(_pod_group), None),
    Row("imagePullSecrets", TPL_DOUBTFUL.unique("name")),
    Row("imagePullSecrets[].name", _secret, ""),
)
"""Fields of a pod's spec."""

SCHEDULING = compiled(*ROWS)
"""Checks these fields for other objects that have them."""
