"""Claims that Kubernetes makes for each pod: `ephemeral.volumeClaimTemplate`."""

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.pod_types import pod_types
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.metadata import annotations_of, labels_of
from pumice.webhook.rules.templates.selectors import LABEL_SELECTOR
from pumice.webhook.rules.templates.shapes import NOT_SET, name, one_of, refused, required
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, compiled

__all__ = ["claim_template"]

TPL_CLAIM_TEMPLATE = refused(
    "TPL-CLAIM-TEMPLATE",
    "a claim for each pod says how it is mounted and how much it holds, and has no name of its own",
    "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}",
)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_METADATA = ("annotations", "labels")
_POINTERS = ("deletionGracePeriodSeconds", "deletionTimestamp")
"""Of these, unlike of the others, an empty value is a value."""


def _metadata(site: Site, metadata: Raw, field: str, _: Raw) -> None:
    for each, value in metadata.items():
        is_set = value or each in _POINTERS or isinstance(value, list)
        if is_set and each not in _METADATA and each in pod_types()["ObjectMeta"]:
            message = "must not be set: the claim is named after pod and volume"
            site.report(TPL_CLAIM_TEMPLATE, message, f"{field}.{each}")


def _access_modes(site: Site, modes: list[str], field: str, _: Raw) -> None:
    if "ReadWriteOncePod" in modes and len({*modes} & {*_ACCESS_MODES}) > 1:
        message = "must have no other mode beside ReadWriteOncePod"
        site.report(TPL_CLAIM_TEMPLATE, message, field)


def _storage(site: Site, resources: Raw, field: str, _: Raw) -> None:
    amount, where = resources.get("requests", {}).get("storage"), f"{field}.requests.storage"
    if amount is None:
        site.report(TPL_CLAIM_TEMPLATE, NOT_SET, where)
    elif parse_milli(amount) <= 0:
        site.report(TPL_CLAIM_TEMPLATE, f"must be above 0, found {amount}", where)
    elif parse_milli(amount) % MILLI:
        site.report(TPL_DOUBTFUL, f"{amount} is not a whole number of bytes", where)


def _data_sources(site: Site, spec: Raw, field: str, _: Raw) -> None:
    """Check that the field for what a claim is filled from says the same as its successor."""
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


def _group(site: Site, group: str, field: str, source: Raw) -> None:
    kind = source.get("kind")
    if group:
        if problem := dns_subdomain_problem(group):
            site.report(TPL_CLAIM_TEMPLATE, problem, field)
    elif kind and kind != "PersistentVolumeClaim":
        site.report(TPL_CLAIM_TEMPLATE, f"must be set for a {kind}, found none", field)


_subdomain = name(TPL_CLAIM_TEMPLATE, dns_subdomain_problem, empty=True)
_some_modes = required(
    TPL_CLAIM_TEMPLATE, message="must have at least one mode, found none", reason=None
)
_DATA = "spec.dataSource|dataSourceRef"
_judge = compiled(
    (
        Row("metadata", _metadata),
        Row("metadata.annotations", annotations_of(TPL_CLAIM_TEMPLATE)),
        Row("metadata.labels", labels_of(TPL_CLAIM_TEMPLATE)),
        Row("spec.accessModes", _some_modes, ()),
        Row("spec.accessModes[]", one_of(TPL_CLAIM_TEMPLATE, _ACCESS_MODES)),
        Row("spec.accessModes", _access_modes),
        Row("spec.resources", _storage, {}),
        Row("spec.storageClassName|volumeAttributesClassName", _subdomain),
        Row("spec.volumeMode", one_of(TPL_CLAIM_TEMPLATE, ("Block", "Filesystem"))),
        Row("spec.selector", LABEL_SELECTOR),
        Row(f"{_DATA}.name|kind", required(TPL_CLAIM_TEMPLATE), ""),
        Row(f"{_DATA}.apiGroup", _group, ""),
        Row(f"{_DATA}.namespace", name(TPL_CLAIM_TEMPLATE, dns_label_problem, empty=True)),
        Row("spec", _data_sources),
    )
)


def claim_template(site: Site, template: Raw, field: str, source: Raw) -> None:
    """Check a template of claims."""
    _judge(site, {"spec": {}, **template}, field, source)
