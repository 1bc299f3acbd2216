"""Volumes of a pod: names, and where each comes from."""

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted
from pumice.webhook.rules.templates.vendor_volumes import initiator_problem
from pumice.webhook.rules.templates.volume_sources import SOURCES

__all__ = ["RULES", "by_name", "volumes"]

TPL_VOLUME = Rule(
    "TPL-VOLUME",
    "a volume has a DNS label for a name",
    "Kubernetes refuses the pod otherwise.",
    "volumes: [{name: My_Data, emptyDir: {}}]",
)
TPL_VOLUME_DUP = Rule(
    "TPL-VOLUME-DUP",
    "no two volumes of a pod have the same name",
    "Nobody could tell which of them is mounted.",
    "volumes: [{name: data, emptyDir: {}}, {name: data, emptyDir: {}}]",
    reason="FieldValueDuplicate",
)
TPL_VOLUME_SOURCES = Rule(
    "TPL-VOLUME-SOURCES",
    "a volume has one source",
    "Nobody could tell which of them is meant.",
    "volumes: [{name: data, emptyDir: {}, configMap: {name: data}}]",
    reason="FieldValueForbidden",
)

RULES = (TPL_VOLUME, TPL_VOLUME_DUP, TPL_VOLUME_SOURCES)


def by_name(spec: Raw) -> dict[str, Raw]:
    """Volumes of a pod by name; of several with one name the first."""
    named: dict[str, Raw] = {}
    for _, volume in entries(spec.get("volumes")):
        name = volume.get("name")
        if name and isinstance(name, str):
            named.setdefault(name, volume)
    return named


def volumes(site: Site, spec: Raw) -> None:
    """Check `volumes`."""
    seen: dict[str, int] = {}
    for index, volume in entries(spec["volumes"]):
        name = volume.get("name", "")
        field = f"volumes[{index}]"
        if (first := seen.setdefault(name, index)) != index and name:
            message = f"{quoted(name)} is already the name of volumes[{first}]"
            site.report(TPL_VOLUME_DUP, message, f"{field}.name")
        elif problem := dns_label_problem(name):
            site.report(TPL_VOLUME, problem if name else "must be set, found none", f"{field}.name")
        found = [source for source in volume if source in SOURCES]
        if len(found) > 1:
            message = f"must have one source, found {' and '.join(found)}"
            site.report(TPL_VOLUME_SOURCES, message, field)
        for source in found:
            SOURCES[source](site, volume[source], f"{field}.{source}")
        if "iscsi" in volume and (problem := initiator_problem(name, volume["iscsi"])):
            site.report(TPL_VOLUME, problem, f"{field}.name")
