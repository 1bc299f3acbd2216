"""JobTemplates in CEL: the Jobs that JobFlows will make of them."""

from pumice.webhook.policies.form import Room
from pumice.webhook.policies.jobs import JobPlace, job_variables, later_forms

__all__ = ["ROOM"]

_PLACE = JobPlace(
    "spec", "$object.?spec.orValue({})", "'x-' + string($object.metadata.?name.orValue(''))"
)
ROOM = Room(job_variables(_PLACE), later_forms(_PLACE))
"""New and changed JobTemplates."""
