"""JobFlows, which run Jobs in an order, and the JobTemplates that these Jobs are made from.

A flow of a JobFlow names a JobTemplate and the flows that it waits for. `entries` decides what each flow waits for, `manifests` and
`merging` make its Job, `status` says how the Jobs are, and `plan` puts this together: JobFlow, Jobs and templates in, plan out.
"""

from pumice.controller.jobflows.entries import Entry, Flows, Wait, awaits_end, read
from pumice.controller.jobflows.manifests import job_of
from pumice.controller.jobflows.plan import plan_job_flow
from pumice.controller.jobflows.templates import plan_job_template

__all__ = [
    "Entry",
    "Flows",
    "Wait",
    "awaits_end",
    "job_of",
    "plan_job_flow",
    "plan_job_template",
    "read",
]
