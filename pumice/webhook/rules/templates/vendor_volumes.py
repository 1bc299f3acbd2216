"""Volumes of vendors, and of times before CSI: what each of them must say, and what has replaced it."""

import re

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.templates.doubtful import TPL_DEPRECATED
from pumice.webhook.rules.templates.shapes import (
    name,
    one_of,
    one_of_two,
    quoted,
    refused,
    relative_path,
    remark,
    required,
    within,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row

__all__ = ["ROWS", "TPL_VOLUME_SOURCE"]

TPL_VOLUME_SOURCE = refused(
    "TPL-VOLUME-SOURCE",
    "the source of a volume says all that it must, within its limits",
    "volumes: [{name: data, nfs: {server: nas}}]",
)

_LARGEST_BYTE = 255
_LONGEST_TENANT = 64
_TARGETS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$", re.ASCII),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$", re.ASCII),
}
_HOST_PORT = re.compile(r"([^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*")
_RESERVED = (".kubernetes.io", ".k8s.io")
_CLONE = "is deprecated; use an init container that clones into an emptyDir"
_CSI = "is deprecated; use the CSI driver "
_GONE = "is no longer in Kubernetes, so no node can mount it; use a CSI driver"
VOLUMES = {
    "awsElasticBlockStore": f"{_CSI}ebs.csi.aws.com",
    "azureDisk": f"{_CSI}disk.csi.azure.com",
    "azureFile": f"{_CSI}file.csi.azure.com",
    "cephfs": _GONE,
    "cinder": f"{_CSI}cinder.csi.openstack.org",
    "flexVolume": "is deprecated; use a CSI driver",
    "flocker": _GONE,
    "gcePersistentDisk": f"{_CSI}pd.csi.storage.gke.io",
    "gitRepo": _CLONE,
    "glusterfs": _GONE,
    "photonPersistentDisk": _GONE,
    "portworxVolume": f"{_CSI}pxd.portworx.com",
    "quobyte": _GONE,
    "rbd": _GONE,
    "scaleIO": _GONE,
    "storageos": _GONE,
    "vsphereVolume": f"{_CSI}csi.vsphere.vmware.com",
}
"""Sources of volumes, with what has become of them and what there is instead."""


def _target(site: Site, found: str, field: str, _: Raw) -> None:
    pattern = _TARGETS.get(found[:3])
    if (found or not field.endswith(".iqn")) and not (
        pattern is not None and pattern.search(found) and "\n" not in found
    ):
        message = f"must be an iqn, eui or naa name, found {quoted(found)}"
        site.report(TPL_VOLUME_SOURCE, message, field)


def _chap(site: Site, source: Raw, field: str, _: Raw) -> None:
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and (
        "secretRef" not in source
    ):
        site.report(TPL_VOLUME_SOURCE, "must be set for CHAP, found none", f"{field}.secretRef")


def _fc(site: Site, source: Raw, field: str, _: Raw) -> None:
    if source.get("targetWWNs"):
        if "lun" not in source:
            message = "must be set with targetWWNs, found none"
            site.report(TPL_VOLUME_SOURCE, message, f"{field}.lun")
        _byte(site, source.get("lun", 0), f"{field}.lun", source)


def _registry(site: Site, registry: str, field: str, _: Raw) -> None:
    if registry and not all(_HOST_PORT.fullmatch(each) for each in registry.split(",")):
        message = (
            f"must be HOST:PORT, or several with commas between them, found {quoted(registry)}"
        )
        site.report(TPL_VOLUME_SOURCE, message, field)


def _tenant(site: Site, tenant: str, field: str, _: Raw) -> None:
    if len(tenant) > _LONGEST_TENANT:
        site.report(TPL_VOLUME_SOURCE, f"must be at most {_LONGEST_TENANT} characters", field)


def _dataset(site: Site, found: str, field: str, _: Raw) -> None:
    if "/" in found:
        site.report(TPL_VOLUME_SOURCE, f'must not contain "/", found {quoted(found)}', field)


def _options(site: Site, options: Raw, field: str, _: Raw) -> None:
    for key in options:
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            site.report(TPL_VOLUME_SOURCE, "domains of Kubernetes are reserved", f"{field}.{key}")


def _disk_uri(site: Site, uri: str, field: str, source: Raw) -> None:
    kind = source.get("kind", "Shared")
    start = "/subscriptions/" if kind == "Managed" else "https://"
    if uri and not uri.startswith(start):
        message = f"must start with {start} for a disk of kind {kind}, found {quoted(uri)}"
        site.report(TPL_VOLUME_SOURCE, message, field)


_byte = within(TPL_VOLUME_SOURCE, 0, _LARGEST_BYTE)
_need = required(TPL_VOLUME_SOURCE, reason=None)
_label = name(TPL_VOLUME_SOURCE, dns_label_problem, empty=True)
_NEEDS = (
    "awsElasticBlockStore.volumeID",
    "azureDisk.diskName|diskURI",
    "azureFile.secretName|shareName",
    "cephfs.monitors",
    "cinder.volumeID",
    "flexVolume.driver",
    "gcePersistentDisk.pdName",
    "gitRepo.repository",
    "glusterfs.endpoints|path",
    "iscsi.targetPortal|iqn",
    "photonPersistentDisk.pdID",
    "portworxVolume.volumeID",
    "quobyte.registry|volume",
    "rbd.monitors|image",
    "scaleIO.gateway|system|volumeName",
    "vsphereVolume.volumePath",
    "cinder|storageos.secretRef.name",
)
ROWS = (
    *(
        Row(source, remark(TPL_DEPRECATED, f"{change} instead"))
        for source, change in VOLUMES.items()
    ),
    Row("storageos.volumeName", required(TPL_VOLUME_SOURCE), ""),
    Row("storageos.volumeName|volumeNamespace", _label),
    *(Row(path, _need, "") for path in _NEEDS),
    Row("awsElasticBlockStore|gcePersistentDisk.partition", _byte),
    Row("azureDisk.cachingMode", one_of(TPL_VOLUME_SOURCE, ("None", "ReadOnly", "ReadWrite"))),
    Row("azureDisk.kind", one_of(TPL_VOLUME_SOURCE, ("Dedicated", "Managed", "Shared"))),
    Row("azureDisk.diskURI", _disk_uri),
    Row("fc", one_of_two(TPL_VOLUME_SOURCE, "targetWWNs", "wwids")),
    Row("fc", _fc),
    Row("flexVolume.options", _options),
    Row("flocker", one_of_two(TPL_VOLUME_SOURCE, "datasetName", "datasetUUID")),
    Row("flocker.datasetName", _dataset),
    Row("gitRepo.directory", relative_path(TPL_VOLUME_SOURCE)),
    Row("iscsi.iqn|initiatorName", _target),
    Row("iscsi.lun", _byte),
    Row("iscsi", _chap),
    Row("quobyte.registry", _registry),
    Row("quobyte.tenant", _tenant),
)
"""Fields of a volume."""
