"""What a template gives its pods beside their spec: labels and annotations; labels in selectors and claims, too.

Name, namespace and owner of a pod are the controller's, whatever the template says.
"""

from functools import lru_cache

from pumice.api.names import dns_label_problem, label_value_problem, qualified_name_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.shapes import Problem, quoted, refused
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Check, Row, compiled

__all__ = [
    "METADATA",
    "annotations_of",
    "key_problem",
    "label_problem",
    "labels_of",
    "value_problem",
]

TPL_LABEL = refused(
    "TPL-LABEL",
    "labels of a template are labels",
    'template: {metadata: {labels: {app: "my app"}}}',
)
TPL_ANNOTATION = refused(
    "TPL-ANNOTATION",
    "keys of a template's annotations are qualified names, and the annotations take 256 KiB at most",
    'template: {metadata: {annotations: {"my note": x}}}',
)
TPL_FINALIZER = Rule(
    "TPL-FINALIZER",
    "finalizers of a template are qualified names with a domain",
    "No pod can have another one. Pods of a Job get none of their template's anyway.",
    "template: {metadata: {finalizers: [cleanup]}}",
    stricter=True,
)

_LARGEST = 256 * 1024
"""Bytes of all keys and values of annotations together."""
_MOST_BYTES = 4
"""Of a character in UTF-8."""
_BUILTIN_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


_remembered = lru_cache(maxsize=4096)
"""For problems of texts that recur in every pod."""

key_problem: Problem = _remembered(qualified_name_problem)
"""Says why a text is no key of a label."""

value_problem: Problem = _remembered(label_value_problem)
"""Says why a text is no value of a label."""

label_problem: Problem = _remembered(dns_label_problem)
"""Says why a text is no DNS label, as names of volumes are."""


def labels_of(rule: Rule) -> Check:
    """The shape of a map of labels."""

    def check(site: Site, found: Raw, field: str, _: Raw) -> None:
        for key, value in found.items():
            if problem := key_problem(key):
                site.report(rule, f"the key {problem}", f"{field}.{key}")
            if problem := value_problem(value):
                site.report(rule, problem, f"{field}.{key}")

    return check


def annotations_of(rule: Rule) -> Check:
    """The shape of annotations: their keys and size are checked, what they hold is free."""

    def check(site: Site, found: Raw, field: str, _: Raw) -> None:
        length = 0
        for key, value in found.items():
            length += len(key) + len(value)
            if problem := _key_problem(key):
                site.report(rule, f"the key {problem}", f"{field}.{key}")
        if (
            length * _MOST_BYTES > _LARGEST
            and (size := sum(map(_size, found, found.values()))) > _LARGEST
        ):
            message = f"must take at most {_LARGEST} bytes, keys and values together, found {size}"
            site.report(rule, message, field)

    return check


def _finalizer(site: Site, found: str, field: str, _: Raw) -> None:
    if problem := key_problem(found):
        site.report(TPL_FINALIZER, problem, field)
    elif "/" not in found and found not in _BUILTIN_FINALIZERS:
        message = f"must have a domain, as in example.com/cleanup, found {quoted(found)}"
        site.report(TPL_FINALIZER, message, field)


@_remembered
def _key_problem(key: str) -> str | None:
    # In keys of annotations, unlike labels, Kubernetes lets the domain be of any case.
    return key_problem(key.lower())


def _size(key: str, value: str) -> int:
    # Half of a surrogate pair is legal JSON.
    return len(f"{key}{value}".encode(errors="surrogatepass"))


METADATA = compiled(
    (
        Row("labels", labels_of(TPL_LABEL)),
        Row("annotations", annotations_of(TPL_ANNOTATION)),
        Row("finalizers[]", _finalizer),
    )
)
"""Checks a template's metadata."""
