"""Mounts of volumes and block devices: their volumes exist, and their paths are unique."""

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.webhook.rules.templates.shapes import FieldRule, refused
from pumice.webhook.rules.templates.table import KnownValues, Row, Site, compiled

TPL_MOUNT_VOLUME = refused(
    "TPL-MOUNT-VOLUME",
    "what is mounted is a volume of the pod",
    "volumes: [{name: data, emptyDir: {}}], containers: [{volumeMounts: [{name: dta, mountPath: /data}]}]",
    reason="FieldValueNotFound",
    compares=True,
)
TPL_MOUNT = refused(
    "TPL-MOUNT",
    "a mount says what is mounted where, and of the volume only a part inside it",
    "volumeMounts: [{name: data, mountPath: /data, subPath: ../other}]",
)
TPL_MOUNT_DUP = refused(
    "TPL-MOUNT-DUP",
    "no two mounts or devices of a container are at the same path, and no volume is both",
    "volumeMounts: [{name: a, mountPath: /data}, {name: b, mountPath: /data}]",
)
TPL_MOUNT_MODE = FieldRule(
    "TPL-MOUNT-MODE",
    "mountPropagation and recursiveReadOnly are modes that the container may use",
    "Only privileged containers may propagate mounts to the node, and only a read-only mount can be recursively read-only.",
    "volumeMounts: [{name: a, mountPath: /data, mountPropagation: Bidirectional}]",
    compares=True,
)
TPL_DEVICE = refused(
    "TPL-DEVICE",
    "a device names a volume that is a claim, and a path",
    "volumes: [{name: a, emptyDir: {}}], volumeDevices: [{name: a, devicePath: /dev/xvda}]",
)

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def _volume(site: Site, found: str, field: str, _: Raw) -> None:
    if found and found not in site.pod.volumes:
        hint = site.case.did_you_mean(found, site.pod.volumes)
        site.report(TPL_MOUNT_VOLUME, f"the pod has no volume {quoted(found)}{hint}", field)


def _source_problem(site: Site, found: str, _: Raw) -> str:
    volume = site.pod.volumes.get(found)
    if volume is None or "persistentVolumeClaim" in volume or "ephemeral" in volume:
        return ""
    only = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
    return f"{only}; {quoted(found)} is another one"


def _modes(site: Site, mounts: list[Raw], field: str, container: Raw) -> None:
    privileged = container.get("securityContext", {}).get("privileged")
    for index, mount in enumerate(mounts):
        if "mountPropagation" not in mount and "recursiveReadOnly" not in mount:
            continue
        propagation, recursion = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
        if propagation == "Bidirectional" and not privileged:
            message = "Bidirectional mount propagation is available only to privileged containers"
            site.report(TPL_MOUNT_MODE, message, f"{field}[{index}].mountPropagation")
        if recursion in ("Enabled", "IfPossible"):
            where = f"{field}[{index}].recursiveReadOnly"
            if not mount.get("readOnly"):
                message = f"may only be specified when readOnly is true, found {recursion}"
                site.report(TPL_MOUNT_MODE, message, where)
            if propagation not in (None, "None"):
                message = f"{recursion} needs mountPropagation None, found {propagation}"
                site.report(TPL_MOUNT_MODE, message, where)


def _beside_mounts(site: Site, devices: list[Raw], field: str, container: Raw) -> None:
    """Check that devices are not also mounted, and that the container uses the node's users."""
    mounts = container.get("volumeMounts", ())
    for member, of_mounts in (("name", "name"), ("devicePath", "mountPath")):
        mounted = {mount.get(of_mounts) for mount in mounts}
        for index, device in enumerate(devices):
            found = device.get(member)
            if found and found in mounted:
                message = f"{quoted(found)} must not already exist in volumeMounts of the container"
                site.report(TPL_MOUNT_DUP, message, f"{field}[{index}].{member}")
    if devices and not site.pod.host_users:
        site.report(TPL_DEVICE, "must not be set where hostUsers is false", field)


_ONE_SUB_PATH = "subPathExpr and subPath are mutually exclusive"
_NO_VOLUME = "must name a volume, found none"
_MOUNTS = compiled(
    Row("[].name", TPL_MOUNT.required(message=_NO_VOLUME), ""),
    Row("[].name", _volume),
    Row("[].mountPath", TPL_MOUNT.required(), ""),
    Row("", TPL_MOUNT_DUP.unique("mountPath", words="is already the path of")),
    Row("[].subPath|subPathExpr", TPL_MOUNT.relative_path()),
    Row("[].subPathExpr", TPL_MOUNT.excludes("subPath", _ONE_SUB_PATH)),
    Row("[].mountPropagation", TPL_MOUNT_MODE.one_of(*_PROPAGATIONS)),
    Row("[].recursiveReadOnly", TPL_MOUNT_MODE.one_of("Disabled", "Enabled", "IfPossible")),
    Row("", _modes),
)


def _read_for_mounts(site: Site, container: Raw) -> object:
    return [*site.pod.volumes], container.get("securityContext")


ROWS = (
    Row("volumeMounts", KnownValues(_MOUNTS, _read_for_mounts).check),
    Row("volumeDevices[].name", TPL_DEVICE.required(message=_NO_VOLUME), ""),
    Row("volumeDevices[].name", _volume),
    Row("volumeDevices[].name", TPL_DEVICE.judged(_source_problem)),
    Row("volumeDevices[].devicePath", TPL_DEVICE.required(), ""),
    Row("volumeDevices[].devicePath", TPL_DEVICE.without_backsteps()),
    Row("volumeDevices", TPL_MOUNT_DUP.unique("name", words="is already at")),
    Row("volumeDevices", TPL_MOUNT_DUP.unique("devicePath", words="is already at")),
    Row("volumeDevices", _beside_mounts),
)
"""Fields of a container."""
