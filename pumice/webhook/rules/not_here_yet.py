"""Warnings about what Pumice admits and does not act on, by the table of `pumice.api.not_here_yet`.

Volcano acts on it, so manifests with it are not refused. Their users must hear of it before they wait for it.
"""

from pumice.api.jobs import Job
from pumice.api.not_here_yet import uses_in_job, uses_in_pod
from pumice.api.pods import Pod
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import warned

NOT_HERE_YET = warned(
    "NOT-HERE-YET",
    "an object asks for nothing that is admitted and not acted on yet",
    "Volcano acts on it, Pumice does not yet: some pods wait forever, others run as if the field were not there. The page on "
    "compatibility lists all of it.",
    "topologyPolicy: restricted",
)


def uses(case: Case, found: Job | Pod) -> None:
    """Warn about fields of a Job and its templates, or of a pod."""
    for use in uses_in_job(found) if isinstance(found, Job) else uses_in_pod(found):
        case.report(NOT_HERE_YET, use.path, str(use))
