"""Volumes of a pod: names and sources; for sources of vendors also their replacements.

Most sources only have fields that must not be empty. The existence of named objects is not checked. A volume without a
source is an empty directory. An unknown source is newer than this version of Pumice. Of a claim that Kubernetes creates for each
pod (`ephemeral.volumeClaimTemplate`) the template is checked.
"""

import re

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.pods import pod_types
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.templates import projections
from pumice.webhook.rules.templates.metadata import (
    annotations_of,
    label_problem,
    label_selector,
    labels_of,
)
from pumice.webhook.rules.templates.shapes import (
    TPL_DEPRECATED,
    TPL_DOUBTFUL,
    FieldRule,
    refused,
)
from pumice.webhook.rules.templates.table import Check, KnownValues, Row, Site, compiled

TPL_VOLUME = refused(
    "TPL-VOLUME",
    "a volume has a DNS label for a name",
    "volumes: [{name: My_Data, emptyDir: {}}]",
)
TPL_VOLUME_DUP = FieldRule(
    "TPL-VOLUME-DUP",
    "no two volumes of a pod have the same name",
    "Kubernetes could not tell which of them to mount.",
    "volumes: [{name: data, emptyDir: {}}, {name: data, emptyDir: {}}]",
    reason="FieldValueDuplicate",
)
TPL_VOLUME_SOURCES = FieldRule(
    "TPL-VOLUME-SOURCES",
    "a volume has one source",
    "Kubernetes could not tell which of them to use.",
    "volumes: [{name: data, emptyDir: {}, configMap: {name: data}}]",
    reason="FieldValueForbidden",
)
TPL_VOLUME_IMAGE = refused(
    "TPL-VOLUME-IMAGE",
    "a volume of files from an image names the image",
    "volumes: [{name: model, image: {pullPolicy: Always}}]",
    reason="FieldValueRequired",
    later=True,
)
TPL_VOLUME_SOURCE = refused(
    "TPL-VOLUME-SOURCE",
    "the source of a volume says all that it must, within its limits",
    "volumes: [{name: data, nfs: {server: nas}}]",
)

_LONGEST_PORTAL = 64
_HOST_PATHS = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_TARGETS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$", re.ASCII),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$", re.ASCII),
}
_HOST_PORT = re.compile(r"([^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*")
_RESERVED = (".kubernetes.io", ".k8s.io")
_REMOVED = "cephfs|flocker|glusterfs|photonPersistentDisk|quobyte|rbd|scaleIO|storageos"
_GONE = "was removed from Kubernetes, so no node can mount it; use a CSI driver instead"
_CLONE = "is deprecated; use an init container that clones into an emptyDir instead"
_DRIVERS = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""Drivers that replace deprecated sources of volumes."""


def _replaced_by(driver: str) -> Check:
    return TPL_DEPRECATED.breaking(f"is deprecated; use the CSI driver {driver} instead")


def _sources(site: Site, volume: Raw, field: str, _: Raw) -> None:
    if len(volume) == 2 and "name" in volume:  # as nearly all are
        return
    sources = [source for source in volume if source in _SOURCES]
    if len(sources) > 1:
        message = f"may not specify more than 1 volume type, found {' and '.join(sources)}"
        site.report(TPL_VOLUME_SOURCES, message, field)


def _initiator(site: Site, source: Raw, field: str, volume: Raw) -> None:
    """Check a volume with an iSCSI initiator: nodes name the connection after the volume and the portal."""
    length = len(f"{volume.get('name', '')}:{source.get('targetPortal', '')}")
    if "initiatorName" in source and length > _LONGEST_PORTAL:
        message = f"must have at most {_LONGEST_PORTAL} characters together with targetPortal, found {length}"
        site.report(TPL_VOLUME, message, f"{field.removesuffix('iscsi')}name")


def _is_target(name: str) -> bool:
    pattern = _TARGETS.get(name[:3])
    return pattern is not None and pattern.search(name) is not None and "\n" not in name


def _options(site: Site, options: Raw, field: str, _: Raw) -> None:
    for key in options:
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            site.report(TPL_VOLUME_SOURCE, "domains of Kubernetes are reserved", f"{field}.{key}")


def _disk_uri_problem(_: Site, uri: str, source: Raw) -> str:
    kind = source.get("kind", "Shared")
    start = "/subscriptions/" if kind == "Managed" else "https://"
    wrong = f"must start with {start} for a disk of kind {kind}, found {quoted(uri)}"
    return wrong if uri and not uri.startswith(start) else ""


_need = TPL_VOLUME_SOURCE.required(reason=None)
_byte = TPL_VOLUME_SOURCE.within(0, 255)
_lun = TPL_VOLUME_SOURCE.judged(
    lambda _, lun, source: (
        source.get("targetWWNs")
        and not 0 <= lun <= 255
        and f"must be between 0 and 255, inclusive, found {lun}"
    )
)
_not_negative = TPL_VOLUME_SOURCE.judged(
    lambda _, limit, _o: (
        parse_milli(limit) < 0 and f"must be greater than or equal to 0, found {limit}"
    )
)
_driver = TPL_VOLUME_SOURCE.valid(lambda driver: dns_subdomain_problem(driver.lower()), empty=True)
_absolute = TPL_VOLUME_SOURCE.matching(
    "must be an absolute path", lambda path: path.startswith("/"), empty=True
)
_label = TPL_VOLUME_SOURCE.valid(dns_label_problem, empty=True)
_registry = TPL_VOLUME_SOURCE.matching(
    "must be HOST:PORT, or several with commas between them",
    lambda found: all(map(_HOST_PORT.fullmatch, found.split(","))),
    empty=True,
)
_dataset = TPL_VOLUME_SOURCE.matching('must not contain "/"', lambda found: "/" not in found)
_TARGET = "must be valid format starting with iqn, eui, or naa"
_NO_IMAGE = "must name an image, found none"
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_NEEDS = (
    "configMap.name",
    "nfs.server|path",
    "persistentVolumeClaim.claimName",
    "secret.secretName",
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


def claim_spec(rule: FieldRule) -> Check:
    """The shape of the spec of a claim that will be created."""
    subdomain = rule.valid(dns_subdomain_problem, empty=True)

    def storage(site: Site, resources: Raw, field: str, _: Raw) -> None:
        amount, where = resources.get("requests", {}).get("storage"), f"{field}.requests.storage"
        if amount is None:
            message = "must be the size of the volume, such as 10Gi, found none"
            site.report(rule, message, where, "FieldValueRequired")
        elif parse_milli(amount) <= 0:
            site.report(rule, f"must be more than 0, found {amount}", where)
        elif parse_milli(amount) % MILLI:
            site.report(TPL_DOUBTFUL, f"{amount} is a fractional number of bytes", where)

    def old_source(site: Site, old: Raw, field: str, spec: Raw) -> None:
        """Check that `dataSource` agrees with its successor `dataSourceRef`."""
        new = spec.get("dataSourceRef")
        if new is None:
            return
        if new.get("namespace"):
            site.report(rule, "must not be set where dataSourceRef has a namespace", field)
        elif any(old.get(each) != new.get(each) for each in ("apiGroup", "kind", "name")):
            site.report(rule, "must be the same as dataSourceRef", field)

    def group(site: Site, found: str, field: str, source: Raw) -> None:
        kind = source.get("kind")
        if found:
            subdomain(site, found, field, source)
        elif kind and kind != "PersistentVolumeClaim":
            site.report(rule, f"must be set for a {kind}, found none", field)

    one_mode = rule.breaking(
        "may not use ReadWriteOncePod with other access modes",
        lambda _, found, _o: "ReadWriteOncePod" in found and len({*found} & {*_ACCESS_MODES}) > 1,
    )
    message = f"at least 1 access mode is required, one of {', '.join(_ACCESS_MODES)}, found none"
    return compiled(
        Row("accessModes", rule.required(message=message), ()),
        Row("accessModes[]", rule.one_of(*_ACCESS_MODES)),
        Row("accessModes", one_mode),
        Row("resources", storage, {}),
        Row("storageClassName|volumeAttributesClassName", subdomain),
        Row("volumeMode", rule.one_of("Block", "Filesystem")),
        Row("selector", label_selector(rule)),
        Row(f"{_DATA}.name|kind", rule.required(), ""),
        Row(f"{_DATA}.apiGroup", group, ""),
        Row(f"{_DATA}.namespace", rule.valid(dns_label_problem, empty=True)),
        Row("dataSource", old_source),
    )


_DATA = "dataSource|dataSourceRef"
CLAIM = compiled(
    Row("metadata", _metadata),
    Row("metadata.annotations", annotations_of(TPL_CLAIM_TEMPLATE)),
    Row("metadata.labels", labels_of(TPL_CLAIM_TEMPLATE)),
    Row("spec", claim_spec(TPL_CLAIM_TEMPLATE), {}),
)
"""Checks a template of claims."""

_SOURCE_ROWS = (
    *projections.ROWS,
    Row("storageos.volumeName", TPL_VOLUME_SOURCE.required(), ""),
    Row("storageos.volumeName|volumeNamespace", _label),
    *(Row(path, _need, "") for path in _NEEDS),
    Row("nfs.path", _absolute),
    Row("emptyDir.sizeLimit", _not_negative),
    Row("hostPath.path", TPL_VOLUME_SOURCE.required(), ""),
    Row("hostPath.path", TPL_VOLUME_SOURCE.without_backsteps()),
    Row("hostPath.type", TPL_VOLUME_SOURCE.one_of(*_HOST_PATHS)),
    Row("image.reference", TPL_VOLUME_IMAGE.required(message=_NO_IMAGE, reason=None), ""),
    Row("image.pullPolicy", TPL_VOLUME_SOURCE.one_of(*_PULL_POLICIES, empty=True)),
    Row("csi.driver", TPL_VOLUME_SOURCE.required(), ""),
    Row("csi.driver", TPL_VOLUME_SOURCE.at_most(63, "FieldValueTooLong", " characters")),
    Row("csi.driver", _driver),
    Row("csi.nodePublishSecretRef.name", TPL_VOLUME_SOURCE.required(dns_subdomain_problem), ""),
    Row("ephemeral.volumeClaimTemplate", TPL_VOLUME_SOURCE.present(CLAIM), None),
    Row(_REMOVED, TPL_DEPRECATED.breaking(_GONE)),
    Row("flexVolume", TPL_DEPRECATED.breaking("is deprecated; use a CSI driver instead")),
    Row("gitRepo", TPL_DEPRECATED.breaking(_CLONE)),
    *(Row(source, _replaced_by(driver)) for source, driver in _DRIVERS.items()),
    Row("awsElasticBlockStore|gcePersistentDisk.partition", _byte),
    Row("azureDisk.cachingMode", TPL_VOLUME_SOURCE.one_of("None", "ReadOnly", "ReadWrite")),
    Row("azureDisk.kind", TPL_VOLUME_SOURCE.one_of("Dedicated", "Managed", "Shared")),
    Row("azureDisk.diskURI", TPL_VOLUME_SOURCE.judged(_disk_uri_problem)),
    Row("fc", TPL_VOLUME_SOURCE.one_of_two("targetWWNs", "wwids")),
    Row("fc.targetWWNs", TPL_VOLUME_SOURCE.needs("lun")),
    Row("fc.lun", _lun),
    Row("flexVolume.options", _options),
    Row("flocker", TPL_VOLUME_SOURCE.one_of_two("datasetName", "datasetUUID")),
    Row("flocker.datasetName", _dataset),
    Row("gitRepo.directory", TPL_VOLUME_SOURCE.relative_path()),
    Row("iscsi", _initiator),
    Row("iscsi.iqn", TPL_VOLUME_SOURCE.matching(_TARGET, _is_target, empty=True)),
    Row("iscsi.initiatorName", TPL_VOLUME_SOURCE.matching(_TARGET, _is_target)),
    Row("iscsi.lun", _byte),
    Row("iscsi.chapAuthDiscovery|chapAuthSession", TPL_VOLUME_SOURCE.needs("secretRef")),
    Row("quobyte.registry", _registry),
    Row("quobyte.tenant", TPL_VOLUME_SOURCE.at_most(64, unit=" characters")),
)
_SOURCES = frozenset(
    source for row in _SOURCE_ROWS for source in row.path.partition(".")[0].split("|")
)
_VOLUME = compiled(
    Row("name", TPL_VOLUME.required(label_problem, reason=None), ""),
    Row("", compiled(*_SOURCE_ROWS)),
    Row("", _sources),
)
VOLUMES = KnownValues(TPL_VOLUME_DUP.unique("name", then=_VOLUME)).check
"""Checks `volumes` of a pod's spec."""
