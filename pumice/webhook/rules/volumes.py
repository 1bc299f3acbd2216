"""Volumes of a Job: claims mounted into every pod."""

from pumice.api.jobs import Job
from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["RULES", "VOL_PATH", "volumes"]

VOL_PATH = Rule(
    "VOL-PATH",
    "a volume says where it is mounted",
    "Without a path there is nothing to mount it at.",
    'volumes: [{mountPath: "", volumeClaimName: data}]',
    reason="FieldValueRequired",
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
    "Otherwise there is nothing to mount.",
    "volumes: [{mountPath: /data}]",
    reason="FieldValueRequired",
)
VOL_BOTH = Rule(
    "VOL-BOTH",
    "a volume has volumeClaim or volumeClaimName, not both",
    "The one asks for a new claim, the other for one that exists.",
    "volumes: [{mountPath: /data, volumeClaimName: data, volumeClaim: {…}}]",
    reason="FieldValueForbidden",
)
VOL_NAME = Rule(
    "VOL-NAME",
    "volumeClaimName is an object name",
    "No claim can have another name.",
    "volumes: [{mountPath: /data, volumeClaimName: My_Data}]",
)

RULES = (VOL_PATH, VOL_DUP, VOL_NONE, VOL_BOTH, VOL_NAME)


def volumes(case: Case, job: Job) -> None:
    """Check the Job's volumes.

    A claim's name beside an inline claim is refused only for a new Job: afterwards it is the
    controller that wrote it there.
    """
    mounted: dict[str, int] = {}
    for index, volume in enumerate(job.spec.volumes or ()):
        path = f"spec.volumes[{index}]"
        first = mounted.setdefault(volume.mount_path, index)
        if not volume.mount_path:
            case.report(VOL_PATH, f"{path}.mountPath", "must not be empty")
        elif first != index:
            message = f'"{volume.mount_path}" is already the path of spec.volumes[{first}]'
            case.report(VOL_DUP, f"{path}.mountPath", message)
        name = volume.volume_claim_name
        if volume.volume_claim is None:
            if not name:
                message = "must name an existing claim, or volumeClaim must describe a new one"
                case.report(VOL_NONE, f"{path}.volumeClaimName", message)
        elif name and case.creating:
            message = f'must not be set together with volumeClaim, found "{name}"'
            case.report(VOL_BOTH, f"{path}.volumeClaimName", message)
        if name and (problem := dns_subdomain_problem(name)):
            case.report(VOL_NAME, f"{path}.volumeClaimName", problem)
