"""Volumes of a Job: claims mounted into every pod, and what the API server would refuse when the controller creates them."""

from collections.abc import Container, Iterator
from typing import Any

from pumice.api.jobs import Job, Volume
from pumice.api.names import dns_subdomain_problem
from pumice.plugins.svc import MOUNT_PATH
from pumice.plugins.used_names import used_names
from pumice.webhook.rules.case import Case, check_rest
from pumice.webhook.rules.rule import Rule, warned
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.shapes import stricter
from pumice.webhook.rules.templates.table import Site, entries
from pumice.webhook.rules.templates.volumes import claim_spec

VOL_PATH = Rule(
    "VOL-PATH",
    "a volume says where it is mounted",
    "A volume without a path cannot be mounted.",
    'volumes: [{mountPath: "", volumeClaimName: data}]',
    reason="FieldValueRequired",
)
VOL_COLON = Rule(
    "VOL-COLON",
    "the path at which a volume is mounted has no colon",
    "Container runtimes separate a path from its options with a colon.",
    'volumes: [{mountPath: "/data:ro", volumeClaimName: data}]',
)
VOL_DUP = Rule(
    "VOL-DUP",
    "no two volumes are mounted at the same path",
    "Kubernetes refuses a pod with two mounts at one path.",
    "volumes: [{mountPath: /data, volumeClaimName: a}, {mountPath: /data, volumeClaimName: b}]",
    reason="FieldValueDuplicate",
)
VOL_NONE = Rule(
    "VOL-NONE",
    "a volume has volumeClaim or volumeClaimName",
    "Without a claim there is nothing to mount.",
    "volumes: [{mountPath: /data}]",
    reason="FieldValueRequired",
    compares=True,
)
VOL_BOTH = Rule(
    "VOL-BOTH",
    "a volume has volumeClaim or volumeClaimName, not both",
    "The first creates a claim, the second uses an existing claim.",
    "volumes: [{mountPath: /data, volumeClaimName: data, volumeClaim: {…}}]",
    reason="FieldValueForbidden",
)
VOL_NAME = Rule(
    "VOL-NAME",
    "volumeClaimName is an object name",
    "Kubernetes has no claims with other names.",
    "volumes: [{mountPath: /data, volumeClaimName: My_Data}]",
)
VOL_TWICE = warned(
    "VOL-TWICE",
    "a claim is mounted once",
    "Both paths show the same files; Volcano mounts the first one only.",
    "volumes: [{mountPath: /in, volumeClaimName: data}, {mountPath: /out, volumeClaimName: data}]",
)
VOL_TAKEN = warned(
    "VOL-TAKEN",
    "the path of a volume is free in the pods",
    "A container that mounts something there itself keeps it and does not get the Job's volume; "
    "Volcano's pod is refused.",
    "volumes: [{mountPath: /data, …}], template: {… volumeMounts: [{name: own, mountPath: /data}]}",
    compares=True,
)
VOL_CLAIM = stricter(
    "VOL-CLAIM",
    "a claim in a Job is valid: it has access modes and a size",
    "Volcano fails when it creates the claim; the Job then waits forever.",
    "volumes: [{mountPath: /data, volumeClaim: {accessModes: [ReadWriteOnce]}}]",
)

_PLACES = (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"))


def volumes(case: Case, job: Job) -> None:
    """Check the Job's volumes."""
    if not job.spec.volumes:
        return
    mounted: dict[str, int] = {}
    claims: dict[str, int] = {}
    for index, volume in enumerate(job.spec.volumes):
        path = f"spec.volumes[{index}]"
        first = mounted.setdefault(volume.mount_path, index)
        if not volume.mount_path:
            case.report(VOL_PATH, f"{path}.mountPath", "mountPath is required, found none")
        elif first != index:
            message = (
                f'duplicated mountPath "{volume.mount_path}", already used by spec.volumes[{first}]'
            )
            case.report(VOL_DUP, f"{path}.mountPath", message)
        elif ":" in volume.mount_path:
            message = f"must not contain ':', found \"{volume.mount_path}\""
            case.report(VOL_COLON, f"{path}.mountPath", message)
        _claim(case, volume, path, index, claims)
    _taken(case, job, mounted)


def _claim(case: Case, volume: Volume, path: str, index: int, claims: dict[str, int]) -> None:
    """Check which claim is mounted.

    A claim's name together with an inline claim is refused only for a new Job: later the controller has written the
    name.
    """
    name = volume.volume_claim_name
    if volume.volume_claim is None:
        if not name:
            message = (
                "either VolumeClaim or VolumeClaimName must be specified, found neither; name an existing claim "
                "here, or describe a new one in volumeClaim"
            )
            case.report(VOL_NONE, f"{path}.volumeClaimName", message)
    else:
        if name and case.creating:
            message = (
                f'found "{name}" together with volumeClaim: for an existing claim just specify VolumeClaimName, for '
                "a new one volumeClaim"
            )
            case.report(VOL_BOTH, f"{path}.volumeClaimName", message)
        new_claim(case, volume.volume_claim, f"{path}.volumeClaim")
    if not name:
        return
    if problem := dns_subdomain_problem(name):
        case.report(VOL_NAME, f"{path}.volumeClaimName", f"invalid VolumeClaimName: {problem}")
    if (first := claims.setdefault(name, index)) != index:
        message = (
            f'"{name}" is already mounted by spec.volumes[{first}]; both paths show the same files'
        )
        case.report(VOL_TWICE, f"{path}.volumeClaimName", message)


_SPEC = "PersistentVolumeClaimSpec"
_judge_spec = claim_spec(VOL_CLAIM)


def new_claim(case: Case, claim: dict[str, Any], path: str) -> None:
    """Check the spec of a claim, which may be any object."""
    unreadable: list[str] = []
    if not types.fits(claim, _SPEC):
        claim, unreadable = types.read(Site(case, path), claim, _SPEC, VOL_CLAIM)
    kept = _as_created(claim)
    if unreadable:
        check_rest(case, unreadable, (), lambda rest: _judge_spec(Site(rest, path), kept, "", {}))
    else:
        _judge_spec(Site(case, path), kept, "", {})


_KNOWN = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _as_created(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim without the sources of data that the API server drops.

    These are a `dataSourceRef` in another namespace, unless a feature is on, and a `dataSource` of an unknown kind without a
    `dataSourceRef` beside it.
    """
    new, old = claim.get("dataSourceRef"), claim.get("dataSource")
    dropped = {"dataSourceRef"} if new is not None and new.get("namespace") else set()
    if old is not None and (new is None or dropped):
        named = old.get("apiGroup", ""), old.get("kind", "")
        dropped |= {"dataSource"} if named not in _KNOWN else set()
    return {field: value for field, value in claim.items() if field not in dropped}


def _taken(case: Case, job: Job, mounted: dict[str, int]) -> None:
    """Warn if a container or a plugin uses the path of a volume for something else."""
    if "svc" in (job.spec.plugins or ()) and MOUNT_PATH in mounted:
        message = f'"{MOUNT_PATH}" is the path of the hosts files of plugin svc, which are not mounted then'
        case.report(VOL_TAKEN, f"spec.volumes[{mounted[MOUNT_PATH]}].mountPath", message)
    if not used_names(job).may_mount(mounted):
        return
    for index, task in enumerate(job.tasks):
        spec = task.pod_spec()
        for field in ("containers", "initContainers"):
            for place, path in _mounts(spec.get(field), mounted):
                where = f"spec.tasks[{index}].template.spec.{field}{place}"
                message = f'"{path}" is mounted here by the container: spec.volumes[{mounted[path]}] is not mounted'
                case.report(VOL_TAKEN, where, message)


def _mounts(containers: object, taken: Container[str]) -> Iterator[tuple[str, str]]:
    """Those of some paths at which containers have a volume or a block device, each with its place in the pod."""
    for position, container in entries(containers):
        for field, member in _PLACES:
            for number, mount in entries(container.get(field)):
                path = mount.get(member)
                if isinstance(path, str) and path in taken:
                    yield f"[{position}].{field}[{number}].{member}", path
