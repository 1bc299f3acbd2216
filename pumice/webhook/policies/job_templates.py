"""JobTemplates in CEL: the Jobs that JobFlows will make of them."""

from dataclasses import replace

from pumice.webhook.policies.form import Room
from pumice.webhook.policies.jobs import JobPlace, job_forms, job_variables

__all__ = ["ROOM"]

_PLACE = JobPlace(
    "spec", "$object.?spec.orValue({})", "'x-' + string($object.metadata.?name.orValue(''))"
)
_OF_THE_RUN = frozenset({"JOB-PODNAME", "JOB-PODNAME-INDEX"})

ROOM = Room(
    job_variables(_PLACE),
    tuple(
        replace(form, level="warn" if form.code in _OF_THE_RUN else None, later=True)
        for form in job_forms(_PLACE)
    ),
)
"""New and changed JobTemplates."""
