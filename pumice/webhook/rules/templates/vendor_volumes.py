"""Volumes of vendors, and of times before CSI: what each of them must say."""

import re

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import one_of, quoted, relative_path, text
from pumice.webhook.rules.templates.volume_needs import (
    TPL_VOLUME_SOURCE,
    SourceCheck,
    require,
)

__all__ = ["VENDOR_SOURCES", "initiator_problem"]

_LARGEST_BYTE = 255
_LONGEST_TENANT = 64
_LONGEST_PORTAL = 64
_TARGETS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$", re.ASCII),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$", re.ASCII),
}
_HOST_PORT = re.compile(r"([^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*")
_RESERVED = (".kubernetes.io", ".k8s.io")
_AZURE_CACHING = ("None", "ReadOnly", "ReadWrite")
_AZURE_KINDS = ("Dedicated", "Managed", "Shared")


def _within(site: Site, source: Raw, name: str, field: str) -> None:
    """A number must fit into a byte."""
    if not 0 <= source.get(name, 0) <= _LARGEST_BYTE:
        message = f"must be from 0 to {_LARGEST_BYTE}, found {source[name]}"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.{name}")


def _disk(name: str) -> SourceCheck:
    """A check of a disk that has partitions."""

    def check(site: Site, source: Raw, field: str) -> None:
        require(site, source, field, name)
        _within(site, source, "partition", field)

    return check


def initiator_problem(name: str, source: Raw) -> str | None:
    """Say why a volume's name is too long for its iSCSI source, or None when it fits.

    With an initiator, nodes call the connection by the name and the portal.
    """
    length = len(f"{name}:{source.get('targetPortal', '')}")
    if "initiatorName" not in source or length <= _LONGEST_PORTAL:
        return None
    return (
        f"must have at most {_LONGEST_PORTAL} characters together with targetPortal, found {length}"
    )


def _iscsi(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "targetPortal", "iqn")
    for name in ("iqn", "initiatorName"):
        target = source.get(name)
        if target is not None and (target or name != "iqn") and not _is_target(target):
            message = f"must be an iqn, eui or naa name, found {quoted(target)}"
            site.report(TPL_VOLUME_SOURCE, message, f"{field}.{name}")
    _within(site, source, "lun", field)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and (
        "secretRef" not in source
    ):
        site.report(TPL_VOLUME_SOURCE, "must be set for CHAP, found none", f"{field}.secretRef")


def _is_target(name: str) -> bool:
    pattern = _TARGETS.get(name[:3])
    return pattern is not None and bool(pattern.search(name)) and "\n" not in name


def _fc(site: Site, source: Raw, field: str) -> None:
    targets, identifiers = source.get("targetWWNs"), source.get("wwids")
    if bool(targets) is bool(identifiers):
        message = f"must have targetWWNs or wwids, found {'both' if targets else 'neither'}"
        site.report(TPL_VOLUME_SOURCE, message, field)
    if targets:
        if "lun" not in source:
            message = "must be set with targetWWNs, found none"
            site.report(TPL_VOLUME_SOURCE, message, f"{field}.lun")
        _within(site, source, "lun", field)


def _git_repo(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "repository")
    relative_path(site, TPL_VOLUME_SOURCE, source.get("directory", ""), f"{field}.directory")


def _quobyte(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "registry", "volume")
    registry = source.get("registry", "")
    if registry and not all(_HOST_PORT.fullmatch(each) for each in registry.split(",")):
        message = (
            f"must be HOST:PORT, or several with commas between them, found {quoted(registry)}"
        )
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.registry")
    if len(source.get("tenant", "")) > _LONGEST_TENANT:
        message = f"must be at most {_LONGEST_TENANT} characters"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.tenant")


def _flocker(site: Site, source: Raw, field: str) -> None:
    name, identifier = source.get("datasetName", ""), source.get("datasetUUID", "")
    if bool(name) is bool(identifier):
        message = f"must have datasetName or datasetUUID, found {'both' if name else 'neither'}"
        site.report(TPL_VOLUME_SOURCE, message, field)
    if "/" in name:
        message = f'must not contain "/", found {quoted(name)}'
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.datasetName")


def _flex(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "driver")
    for key in source.get("options", ()):
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            message = "domains of Kubernetes are reserved"
            site.report(TPL_VOLUME_SOURCE, message, f"{field}.options.{key}")


def _azure_disk(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "diskName", "diskURI")
    kind, uri = source.get("kind", "Shared"), source.get("diskURI", "")
    caching = source.get("cachingMode")
    one_of(site, TPL_VOLUME_SOURCE, caching, _AZURE_CACHING, f"{field}.cachingMode")
    one_of(site, TPL_VOLUME_SOURCE, kind, _AZURE_KINDS, f"{field}.kind")
    start = "/subscriptions/" if kind == "Managed" else "https://"
    if uri and not uri.startswith(start):
        message = f"must start with {start} for a disk of kind {kind}, found {quoted(uri)}"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.diskURI")


def _storage_os(site: Site, source: Raw, field: str) -> None:
    name = text(site, TPL_VOLUME_SOURCE, source.get("volumeName"), f"{field}.volumeName")
    space = source.get("volumeNamespace", "")
    for label, found in (("volumeName", name), ("volumeNamespace", space)):
        if found and (problem := dns_label_problem(found)):
            site.report(TPL_VOLUME_SOURCE, problem, f"{field}.{label}")
    _secret_ref(site, source, field)


def _cinder(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "volumeID")
    _secret_ref(site, source, field)


def _secret_ref(site: Site, source: Raw, field: str) -> None:
    if "secretRef" in source:
        require(site, source["secretRef"], f"{field}.secretRef", "name")


VENDOR_SOURCES: dict[str, SourceCheck] = {
    "awsElasticBlockStore": _disk("volumeID"),
    "azureDisk": _azure_disk,
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": _cinder,
    "fc": _fc,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _disk("pdName"),
    "gitRepo": _git_repo,
    "glusterfs": ("endpoints", "path"),
    "iscsi": _iscsi,
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "quobyte": _quobyte,
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": _storage_os,
    "vsphereVolume": ("volumePath",),
}
"""These sources, each with its check."""
