"""What a template gives its pods beside their spec: labels and annotations.

Name, namespace and owner of a pod are the controller's, whatever the template says.
"""

from functools import lru_cache

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.labels import key_problem, labels
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import quoted

__all__ = ["RULES", "annotations_problem", "metadata"]

TPL_LABEL = Rule(
    "TPL-LABEL",
    "labels of a template are labels",
    "Kubernetes refuses the pod otherwise.",
    'template: {metadata: {labels: {app: "my app"}}}',
)
TPL_ANNOTATION = Rule(
    "TPL-ANNOTATION",
    "keys of a template's annotations are qualified names, and the annotations take 256 KiB at most",
    "Kubernetes refuses the pod otherwise.",
    'template: {metadata: {annotations: {"my note": x}}}',
)
TPL_FINALIZER = Rule(
    "TPL-FINALIZER",
    "finalizers of a template are qualified names with a domain",
    "No pod can have another one. Pods of a Job get none of their template's anyway.",
    "template: {metadata: {finalizers: [cleanup]}}",
    stricter=True,
)

RULES = (TPL_LABEL, TPL_ANNOTATION, TPL_FINALIZER)

_LARGEST = 256 * 1024
"""Bytes of all keys and values of annotations together."""

_MOST_BYTES = 4
"""Of a character in UTF-8."""

_BUILTIN_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


def metadata(site: Site, found: Raw) -> None:
    """Check a template's metadata.

    Args:
        site: Where the template is.
        found: Its metadata.
    """
    if "labels" in found:
        labels(site, TPL_LABEL, found["labels"], "metadata.labels")
    if annotations := found.get("annotations"):
        annotations_problem(site, TPL_ANNOTATION, annotations, "metadata.annotations")
    for index, finalizer in enumerate(found.get("finalizers", ())):
        if problem := key_problem(finalizer):
            site.report(TPL_FINALIZER, problem, f"metadata.finalizers[{index}]")
        elif "/" not in finalizer and finalizer not in _BUILTIN_FINALIZERS:
            message = f"must have a domain, as in example.com/cleanup, found {quoted(finalizer)}"
            site.report(TPL_FINALIZER, message, f"metadata.finalizers[{index}]")


def annotations_problem(site: Site, rule: Rule, found: Raw, field: str) -> None:
    """Check keys and size of annotations; what they hold is free.

    Args:
        site: Where to report.
        rule: The rule that a bad key, or too many bytes, break.
        found: Keys and values.
        field: Where the annotations are, from the site on.
    """
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


@lru_cache(maxsize=4096)
def _key_problem(key: str) -> str | None:
    # In keys of annotations, unlike labels, Kubernetes lets the domain be of any case.
    return key_problem(key.lower())


def _size(key: str, value: str) -> int:
    # Half of a surrogate pair is legal JSON.
    return len(f"{key}{value}".encode(errors="surrogatepass"))
