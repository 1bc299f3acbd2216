"""Claims that Kubernetes creates for each pod: `ephemeral.volumeClaimTemplate`."""

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.pod_types import pod_types
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.metadata import LABEL_SELECTOR, annotations_of, labels_of
from pumice.webhook.rules.templates.shapes import NOT_SET, refused
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, compiled

TPL_CLAIM_TEMPLATE = refused(
    "TPL-CLAIM-TEMPLATE",
    "a claim for each pod says how it is mounted and how much it holds, and has no name of its own",
    "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}",
)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_METADATA = ("annotations", "labels")
_POINTERS = ("deletionGracePeriodSeconds", "deletionTimestamp")
"""Fields for which an empty value is valid."""


def _metadata(site: Site, metadata: Raw, field: str, _: Raw) -> None:
    for each, value in metadata.items():
        is_set = value or each in _POINTERS or isinstance(value, list)
        if is_set and each not in _METADATA and each in pod_types()["ObjectMeta"]:
            message = "must not be set: the claim is named after pod and volume"
            site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.{each}")


def _storage(site: Site, resources: Raw, field: str, _: Raw) -> None:
    amount, where = resources.get("requests", {}).get("storage"), f"{field}.requests.storage"
    if amount is None:
        site.report(TPL_CLAIM_TEMPLATE, NOT_SET, where)
    elif parse_milli(amount) <= 0:
        site.report(TPL_CLAIM_TEMPLATE, f"must be above 0, found {amount}", where)
    elif parse_milli(amount) % MILLI:
        site.report(TPL_DOUBTFUL, f"{amount} is a fractional number of bytes", where)


def _old_source(site: Site, old: Raw, field: str, spec: Raw) -> None:
    """Check that `dataSource` agrees with its successor `dataSourceRef`."""
    new = spec.get("dataSourceRef")
    if new is None:
        return
    if new.get("namespace"):
        message = "must not be set where dataSourceRef has a namespace"
        site.report(TPL_CLAIM_TEMPLATE, message, field)
    elif any(old.get(each) != new.get(each) for each in ("apiGroup", "kind", "name")):
        site.report(TPL_CLAIM_TEMPLATE, "must be the same as dataSourceRef", field)


def _group(site: Site, group: str, field: str, source: Raw) -> None:
    kind = source.get("kind")
    if group:
        _subdomain(site, group, field, source)
    elif kind and kind != "PersistentVolumeClaim":
        site.report(TPL_CLAIM_TEMPLATE, f"must be set for a {kind}, found none", field)


_subdomain = TPL_CLAIM_TEMPLATE.valid(dns_subdomain_problem, empty=True)
_one_mode = TPL_CLAIM_TEMPLATE.breaking(
    "may not use ReadWriteOncePod with other access modes",
    lambda _, found, _o: "ReadWriteOncePod" in found and len({*found} & {*_ACCESS_MODES}) > 1,
)
_some_modes = TPL_CLAIM_TEMPLATE.required(
    message="at least 1 access mode is required, found none", reason=None
)
_DATA = "dataSource|dataSourceRef"
_SPEC = compiled(
    Row("accessModes", _some_modes, ()),
    Row("accessModes[]", TPL_CLAIM_TEMPLATE.one_of(*_ACCESS_MODES)),
    Row("accessModes", _one_mode),
    Row("resources", _storage, {}),
    Row("storageClassName|volumeAttributesClassName", _subdomain),
    Row("volumeMode", TPL_CLAIM_TEMPLATE.one_of("Block", "Filesystem")),
    Row("selector", LABEL_SELECTOR),
    Row(f"{_DATA}.name|kind", TPL_CLAIM_TEMPLATE.required(), ""),
    Row(f"{_DATA}.apiGroup", _group, ""),
    Row(f"{_DATA}.namespace", TPL_CLAIM_TEMPLATE.valid(dns_label_problem, empty=True)),
    Row("dataSource", _old_source),
)
CLAIM = compiled(
    Row("metadata", _metadata),
    Row("metadata.annotations", annotations_of(TPL_CLAIM_TEMPLATE)),
    Row("metadata.labels", labels_of(TPL_CLAIM_TEMPLATE)),
    Row("spec", _SPEC, {}),
)
"""Checks a template of claims."""
