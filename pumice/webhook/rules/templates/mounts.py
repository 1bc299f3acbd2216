"""Mounts of volumes and block devices: of volumes that exist, each at a path of its own."""

from collections.abc import Mapping
from typing import Any

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of, quoted, relative_path, without_backsteps

__all__ = ["RULES", "volume_devices", "volume_mounts"]

TPL_MOUNT_VOLUME = Rule(
    "TPL-MOUNT-VOLUME",
    "what is mounted is a volume of the pod",
    "Kubernetes refuses the pod otherwise.",
    "volumes: [{name: data, emptyDir: {}}], containers: [{volumeMounts: [{name: dta, mountPath: /data}]}]",
    reason="FieldValueNotFound",
    compares=True,
)
TPL_MOUNT = Rule(
    "TPL-MOUNT",
    "a mount says what is mounted where, and of the volume only a part inside it",
    "Kubernetes refuses the pod otherwise.",
    "volumeMounts: [{name: data, mountPath: /data, subPath: ../other}]",
)
TPL_MOUNT_DUP = Rule(
    "TPL-MOUNT-DUP",
    "no two mounts or devices of a container are at the same path, and no volume is both",
    "Kubernetes refuses the pod otherwise.",
    "volumeMounts: [{name: a, mountPath: /data}, {name: b, mountPath: /data}]",
)
TPL_MOUNT_MODE = Rule(
    "TPL-MOUNT-MODE",
    "mountPropagation and recursiveReadOnly are modes that the container may use",
    "Only privileged containers may mount into the node, and only what is read-only can be so throughout.",
    "volumeMounts: [{name: a, mountPath: /data, mountPropagation: Bidirectional}]",
    compares=True,
)
TPL_DEVICE = Rule(
    "TPL-DEVICE",
    "a device names a volume that is a claim, and a path",
    "Kubernetes refuses the pod otherwise.",
    "volumes: [{name: a, emptyDir: {}}], volumeDevices: [{name: a, devicePath: /dev/xvda}]",
)

RULES = (TPL_MOUNT_VOLUME, TPL_MOUNT, TPL_MOUNT_DUP, TPL_MOUNT_MODE, TPL_DEVICE)

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")


def volume_mounts(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `volumeMounts`."""
    if _are_plain(container["volumeMounts"], pod.volumes):
        return
    paths: dict[str, int] = {}
    for index, mount in entries(container["volumeMounts"]):
        name = mount.get("name")
        if not isinstance(name, str) or name not in pod.volumes:
            _no_volume(site, TPL_MOUNT, name, pod.volumes, f"volumeMounts[{index}].name")
        path = mount.get("mountPath")
        if path is None or path == "":
            where = f"volumeMounts[{index}].mountPath"
            site.report(TPL_MOUNT, "must be set, found none", where, "FieldValueRequired")
        elif isinstance(path, str) and (first := paths.setdefault(path, index)) != index:
            message = f"{quoted(path)} is already the path of {site.path}.volumeMounts[{first}]"
            site.report(TPL_MOUNT_DUP, message, f"volumeMounts[{index}].mountPath")
        if len(mount) > 2:
            _details(site, container, mount, f"volumeMounts[{index}]")


def volume_devices(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `volumeDevices`, also against `volumeMounts`."""
    mounts = [mount for _, mount in entries(container.get("volumeMounts"))]
    mounted = {name for mount in mounts if isinstance(name := mount.get("name"), str)}
    mount_paths = {path for mount in mounts if isinstance(path := mount.get("mountPath"), str)}
    names: dict[str, int] = {}
    paths: dict[str, int] = {}
    for index, device in entries(container["volumeDevices"]):
        field = f"volumeDevices[{index}]"
        name, path = device.get("name"), device.get("devicePath")
        _device(site, name, path, pod, field)
        for found, seen, elsewhere, member in (
            (name, names, mounted, "name"),
            (path, paths, mount_paths, "devicePath"),
        ):
            if not found or not isinstance(found, str):
                continue
            if (first := seen.setdefault(found, index)) != index:
                message = f"{quoted(found)} is already at {site.path}.volumeDevices[{first}]"
                site.report(TPL_MOUNT_DUP, message, f"{field}.{member}")
            elif found in elsewhere:
                message = f"{quoted(found)} is already in {site.path}.volumeMounts"
                site.report(TPL_MOUNT_DUP, message, f"{field}.{member}")
    if not pod.host_users and container["volumeDevices"]:
        message = "must not be set where hostUsers is false"
        site.report(TPL_DEVICE, message, "volumeDevices")


def _are_plain(mounts: Any, volumes: Mapping[str, Raw]) -> bool:
    """Whether all mounts are of volumes that there are, and at paths of their own, and say no more.

    A single look, since nearly all are so.
    """
    try:
        paths = {
            mount["mountPath"]
            for mount in mounts
            if mount["name"] in volumes
            and (len(mount) == 2 or (len(mount) == 3 and "readOnly" in mount))
        }
    except (KeyError, TypeError):
        return False
    return len(paths) == len(mounts) and all(paths)


def _details(site: Site, container: Raw, mount: Raw, field: str) -> None:
    """Check what a mount says beyond volume and path."""
    part, expression = mount.get("subPath"), mount.get("subPathExpr")
    if part and isinstance(part, str):
        relative_path(site, TPL_MOUNT, part, f"{field}.subPath")
    if expression and isinstance(expression, str):
        if part:
            message = "must not be set together with subPath"
            site.report(TPL_MOUNT, message, f"{field}.subPathExpr")
        relative_path(site, TPL_MOUNT, expression, f"{field}.subPathExpr")
    propagation = mount.get("mountPropagation")
    one_of(site, TPL_MOUNT_MODE, propagation, _PROPAGATIONS, f"{field}.mountPropagation")
    if propagation == "Bidirectional" and not _is_privileged(container):
        message = "Bidirectional is for privileged containers only"
        site.report(TPL_MOUNT_MODE, message, f"{field}.mountPropagation")
    recursion = mount.get("recursiveReadOnly")
    one_of(site, TPL_MOUNT_MODE, recursion, _RECURSIONS, f"{field}.recursiveReadOnly")
    if recursion in ("Enabled", "IfPossible"):
        if mount.get("readOnly") is not True:
            message = f"{recursion} needs readOnly: true"
            site.report(TPL_MOUNT_MODE, message, f"{field}.recursiveReadOnly")
        if propagation not in (None, "None"):
            message = f"{recursion} needs mountPropagation None, found {propagation}"
            site.report(TPL_MOUNT_MODE, message, f"{field}.recursiveReadOnly")


def _device(site: Site, name: object, path: object, pod: Surroundings, field: str) -> None:
    volume = pod.volumes.get(name) if isinstance(name, str) else None
    if volume is None:
        _no_volume(site, TPL_DEVICE, name, pod.volumes, f"{field}.name")
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        message = (
            f"must be a volume of type persistentVolumeClaim or ephemeral, which {name} is not"
        )
        site.report(TPL_DEVICE, message, f"{field}.name")
    if path is None or path == "":
        where = f"{field}.devicePath"
        site.report(TPL_DEVICE, "must be set, found none", where, "FieldValueRequired")
    elif isinstance(path, str):
        without_backsteps(site, TPL_DEVICE, path, f"{field}.devicePath")


def _no_volume(
    site: Site, rule: Rule, name: object, volumes: Mapping[str, Raw], field: str
) -> None:
    if name is None or name == "":
        site.report(rule, "must name a volume, found none", field, "FieldValueRequired")
    elif isinstance(name, str):
        hint = site.case.did_you_mean(name, volumes)
        message = f"the pod has no volume {quoted(name)}{hint}"
        site.report(TPL_MOUNT_VOLUME, message, field)


def _is_privileged(container: Raw) -> bool:
    context = container.get("securityContext")
    return isinstance(context, dict) and context.get("privileged") is True
