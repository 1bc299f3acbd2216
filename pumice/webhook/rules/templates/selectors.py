"""Selectors: of pods and namespaces by labels, of nodes by labels and name."""

from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.deprecated import NODE_LABELS, node_label
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.labels import key_problem, labels, value_problem
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import one_of, quoted

__all__ = ["RULES", "TPL_LABEL_KEYS", "label_keys", "label_selector", "node_selector_term"]

TPL_SELECTOR = Rule(
    "TPL-SELECTOR",
    "selectors have labels for keys and values, an operator that exists, and as many values as it takes",
    "Kubernetes refuses the pod otherwise.",
    "matchExpressions: [{key: app, operator: In}]",
)
TPL_LABEL_KEYS = Rule(
    "TPL-LABEL-KEYS",
    "matchLabelKeys and mismatchLabelKeys hold keys of labels, beside a selector, and none in both",
    "For every pod Kubernetes adds its own values of these labels to the selector.",
    "topologyKey: zone, matchLabelKeys: [rev]",
)
TPL_LABEL_KEYS_TWICE = Rule(
    "TPL-LABEL-KEYS-TWICE",
    "matchLabelKeys hold no label that the selector beside them names",
    "Kubernetes takes the template, adds the pod's label to the selector, and then refuses the pod.",
    "labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [app]",
    stricter=True,
)

RULES = (TPL_SELECTOR, TPL_LABEL_KEYS, TPL_LABEL_KEYS_TWICE)

_SETS = ("In", "NotIn")
_PRESENCES = ("Exists", "DoesNotExist")
_BOUNDS = ("Gt", "Lt")
_NODE_NAME = "metadata.name"


def label_selector(site: Site, selector: Raw, field: str) -> None:
    """Check a selector by labels.

    Args:
        site: Where to report.
        selector: The selector.
        field: Where it is, from the site on.
    """
    if "matchLabels" in selector:
        labels(site, TPL_SELECTOR, selector["matchLabels"], f"{field}.matchLabels")
    for index, each in entries(selector.get("matchExpressions")):
        where = f"{field}.matchExpressions[{index}]"
        _operator(site, each, (*_SETS, *_PRESENCES), where)
        _key(site, each, where)
        _values(site, each, where)


def node_selector_term(site: Site, term: Raw, field: str, *, preferred: bool = False) -> None:
    """Check a term that selects nodes.

    Args:
        site: Where to report.
        term: The term.
        field: Where it is, from the site on.
        preferred: Whether no node has to meet it; its values may then be any text, though no node
            has others.
    """
    for index, each in entries(term.get("matchExpressions")):
        where = f"{field}.matchExpressions[{index}]"
        _operator(site, each, (*_SETS, *_PRESENCES, *_BOUNDS), where)
        _key(site, each, where)
        if each.get("key") in NODE_LABELS:
            node_label(site, each["key"], f"{where}.key")
        _values(site, each, where, TPL_DOUBTFUL if preferred else TPL_SELECTOR)
    for index, each in entries(term.get("matchFields")):
        _field(site, each, f"{field}.matchFields[{index}]")


def label_keys(
    site: Site,
    holder: Raw,
    field: str,
    pod_labels: frozenset[str],
    named: Rule = TPL_LABEL_KEYS_TWICE,
) -> None:
    """Check `matchLabelKeys` and `mismatchLabelKeys` against each other and the selector beside them.

    Args:
        site: Where to report.
        holder: What has all three.
        field: Where it is, from the site on.
        pod_labels: Keys of the labels that a pod of the template will have; of these, Kubernetes
            adds the values to the selector.
        named: The rule that a key breaks which the selector names already.
    """
    matching: list[str] = holder.get("matchLabelKeys", [])
    mismatching: list[str] = holder.get("mismatchLabelKeys", [])
    for name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and "labelSelector" not in holder:
            message = "must not be set without labelSelector"
            site.report(TPL_LABEL_KEYS, message, f"{field}.{name}")
        for index, key in enumerate(keys):
            if problem := key_problem(key):
                site.report(TPL_LABEL_KEYS, problem, f"{field}.{name}[{index}]")
    selected = holder.get("labelSelector")
    taken = set() if selected is None else _selected_twice(selected, matching, pod_labels)
    keys_of_selector = _keys(selected) if taken and selected is not None else ()
    others = frozenset(mismatching)
    for index, key in enumerate(matching):
        where = f"{field}.matchLabelKeys[{index}]"
        if key in others:
            site.report(TPL_LABEL_KEYS, f"{quoted(key)} is in mismatchLabelKeys too", where)
        elif key in taken:
            message = f"{quoted(key)} is in labelSelector already, or here twice"
            rule = named if key in keys_of_selector else TPL_LABEL_KEYS_TWICE
            site.report(rule, message, where)


def _selected_twice(selector: Raw, matching: list[str], pod_labels: frozenset[str]) -> set[str]:
    """Keys that come up again among a selector's expressions, with those that Kubernetes adds."""
    again = set()
    seen: set[str] = set()
    for key in (*_keys(selector), *(key for key in matching if key in pod_labels)):
        if key in seen:
            again.add(key)
        seen.add(key)
    return again


def _keys(selector: Raw) -> list[str]:
    """Keys that a selector names, in labels and in expressions."""
    expressions = entries(selector.get("matchExpressions"))
    return [*selector.get("matchLabels", ()), *(each.get("key", "") for _, each in expressions)]


def _operator(site: Site, requirement: Raw, known: tuple[str, ...], field: str) -> None:
    """Check an operator, and that it has as many values as it takes."""
    operator = requirement.get("operator", "")
    count = len(requirement.get("values", ()))
    one_of(site, TPL_SELECTOR, operator, known, f"{field}.operator")
    if operator in _SETS and not count:
        site.report(TPL_SELECTOR, f"must be set for {operator}, found none", f"{field}.values")
    elif operator in _PRESENCES and count:
        message = f"must not be set for {operator}, found {count}"
        site.report(TPL_SELECTOR, message, f"{field}.values")
    elif operator in _BOUNDS and operator in known and count != 1:
        message = f"must be a single value for {operator}, found {count}"
        site.report(TPL_SELECTOR, message, f"{field}.values")


def _key(site: Site, requirement: Raw, field: str) -> None:
    if problem := key_problem(requirement.get("key", "")):
        site.report(TPL_SELECTOR, problem, f"{field}.key")


def _values(site: Site, requirement: Raw, field: str, rule: Rule = TPL_SELECTOR) -> None:
    for index, value in enumerate(requirement.get("values", ())):
        if problem := value_problem(value):
            site.report(rule, problem, f"{field}.values[{index}]")


def _field(site: Site, requirement: Raw, field: str) -> None:
    """Check a requirement on a field of the node, of which there is only its name."""
    values = requirement.get("values", [])
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    one_of(site, TPL_SELECTOR, operator, _SETS, f"{field}.operator")
    if operator in _SETS and len(values) != 1:
        message = f"must be a single value, found {len(values)}"
        site.report(TPL_SELECTOR, message, f"{field}.values")
    if key != _NODE_NAME:
        message = f"must be {_NODE_NAME}, found {quoted(key)}"
        site.report(TPL_SELECTOR, message, f"{field}.key")
        return
    for index, value in enumerate(values):
        if problem := dns_subdomain_problem(value):
            site.report(TPL_SELECTOR, problem, f"{field}.values[{index}]")
