"""Claims that Kubernetes makes for each pod: `ephemeral.volumeClaimTemplate`."""

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.pod_types import pod_types
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.labels import labels
from pumice.webhook.rules.templates.metadata import annotations_problem
from pumice.webhook.rules.templates.selectors import label_selector
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import one_of, text

__all__ = ["RULES", "claim_template"]

TPL_CLAIM_TEMPLATE = Rule(
    "TPL-CLAIM-TEMPLATE",
    "a claim for each pod says how it is mounted and how much it holds, and has no name of its own",
    "Kubernetes refuses the pod otherwise.",
    "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}",
)

RULES = (TPL_CLAIM_TEMPLATE,)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_METADATA = ("annotations", "labels")
_POINTERS = ("deletionGracePeriodSeconds", "deletionTimestamp")
"""Of these, unlike of the others, an empty value is a value."""


def claim_template(site: Site, template: Raw, field: str) -> None:
    """Check a template of claims.

    Args:
        site: Where to report.
        template: The template.
        field: Where it is, from the site on.
    """
    metadata = template.get("metadata", {})
    annotations_problem(
        site, TPL_CLAIM_TEMPLATE, metadata.get("annotations", {}), f"{field}.metadata.annotations"
    )
    labels(site, TPL_CLAIM_TEMPLATE, metadata.get("labels", {}), f"{field}.metadata.labels")
    for name, value in metadata.items():
        is_set = value or name in _POINTERS or isinstance(value, list)
        if is_set and name not in _METADATA and name in pod_types()["ObjectMeta"]:
            message = "must not be set: the claim is named after pod and volume"
            site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.metadata.{name}")
    spec = template.get("spec", {})
    where = f"{field}.spec"
    _access_modes(site, spec.get("accessModes", []), f"{where}.accessModes")
    _storage(site, spec, where)
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name) and (problem := dns_subdomain_problem(spec[name])):
            site.report(TPL_CLAIM_TEMPLATE, problem, f"{where}.{name}")
    one_of(site, TPL_CLAIM_TEMPLATE, spec.get("volumeMode"), _VOLUME_MODES, f"{where}.volumeMode")
    if "selector" in spec:
        label_selector(site, spec["selector"], f"{where}.selector")
    _data_sources(site, spec, where)


def _access_modes(site: Site, modes: list[str], field: str) -> None:
    if not modes:
        site.report(TPL_CLAIM_TEMPLATE, "must have at least one mode, found none", field)
    for index, mode in enumerate(modes):
        one_of(site, TPL_CLAIM_TEMPLATE, mode, _ACCESS_MODES, f"{field}[{index}]")
    if "ReadWriteOncePod" in modes and len({*modes} & {*_ACCESS_MODES}) > 1:
        message = "must have no other mode beside ReadWriteOncePod"
        site.report(TPL_CLAIM_TEMPLATE, message, field)


def _storage(site: Site, spec: Raw, field: str) -> None:
    amount = spec.get("resources", {}).get("requests", {}).get("storage")
    where = f"{field}.resources.requests.storage"
    if amount is None:
        site.report(TPL_CLAIM_TEMPLATE, "must be set, found none", where)
    elif parse_milli(amount) <= 0:
        site.report(TPL_CLAIM_TEMPLATE, f"must be above 0, found {amount}", where)
    elif parse_milli(amount) % MILLI:
        site.report(TPL_DOUBTFUL, f"{amount} is not a whole number of bytes", where)


def _data_sources(site: Site, spec: Raw, field: str) -> None:
    """Check what a claim is filled from; the one field is the other's successor."""
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            _data_source(site, spec[name], f"{field}.{name}")
    if "dataSource" not in spec or "dataSourceRef" not in spec:
        return
    old, new = spec["dataSource"], spec["dataSourceRef"]
    if new.get("namespace"):
        message = "must not be set where dataSourceRef has a namespace"
        site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.dataSource")
    elif any(
        old.get(name, default) != new.get(name, default)
        for name, default in (("apiGroup", None), ("kind", ""), ("name", ""))
    ):
        message = "must be the same as dataSourceRef"
        site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.dataSource")


def _data_source(site: Site, source: Raw, field: str) -> None:
    text(site, TPL_CLAIM_TEMPLATE, source.get("name"), f"{field}.name")
    kind = text(site, TPL_CLAIM_TEMPLATE, source.get("kind"), f"{field}.kind")
    group = source.get("apiGroup")
    if group:
        if problem := dns_subdomain_problem(group):
            site.report(TPL_CLAIM_TEMPLATE, problem, f"{field}.apiGroup")
    elif kind and kind != "PersistentVolumeClaim":
        message = f"must be set for a {kind}, found none"
        site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.apiGroup")
    space = source.get("namespace")
    if space and (problem := dns_label_problem(space)):
        site.report(TPL_CLAIM_TEMPLATE, problem, f"{field}.namespace")
