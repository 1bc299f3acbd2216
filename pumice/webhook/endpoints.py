"""Endpoints: for each path, the struct of its objects and the rules that check them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.cronjobs import CronJob
from pumice.api.hypernodes import HyperNode
from pumice.api.jobflows import JobFlow, JobTemplate
from pumice.api.jobs import Job
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.webhook.questions import Envelope, Question, Source, object_as
from pumice.webhook.registrations import REGISTRATIONS, Registration
from pumice.webhook.rules import hyper_nodes, pod_groups, pods
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.drafts import DraftJob, DraftPod, DraftPodGroup, DraftQueue
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.jobs import plugins as job_plugins
from pumice.webhook.rules.jobs.defaults import job_defaults
from pumice.webhook.rules.pod_groups import pod_group_defaults
from pumice.webhook.rules.pods import pod_defaults
from pumice.webhook.rules.queues import checks as queue_checks
from pumice.webhook.rules.queues import closing as queue_closing
from pumice.webhook.rules.queues.fields import queue_defaults
from pumice.webhook.rules.updates import judge as judge_changes
from pumice.webhook.rules.wired_pods import wants_plugins, wired_pod
from pumice.webhook.schema_problems import type_problems

Judge = Callable[[Case, Question[Any], Source], None]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and its handler.

    Attributes:
        registration: Its row in the table of endpoints.
        type: Struct that objects become.
        judge: Reports problems and changes to the case.
        reviews: Decoder of whole reviews.
    """

    registration: Registration
    type: type[msgspec.Struct]
    judge: Judge
    reviews: msgspec.json.Decoder[Envelope[Any]]

    @property
    def code(self) -> str:
        """Code for errors outside of rules: `JOBS-MUTATE`."""
        return self.registration.path.strip("/").replace("/", "-").upper()


def _judged_by(validate: Callable[[Case, Any, Any], None]) -> Judge:
    """Check creations and updates with a function of the object and the stored one."""

    def judge(case: Case, question: Question[Any], _: Source) -> None:
        if question.object is not None:
            validate(case, question.object, question.stored)

    return judge


def _checked_by(checks: tuple[Check[Any], ...]) -> Judge:
    """Run the checks of a kind in which everything may change; an update is refused for problems that it brings."""
    return _judged_by(lambda case, new, old: judge_changes(case, checks, new, old))


def _defaulted_by(default: Callable[[Case, Any, Any], None]) -> Judge:
    """Write defaults with a function of the object and the stored one, unless the object is being deleted."""

    def judge(case: Case, question: Question[Any], _: Source) -> None:
        if question.object is not None and not question.object.metadata.deletion_timestamp:
            default(case, question.object, question.stored)

    return judge


def _mutate_job(case: Case, question: Question[DraftJob | None], source: Source) -> None:
    job, old = question.object, question.stored
    if job is None or (job.metadata is not None and job.metadata.deletion_timestamp):
        return
    job_defaults(case, job, old)
    named = (job.spec.plugins if job.spec is not None else None) or ()
    if any(name in case.plugins.annotating for name in named):
        try:
            whole = object_as(Job, source)
        except msgspec.ValidationError as error:
            if old is not None:
                return  # validation reports it if the update causes it
            raw = object_as(dict, source)
            case.errors.extend(type_problems(kinds.JOB, raw, error))
            return
        if whole is not None:
            job_plugins.job_annotations(case, whole, job, old)


def _validate_queue(case: Case, question: Question[Queue | None], _: Source) -> None:
    if question.operation == "DELETE":
        old = question.old_object
        named = old or question.object
        name = question.name or (named.metadata.name if named is not None else "")
        queue_closing.validate_delete(case, name, old)
    elif question.object is not None:
        queue_checks.validate(case, question.object, question.stored)


def _mutate_pod(case: Case, question: Question[DraftPod | None], source: Source) -> None:
    pod = question.object
    if pod is None:
        return
    if wants_plugins(pod) and (raw := object_as(dict, source)) is not None:
        wired_pod(case, raw)
    pod_defaults(case, pod)


_JUDGES: dict[str, tuple[type[msgspec.Struct], Judge]] = {
    "/jobs/mutate": (DraftJob, _mutate_job),
    "/jobs/validate": (Job, _judged_by(job_checks.validate)),
    "/queues/mutate": (DraftQueue, _defaulted_by(queue_defaults)),
    "/queues/validate": (Queue, _validate_queue),
    "/podgroups/mutate": (DraftPodGroup, _defaulted_by(pod_group_defaults)),
    "/podgroups/validate": (PodGroup, _judged_by(pod_groups.validate)),
    "/pods/mutate": (DraftPod, _mutate_pod),
    "/pods/validate": (Pod, _judged_by(pods.validate)),
    "/cronjobs/validate": (CronJob, _judged_by(cron_jobs.validate)),
    "/jobflows/validate": (JobFlow, _judged_by(job_flows.validate)),
    "/jobtemplates/validate": (JobTemplate, _checked_by(job_templates.CHECKS)),
    "/hypernodes/validate": (HyperNode, _checked_by(hyper_nodes.CHECKS)),
}

ENDPOINTS: dict[str, Endpoint] = {
    each.path: Endpoint(each, type_, judge, msgspec.json.Decoder(Envelope[type_ | None]))  # type: ignore[valid-type]
    for each in REGISTRATIONS
    for type_, judge in (_JUDGES[each.path],)
}
"""Every endpoint by its path."""
