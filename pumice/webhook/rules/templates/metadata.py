"""Labels, annotations and finalizers of a template; and selectors: of pods, namespaces and nodes by labels.

The controller sets name, namespace and owner of a pod; those of the template have no effect.
"""

from collections import Counter
from collections.abc import Sequence

from pumice.api import names
from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.remembering import remembered
from pumice.webhook.rules.labels import MOST_ANNOTATIONS, MOST_LABELS, not_many
from pumice.webhook.rules.templates.shapes import (
    TPL_DOUBTFUL,
    FieldRule,
    Problem,
    node_label,
    refused,
    stricter,
)
from pumice.webhook.rules.templates.table import Check, Row, Site, compiled

TPL_LABEL = refused(
    "TPL-LABEL",
    "labels of a template have valid keys and values",
    'template: {metadata: {labels: {app: "my app"}}}',
)
TPL_ANNOTATION = refused(
    "TPL-ANNOTATION",
    "keys of a template's annotations are qualified names, and the annotations take 256 KiB at most",
    'template: {metadata: {annotations: {"my note": x}}}',
)
TPL_MANY_LABELS = stricter(
    "TPL-MANY-LABELS",
    f"a template has at most {MOST_LABELS} labels and {MOST_ANNOTATIONS} annotations",
    "Scheduler and controller keep the labels and annotations of all pods; a template with tens of thousands of them "
    "would take their memory.",
    "template: {metadata: {labels: {l0: a, l1: a, …, l256: a}}}",
    reason="FieldValueTooMany",
)
TPL_FINALIZER = stricter(
    "TPL-FINALIZER",
    "finalizers of a template are qualified names with a domain",
    "Kubernetes refuses other finalizers. Pods of a Job do not get the finalizers of their template.",
    "template: {metadata: {finalizers: [cleanup]}}",
)
TPL_SELECTOR = refused(
    "TPL-SELECTOR",
    "selectors have labels for keys and values, an operator that exists, and as many values as it takes",
    "matchExpressions: [{key: app, operator: In}]",
)
TPL_LABEL_KEYS = FieldRule(
    "TPL-LABEL-KEYS",
    "matchLabelKeys and mismatchLabelKeys hold keys of labels, beside a selector, and none in both",
    "For every pod Kubernetes adds its own values of these labels to the selector.",
    "topologyKey: zone, matchLabelKeys: [rev]",
)
TPL_LABEL_KEYS_TWICE = stricter(
    "TPL-LABEL-KEYS-TWICE",
    "matchLabelKeys hold no label that the selector beside them names",
    "Kubernetes takes the template, adds the pod's label to the selector, and then refuses the pod.",
    "labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [app]",
)

_LARGEST = 256 * 1024
"""Bytes of all keys and values of annotations together."""
_BUILTIN_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


_remembered = remembered(4096)
"""Caches problems of texts that occur in every pod."""

key_problem: Problem = _remembered(names.qualified_name_problem)
"""Returns why a text is not a valid label key."""

value_problem: Problem = _remembered(names.label_value_problem)
"""Returns why a text is not a valid label value."""

label_problem: Problem = _remembered(names.dns_label_problem)
"""Returns why a text is not a DNS label, such as the name of a volume."""


def labels_of(rule: FieldRule) -> Check:
    """The shape of a map of labels."""

    def check(site: Site, found: Raw, field: str, _: Raw) -> None:
        for key, value in found.items():
            if problem := key_problem(key):
                site.report(rule, f"invalid key: {problem}", f"{field}.{key}")
            if problem := value_problem(value):
                site.report(rule, problem, f"{field}.{key}")

    return check


def annotations_of(rule: FieldRule) -> Check:
    """The shape of annotations: keys and size are checked, values are free."""

    def check(site: Site, found: Raw, field: str, _: Raw) -> None:
        for key in found:
            if problem := _key_problem(key):
                site.report(rule, f"invalid key: {problem}", f"{field}.{key}")
        if (size := sum(map(_size, found, found.values()))) > _LARGEST:
            message = f"must take at most {_LARGEST} bytes, keys and values together, found {size}"
            site.report(rule, message, field)

    return check


def _not_many(site: Site, meta: Raw, field: str, _: Raw) -> None:
    labels, annotations = meta.get("labels"), meta.get("annotations")
    not_many(site.case, TPL_MANY_LABELS, f"{site.path}.{field}", labels, annotations)


def _finalizer_problem(found: str) -> str | None:
    if (problem := key_problem(found)) or "/" in found or found in _BUILTIN_FINALIZERS:
        return problem
    return f"must have a domain, as in example.com/cleanup, found {quoted(found)}"


@_remembered
def _key_problem(key: str) -> str | None:
    # In keys of annotations, unlike labels, Kubernetes lets the domain be of any case.
    return key_problem(key.lower())


def _size(key: str, value: str) -> int:
    # Half of a surrogate pair is legal JSON.
    return len(f"{key}{value}".encode(errors="surrogatepass"))


METADATA = compiled(
    Row("", _not_many),
    Row("labels", labels_of(TPL_LABEL)),
    Row("annotations", annotations_of(TPL_ANNOTATION)),
    Row("finalizers[]", TPL_FINALIZER.valid(_finalizer_problem)),
)
"""Checks a template's metadata."""


_SETS = ("In", "NotIn")
_PRESENCES = ("Exists", "DoesNotExist")
_BOUNDS = ("Gt", "Lt")
_NODE_NAME = "metadata.name"


def label_keys(named: FieldRule) -> Check:
    """The shape of objects with `matchLabelKeys`, `mismatchLabelKeys` and a selector.

    A key that the selector also names breaks the rule `named`. Kubernetes adds the pod's values of these labels to the
    selector.
    """

    def twice(site: Site, keys: list[str], field: str, holder: Raw) -> None:
        selector = holder.get("labelSelector", {})
        mismatching = frozenset(holder.get("mismatchLabelKeys", ()))
        expressions = (each.get("key", "") for each in selector.get("matchExpressions", ()))
        selected = [*selector.get("matchLabels", ()), *expressions]
        added = [key for key in keys if key in site.pod.labels and "labelSelector" in holder]
        count = Counter((*selected, *added))
        for index, key in enumerate(keys):
            message = f"{quoted(key)} exists in both matchLabelKeys and "
            if key in mismatching:
                site.report(TPL_LABEL_KEYS, f"{message}mismatchLabelKeys", f"{field}[{index}]")
            elif count[key] > 1:
                rule = named if key in selected else TPL_LABEL_KEYS_TWICE
                site.report(rule, f"{message}labelSelector, or here twice", f"{field}[{index}]")

    without_selector = TPL_LABEL_KEYS.breaking(
        "must not be specified when labelSelector is not set",
        lambda _, keys, holder: keys and "labelSelector" not in holder,
    )
    each = compiled(
        Row("matchLabelKeys|mismatchLabelKeys", without_selector),
        Row("matchLabelKeys|mismatchLabelKeys[]", TPL_LABEL_KEYS.valid(key_problem)),
    )
    return compiled(Row("", each), Row("matchLabelKeys", twice))


def _count_problem(_: Site, values: Sequence[str], requirement: Raw) -> str:
    operator, count = requirement.get("operator", ""), len(values)
    if operator in _SETS and not count:
        return f"must be specified when `operator` is 'In' or 'NotIn', found none for {operator}"
    if operator in _PRESENCES and count:
        return f"must not be set for {operator}, found {count}"
    if operator in _BOUNDS and count != 1:
        return f"must be a single value for {operator}, found {count}"
    return ""


def _field(site: Site, requirement: Raw, field: str, _: Raw) -> None:
    """Check a requirement on a field of the node; the only field is its name."""
    values, key = requirement.get("values", []), requirement.get("key", "")
    if requirement.get("operator") in _SETS and len(values) != 1:
        message = f"must be a single value, found {len(values)}"
        site.report(TPL_SELECTOR, message, f"{field}.values")
    if key == _NODE_NAME:
        _node_names(site, values, f"{field}.values", requirement)
    else:
        message = f"{quoted(key)} is not a valid field selector key; the only one is {_NODE_NAME}"
        site.report(TPL_SELECTOR, message, f"{field}.key")


_node_names = compiled(Row("[]", TPL_SELECTOR.valid(names.dns_subdomain_problem)))


def _requirements(rule: FieldRule, *operators: str, values: FieldRule) -> tuple[Row, ...]:
    known = rule.one_of(*operators, problem="not a valid selector operator")
    count = compiled(Row("values", rule.judged(_count_problem), ()))
    return (
        Row("matchExpressions[]", count),
        Row("matchExpressions[].operator", known, ""),
        Row("matchExpressions[].key", rule.valid(key_problem), ""),
        Row("matchExpressions[].values[]", values.valid(value_problem)),
    )


def _node_term(values: FieldRule) -> Check:
    known = TPL_SELECTOR.one_of(*_SETS, problem="not a valid selector operator")
    return compiled(
        *_requirements(TPL_SELECTOR, *_SETS, *_PRESENCES, *_BOUNDS, values=values),
        Row("matchExpressions[].key", node_label),
        Row("matchFields[]", _field),
        Row("matchFields[].operator", known, ""),
    )


def label_selector(rule: FieldRule) -> Check:
    """The shape of a selector by labels."""
    return compiled(
        Row("matchLabels", labels_of(rule)),
        *_requirements(rule, *_SETS, *_PRESENCES, values=rule),
    )


LABEL_SELECTOR = label_selector(TPL_SELECTOR)
"""Checks a selector by labels."""

NODE_TERM = _node_term(TPL_SELECTOR)
"""Checks a term that selects nodes."""

NODE_PREFERENCE = _node_term(TPL_DOUBTFUL)
"""Checks a preferred term, whose values may be any string."""
