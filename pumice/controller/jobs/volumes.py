"""The Job's own volumes: which claims they are, and how pods mount them.

Names follow from the Job and the claim, so all pods of a Job have equal volumes, also after they are created again.
"""

import hashlib
from dataclasses import dataclass

from pumice.api.jobs import Job, Volume
from pumice.api.kinds import PERSISTENT_VOLUME_CLAIM
from pumice.api.meta import Raw
from pumice.api.names import LABEL_LENGTH, SUBDOMAIN_LENGTH

_DIGEST = 12


@dataclass(frozen=True, slots=True)
class JobVolume:
    """One claim with all its mount paths.

    Attributes:
        name: Name of the volume in a pod.
        claim: Name of the claim.
        paths: Where it is mounted.
    """

    name: str
    claim: str
    paths: tuple[str, ...]


def job_volumes(job: Job) -> tuple[JobVolume, ...]:
    """The Job's volumes, each claim once, in the order of the spec."""
    paths: dict[str, list[str]] = {}
    for volume in job.spec.volumes or ():
        paths.setdefault(_claim_name(job, volume), []).append(volume.mount_path)
    return tuple(
        JobVolume(
            _derived(job.metadata.name, claim, LABEL_LENGTH).replace(".", "-"), claim, tuple(at)
        )
        for claim, at in paths.items()
    )


def wanted_claims(job: Job) -> list[Raw]:
    """Claims that the Job defines. They are created once and kept until the Job is deleted."""
    claims = {
        _claim_name(job, volume): volume.volume_claim
        for volume in job.spec.volumes or ()
        if volume.volume_claim is not None
    }
    kind = PERSISTENT_VOLUME_CLAIM
    return [
        {
            **kind.type_meta,
            "metadata": {"name": name, "namespace": job.metadata.namespace},
            "spec": spec,
        }
        for name, spec in claims.items()
    ]


def claims_of_others(job: Job) -> list[str]:
    """Names of claims that the Job mounts and does not create."""
    own = {claim["metadata"]["name"] for claim in wanted_claims(job)}
    named = [volume.volume_claim_name for volume in job.spec.volumes or ()]
    return [name for name in dict.fromkeys(named) if name and name not in own]


def mounted(spec: Raw, volumes: tuple[JobVolume, ...]) -> Raw:
    """A pod spec with the volumes, mounted in every container that does not use their path."""
    if not volumes:
        return spec
    sources = [
        {"name": each.name, "persistentVolumeClaim": {"claimName": each.claim}} for each in volumes
    ]
    mounts = [{"name": each.name, "mountPath": path} for each in volumes for path in each.paths]
    edited = {**spec, "volumes": [*(spec.get("volumes") or ()), *sources]}
    for key in ("initContainers", "containers"):
        if containers := spec.get(key):
            edited[key] = [_with_mounts(container, mounts) for container in containers]
    return edited


def _with_mounts(container: Raw, mounts: list[Raw]) -> Raw:
    present = container.get("volumeMounts") or []
    devices = container.get("volumeDevices") or ()
    taken = {mount.get("mountPath") for mount in present if isinstance(mount, dict)}
    # Kubernetes takes no pod with a mount where a block device is.
    blocks = {
        path.rstrip("/")
        for device in devices
        if isinstance(device, dict) and isinstance(path := device.get("devicePath"), str)
    }
    added = [
        mount
        for mount in mounts
        if mount["mountPath"] not in taken and mount["mountPath"].rstrip("/") not in blocks
    ]
    return {**container, "volumeMounts": [*present, *added]} if added else container


def _claim_name(job: Job, volume: Volume) -> str:
    if volume.volume_claim_name:
        return volume.volume_claim_name
    return _derived(f"{job.metadata.name}-pvc", volume.mount_path, SUBDOMAIN_LENGTH)


def _derived(stem: str, text: str, length: int) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{stem[: length - _DIGEST - 1].rstrip('-.')}-{digest}"
