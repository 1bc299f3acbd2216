"""The Job of a flow, and the Command that ends it early."""

from pumice.api import keys
from pumice.api.kinds import COMMAND, JOB, JOB_FLOW
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobflows.merging import merged
from pumice.controller.jobs.phases import TERMINATE_JOB
from pumice.controller.owners import controller_reference

__all__ = ["job_of", "made_from", "termination_name", "termination_of"]


def made_from(namespace: str, name: str) -> str:
    """The value of labels that refer to a JobFlow or JobTemplate: `<namespace>.<name>`."""
    return f"{namespace}.{name}"


def job_of(job_flow: ObjectMeta, job_name: str, flow: Raw, template: Raw) -> Raw:
    """The manifest of a Job.

    Args:
        job_flow: Metadata of the JobFlow.
        job_name: Name of the Job.
        flow: The entry of `spec.flows`.
        template: The JobTemplate that the flow names; its own metadata is not copied.
    """
    namespace = job_flow.namespace
    origin = {
        keys.CREATED_BY_JOB_TEMPLATE: made_from(namespace, flow["name"]),
        keys.CREATED_BY_JOB_FLOW: made_from(namespace, job_flow.name),
    }
    patch = (flow.get("patch") or {}).get("jobSpec") or {}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {
            "name": job_name,
            "namespace": namespace,
            "labels": origin,
            "annotations": dict(origin),
            "ownerReferences": [controller_reference(job_flow, JOB_FLOW)],
        },
        "spec": merged(template.get("spec") or {}, patch),
    }


def termination_name(name: str, uid: str) -> str:
    """Name of the Command that terminates a Job; always the same, so that there is one at a time."""
    return f"{name}-terminate-{uid[:8]}"


def termination_of(job: ObjectMeta, job_flow: str) -> Raw:
    """The Command that terminates a Job."""
    target = controller_reference(job, JOB)
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {
            "name": termination_name(job.name, job.uid),
            "namespace": job.namespace,
            "ownerReferences": [target],
        },
        "action": TERMINATE_JOB,
        "target": target,
        "reason": "JobFlowFailed",
        "message": f"JobFlow {job_flow} has failed",
    }
