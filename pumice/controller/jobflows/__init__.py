"""JobFlows, which run Jobs in an order, and the JobTemplates that these Jobs are made from.

A flow of a JobFlow names a JobTemplate and the flows that it waits for. `waits` has what a flow waits for, `entries`
the state of each flow, `manifests` and `merging` create its Job, `status` composes the status. `plan` combines them:
JobFlow, Jobs and templates in, plan out.
"""

from pumice.controller.jobflows.entries import FlowEntry, Flows, awaits_end, read
from pumice.controller.jobflows.manifests import job_of, termination_name
from pumice.controller.jobflows.plan import plan_job_flow, plan_job_template

__all__ = [
    "FlowEntry",
    "Flows",
    "awaits_end",
    "job_of",
    "plan_job_flow",
    "plan_job_template",
    "read",
    "termination_name",
]
