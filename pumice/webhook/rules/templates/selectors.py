"""Selectors: of pods and namespaces by labels, of nodes by labels and name."""

from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL, node_label
from pumice.webhook.rules.templates.metadata import key_problem, labels_of, value_problem
from pumice.webhook.rules.templates.shapes import name, one_of, quoted, refused
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Check, Row, compiled

__all__ = [
    "LABEL_SELECTOR",
    "NODE_PREFERENCE",
    "NODE_TERM",
    "TPL_LABEL_KEYS",
    "TPL_LABEL_KEYS_TWICE",
    "label_keys",
]

TPL_SELECTOR = refused(
    "TPL-SELECTOR",
    "selectors have labels for keys and values, an operator that exists, and as many values as it takes",
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

_SETS = ("In", "NotIn")
_PRESENCES = ("Exists", "DoesNotExist")
_BOUNDS = ("Gt", "Lt")
_NODE_NAME = "metadata.name"


def label_keys(site: Site, holder: Raw, field: str, named: Rule = TPL_LABEL_KEYS_TWICE) -> None:
    """Check `matchLabelKeys` and `mismatchLabelKeys` against each other and the selector beside them.

    Args:
        site: Where to report; of the labels that its pod will have, Kubernetes adds the values to the selector.
        holder: What has all three.
        field: Where it is, from the site on.
        named: The rule that a key breaks which the selector names already.
    """
    matching: list[str] = holder.get("matchLabelKeys", [])
    mismatching: list[str] = holder.get("mismatchLabelKeys", [])
    for each, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and "labelSelector" not in holder:
            message = "must not be set without labelSelector"
            site.report(TPL_LABEL_KEYS, message, f"{field}.{each}")
        for index, key in enumerate(keys):
            if problem := key_problem(key):
                site.report(TPL_LABEL_KEYS, problem, f"{field}.{each}[{index}]")
    keys_of_selector = _keys(holder["labelSelector"]) if "labelSelector" in holder else None
    taken = _selected_twice(keys_of_selector, matching, site.pod.labels)
    others = frozenset(mismatching)
    for index, key in enumerate(matching):
        where = f"{field}.matchLabelKeys[{index}]"
        if key in others:
            site.report(TPL_LABEL_KEYS, f"{quoted(key)} is in mismatchLabelKeys too", where)
        elif key in taken:
            message = f"{quoted(key)} is in labelSelector already, or here twice"
            rule = named if key in (keys_of_selector or ()) else TPL_LABEL_KEYS_TWICE
            site.report(rule, message, where)


def _selected_twice(
    selected: list[str] | None, matching: list[str], pod_labels: frozenset[str]
) -> set[str]:
    """Keys that come up again among a selector's expressions, with those that Kubernetes adds."""
    again: set[str] = set()
    seen: set[str] = set()
    if selected is not None:
        for key in (*selected, *(key for key in matching if key in pod_labels)):
            if key in seen:
                again.add(key)
            seen.add(key)
    return again


def _keys(selector: Raw) -> list[str]:
    """Keys that a selector names, in labels and in expressions."""
    expressions = selector.get("matchExpressions", ())
    return [*selector.get("matchLabels", ()), *(each.get("key", "") for each in expressions)]


def _count(site: Site, requirement: Raw, field: str, _: Raw) -> None:
    """Check that an operator has as many values as it takes."""
    operator, count = requirement.get("operator", ""), len(requirement.get("values", ()))
    if operator in _SETS and not count:
        site.report(TPL_SELECTOR, f"must be set for {operator}, found none", f"{field}.values")
    elif operator in _PRESENCES and count:
        message = f"must not be set for {operator}, found {count}"
        site.report(TPL_SELECTOR, message, f"{field}.values")


def _count_of_bound(site: Site, requirement: Raw, field: str, _: Raw) -> None:
    operator, count = requirement.get("operator", ""), len(requirement.get("values", ()))
    if operator in _BOUNDS and count != 1:
        message = f"must be a single value for {operator}, found {count}"
        site.report(TPL_SELECTOR, message, f"{field}.values")


def _field(site: Site, requirement: Raw, field: str, _: Raw) -> None:
    """Check a requirement on a field of the node, of which there is only its name."""
    values, key = requirement.get("values", []), requirement.get("key", "")
    if requirement.get("operator") in _SETS and len(values) != 1:
        message = f"must be a single value, found {len(values)}"
        site.report(TPL_SELECTOR, message, f"{field}.values")
    if key != _NODE_NAME:
        message = f"must be {_NODE_NAME}, found {quoted(key)}"
        site.report(TPL_SELECTOR, message, f"{field}.key")
        return
    for index, value in enumerate(values):
        if problem := dns_subdomain_problem(value):
            site.report(TPL_SELECTOR, problem, f"{field}.values[{index}]")


def _requirements(*operators: str, values: Rule = TPL_SELECTOR) -> tuple[Row, ...]:
    return (
        Row("matchExpressions[]", _count),
        Row("matchExpressions[].operator", one_of(TPL_SELECTOR, operators), ""),
        Row("matchExpressions[].key", name(TPL_SELECTOR, key_problem), ""),
        Row("matchExpressions[].values[]", name(values, value_problem)),
    )


def _node_term(values: Rule) -> Check:
    return compiled(
        (
            *_requirements(*_SETS, *_PRESENCES, *_BOUNDS, values=values),
            Row("matchExpressions[]", _count_of_bound),
            Row("matchExpressions[].key", node_label),
            Row("matchFields[]", _field),
            Row("matchFields[].operator", one_of(TPL_SELECTOR, _SETS), ""),
        )
    )


LABEL_SELECTOR = compiled(
    (Row("matchLabels", labels_of(TPL_SELECTOR)), *_requirements(*_SETS, *_PRESENCES))
)
"""Checks a selector by labels."""

NODE_TERM = _node_term(TPL_SELECTOR)
"""Checks a term that selects nodes."""

NODE_PREFERENCE = _node_term(TPL_DOUBTFUL)
"""Checks one that no node has to meet; its values may then be any string, though no node has others."""
