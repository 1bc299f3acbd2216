"""Affinity to nodes and pods."""

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.deprecated import NODE_LABELS, node_label
from pumice.webhook.rules.templates.doubtful import no_selector
from pumice.webhook.rules.templates.labels import key_problem
from pumice.webhook.rules.templates.selectors import label_keys, label_selector, node_selector_term
from pumice.webhook.rules.templates.site import Raw, Site, entries

__all__ = ["RULES", "TPL_NODE_SELECTOR", "affinity"]

TPL_AFFINITY = Rule(
    "TPL-AFFINITY",
    "required node affinity has a term, and preferences weigh from 1 to 100",
    "Kubernetes refuses the pod otherwise.",
    "nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {…}}]}",
)
TPL_AFFINITY_TERM = Rule(
    "TPL-AFFINITY-TERM",
    "terms of affinity to pods have a topologyKey, and namespaces that can exist",
    "Kubernetes refuses the pod otherwise.",
    "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {…}}]}",
)
TPL_NODE_SELECTOR = Rule(
    "TPL-NODE-SELECTOR",
    "nodeSelector holds labels",
    "Kubernetes refuses the pod otherwise.",
    'nodeSelector: {disk: "solid state"}',
)

RULES = (TPL_AFFINITY, TPL_AFFINITY_TERM, TPL_NODE_SELECTOR)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST = 100


def affinity(site: Site, found: Raw, pod_labels: frozenset[str]) -> None:
    """Check `affinity`.

    Args:
        site: Where it is.
        found: The affinity.
        pod_labels: Keys of the labels that a pod of the template will have.
    """
    if "nodeAffinity" in found:
        _node_affinity(site.at("nodeAffinity"), found["nodeAffinity"])
    for kind in ("podAffinity", "podAntiAffinity"):
        if kind in found:
            _pod_affinity(site.at(kind), found[kind], pod_labels)


def _node_affinity(site: Site, found: Raw) -> None:
    if _REQUIRED in found:
        terms = found[_REQUIRED].get("nodeSelectorTerms")
        if not terms:
            message = "must have at least one term, found none"
            site.report(TPL_AFFINITY, message, f"{_REQUIRED}.nodeSelectorTerms")
        for index, term in entries(terms):
            node_selector_term(site, term, f"{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, each in entries(found.get(_PREFERRED)):
        field = f"{_PREFERRED}[{index}]"
        _weight(site, each, field)
        preference = each.get("preference", {})
        node_selector_term(site, preference, f"{field}.preference", preferred=True)


def _pod_affinity(site: Site, found: Raw, pod_labels: frozenset[str]) -> None:
    for index, term in entries(found.get(_REQUIRED)):
        _term(site, term, f"{_REQUIRED}[{index}]", pod_labels)
    for index, each in entries(found.get(_PREFERRED)):
        field = f"{_PREFERRED}[{index}]"
        _weight(site, each, field)
        _term(site, each.get("podAffinityTerm", {}), f"{field}.podAffinityTerm", pod_labels)


def _weight(site: Site, preference: Raw, field: str) -> None:
    weight = preference.get("weight", 0)
    if not 1 <= weight <= _HEAVIEST:
        message = f"must be from 1 to {_HEAVIEST}, found {weight}"
        site.report(TPL_AFFINITY, message, f"{field}.weight")


def _term(site: Site, term: Raw, field: str, pod_labels: frozenset[str]) -> None:
    for kind in ("labelSelector", "namespaceSelector"):
        if kind in term:
            label_selector(site, term[kind], f"{field}.{kind}")
    if "labelSelector" not in term:
        no_selector(site, field)
    for index, name in enumerate(term.get("namespaces", ())):
        if problem := dns_label_problem(name):
            site.report(TPL_AFFINITY_TERM, problem, f"{field}.namespaces[{index}]")
    if "matchLabelKeys" in term or "mismatchLabelKeys" in term:
        label_keys(site, term, field, pod_labels)
    key = term.get("topologyKey", "")
    if not key:
        message = "must be set, found none; kubernetes.io/hostname stands for a node"
        site.report(TPL_AFFINITY_TERM, message, f"{field}.topologyKey")
    elif problem := key_problem(key):
        site.report(TPL_AFFINITY_TERM, problem, f"{field}.topologyKey")
    elif key in NODE_LABELS:
        node_label(site, key, f"{field}.topologyKey")
