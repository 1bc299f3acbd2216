"""Volumes of a pod: names, and where each comes from."""

from collections.abc import Mapping

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.labels import label_problem
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import quoted
from pumice.webhook.rules.templates.vendor_volumes import initiator_problem
from pumice.webhook.rules.templates.volume_needs import require
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

_CLAIM = "persistentVolumeClaim"
_NO_MORE = {2}


def by_name(spec: Raw) -> dict[str, Raw]:
    """Volumes of a pod by name; of several with one name the first."""
    return {volume.get("name", ""): volume for volume in reversed(spec.get("volumes", ()))}


def volumes(site: Site, spec: Raw, named: Mapping[str, Raw]) -> None:
    """Check `volumes`.

    Args:
        site: Where the pod spec is.
        spec: The pod spec.
        named: Its volumes by name.
    """
    if _are_claims(spec["volumes"], named):
        return
    seen: dict[str, int] = {}
    for index, volume in enumerate(spec["volumes"]):
        name = volume.get("name", "")
        if name in seen or label_problem(name):
            _name(site, name, seen.get(name), f"volumes[{index}].name")
            seen.setdefault(name, index)
        else:
            seen[name] = index
        for source, given in volume.items():
            check = SOURCES.get(source)
            if check is None:
                continue
            if not isinstance(check, tuple):
                check(site, given, f"volumes[{index}].{source}")
            elif not all(map(given.get, check)):
                require(site, given, f"volumes[{index}].{source}", *check)
        if len(volume) > 2 or not name:
            _one_source(site, volume, f"volumes[{index}]")
        if "iscsi" in volume and (problem := initiator_problem(name, volume["iscsi"])):
            site.report(TPL_VOLUME, problem, f"volumes[{index}].name")


def _are_claims(found: list[Raw], named: Mapping[str, Raw]) -> bool:
    """Whether all volumes are claims by name, under names of their own: a single look, since many are so."""
    try:
        claims = [volume[_CLAIM]["claimName"] for volume in found]
    except KeyError:
        return False
    return (
        len(named) == len(found)
        and set(map(len, found)) == _NO_MORE
        and all(claims)
        and not any(map(label_problem, named))
    )


def _name(site: Site, name: str, first: int | None, field: str) -> None:
    """Say what is wrong with a volume's name."""
    if not name:
        site.report(TPL_VOLUME, "must be set, found none", field)
    elif first is not None:
        message = f"{quoted(name)} is already the name of volumes[{first}]"
        site.report(TPL_VOLUME_DUP, message, field)
    else:
        site.report(TPL_VOLUME, label_problem(name) or "", field)


def _one_source(site: Site, volume: Raw, field: str) -> None:
    found = [source for source in volume if source in SOURCES]
    if len(found) > 1:
        message = f"must have one source, found {' and '.join(found)}"
        site.report(TPL_VOLUME_SOURCES, message, field)
