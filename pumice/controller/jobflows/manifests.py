"""The Job of a flow."""

from pumice.api import keys
from pumice.api.kinds import JOB, JOB_FLOW
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobflows.merging import merged
from pumice.controller.owners import controller_reference

__all__ = ["job_of", "made_from"]


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
