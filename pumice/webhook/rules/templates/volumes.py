"""Volumes of a pod: names, and where each comes from.

Most sources only have fields that must not be empty. Whether an object that a source names exists is not asked.
A volume without a source is an empty directory; one whose source is not known is newer than this version.
"""

from collections.abc import Mapping

from pumice.api.names import dns_subdomain_problem
from pumice.api.quantities import parse_milli
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import claim_templates, projections, vendor_volumes
from pumice.webhook.rules.templates.metadata import label_problem
from pumice.webhook.rules.templates.shapes import (
    NOT_SET,
    one_of,
    present,
    quoted,
    refused,
    required,
    without_backsteps,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, compiled
from pumice.webhook.rules.templates.vendor_volumes import TPL_VOLUME_SOURCE

__all__ = ["volumes"]

TPL_VOLUME = refused(
    "TPL-VOLUME",
    "a volume has a DNS label for a name",
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
TPL_VOLUME_IMAGE = Rule(
    "TPL-VOLUME-IMAGE",
    "a volume of files from an image names the image",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "volumes: [{name: model, image: {pullPolicy: Always}}]",
    reason="FieldValueRequired",
    stricter=True,
)

_CLAIM = "persistentVolumeClaim"
_NO_MORE = {2}
_LONGEST_PORTAL = 64
_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LONGEST_DRIVER = 63


def volumes(site: Site, found: list[Raw]) -> None:
    """Check `volumes` of a pod's spec, where the site is."""
    if _are_claims(found, site.pod.volumes):
        return
    seen: dict[str, int] = {}
    for index, volume in enumerate(found):
        name, where = volume.get("name", ""), f"volumes[{index}]"
        first = seen.setdefault(name, index)
        if not name:
            site.report(TPL_VOLUME, NOT_SET, f"{where}.name")
        elif first != index:
            message = f"{quoted(name)} is already the name of volumes[{first}]"
            site.report(TPL_VOLUME_DUP, message, f"{where}.name")
        elif problem := label_problem(name):
            site.report(TPL_VOLUME, problem, f"{where}.name")
        _SOURCE(site, volume, where, volume)
        if len(volume) > 2 or not name:
            sources = [source for source in volume if source in _SOURCES]
            if len(sources) > 1:
                message = f"must have one source, found {' and '.join(sources)}"
                site.report(TPL_VOLUME_SOURCES, message, where)


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


def _driver(site: Site, driver: str, field: str, _: Raw) -> None:
    if len(driver) > _LONGEST_DRIVER:
        message = f"must be at most {_LONGEST_DRIVER} characters, found {len(driver)}"
        site.report(TPL_VOLUME_SOURCE, message, field, "FieldValueTooLong")
    elif driver and (problem := dns_subdomain_problem(driver.lower())):
        site.report(TPL_VOLUME_SOURCE, problem, field)


def _size_limit(site: Site, limit: str | float, field: str, _: Raw) -> None:
    if parse_milli(limit) < 0:
        site.report(TPL_VOLUME_SOURCE, f"must be 0 or more, found {limit}", field)


def _nfs_path(site: Site, path: str, field: str, _: Raw) -> None:
    if path and not path.startswith("/"):
        message = f"must be an absolute path, found {quoted(path)}"
        site.report(TPL_VOLUME_SOURCE, message, field)


def _initiator(site: Site, source: Raw, field: str, volume: Raw) -> None:
    """Check a volume's name with an iSCSI initiator: nodes call the connection by the name and the portal."""
    length = len(f"{volume.get('name', '')}:{source.get('targetPortal', '')}")
    if "initiatorName" in source and length > _LONGEST_PORTAL:
        message = f"must have at most {_LONGEST_PORTAL} characters together with targetPortal, found {length}"
        site.report(TPL_VOLUME, message, f"{field.removesuffix('iscsi')}name")


_NO_IMAGE = "must name an image, found none"
_need = required(TPL_VOLUME_SOURCE, reason=None)
_SOURCE_ROWS = (
    *projections.ROWS,
    Row("configMap.name", _need, ""),
    Row("secret.secretName", _need, ""),
    Row("persistentVolumeClaim.claimName", _need, ""),
    Row("nfs.server|path", _need, ""),
    Row("nfs.path", _nfs_path),
    Row("emptyDir.sizeLimit", _size_limit),
    Row("hostPath.path", required(TPL_VOLUME_SOURCE), ""),
    Row("hostPath.path", without_backsteps(TPL_VOLUME_SOURCE)),
    Row("hostPath.type", one_of(TPL_VOLUME_SOURCE, _HOST_PATHS)),
    Row("image.reference", required(TPL_VOLUME_IMAGE, message=_NO_IMAGE, reason=None), ""),
    Row("image.pullPolicy", one_of(TPL_VOLUME_SOURCE, _PULL_POLICIES, empty=True)),
    Row("csi.driver", required(TPL_VOLUME_SOURCE), ""),
    Row("csi.driver", _driver),
    Row("csi.nodePublishSecretRef.name", required(TPL_VOLUME_SOURCE, dns_subdomain_problem), ""),
    Row(
        "ephemeral.volumeClaimTemplate",
        present(TPL_VOLUME_SOURCE, claim_templates.claim_template),
        None,
    ),
    Row("iscsi", _initiator),
    *vendor_volumes.ROWS,
)
_SOURCES = frozenset(
    source for row in _SOURCE_ROWS for source in row.path.partition(".")[0].split("|")
)
_SOURCE = compiled(_SOURCE_ROWS)
