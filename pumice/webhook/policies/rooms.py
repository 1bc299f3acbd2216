"""Which room of forms goes with which kind."""

from collections.abc import Mapping

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.webhook.policies import (
    cron_jobs,
    hyper_nodes,
    job_flows,
    job_templates,
    job_updates,
    pod_groups,
    pods,
    queues,
)
from pumice.webhook.policies.form import Form, Room
from pumice.webhook.policies.jobs import JobPlace, job_forms, job_variables

__all__ = ["DELETION_ROOMS", "ROOMS", "UPDATE_ROOMS", "forms_of"]

_JOB = JobPlace(
    "spec",
    "$object.?spec.orValue({})",
    "string($object.metadata.?name.orValue(''))",
    "request.operation == 'CREATE'",
)
_JOBS = Room(
    {**job_variables(_JOB), **job_updates.VARIABLES},
    (*job_updates.FROZEN, *job_forms(_JOB)),
    covering=tuple(form.code for form in job_updates.FROZEN),
    between=job_updates.UPDATES,
    shifted=job_updates.SHIFTED,
)

ROOMS: Mapping[Kind, Room] = {
    kinds.JOB: _JOBS,
    kinds.QUEUE: queues.ROOM,
    kinds.POD_GROUP: pod_groups.ROOM,
    kinds.POD: pods.ROOM,
    kinds.CRON_JOB: cron_jobs.ROOM,
    kinds.JOB_FLOW: job_flows.ROOM,
    kinds.JOB_TEMPLATE: job_templates.ROOM,
    kinds.HYPER_NODE: hyper_nodes.ROOM,
}
"""What judges new and changed objects."""

UPDATE_ROOMS: Mapping[Kind, Room] = {kinds.POD_GROUP: pod_groups.UPDATES}
"""What judges changed objects where that is another matter than new ones."""

DELETION_ROOMS: Mapping[Kind, Room] = {kinds.QUEUE: queues.DELETION}
"""What judges objects that are deleted."""


def forms_of(kind: Kind) -> tuple[Form, ...]:
    """All forms of a kind, those about its deletion last."""
    deletion = DELETION_ROOMS.get(kind)
    return (*ROOMS[kind].forms, *(deletion.forms if deletion is not None else ()))
