"""Jobs within other objects: JobTemplates, and the Jobs that CronJobs and JobFlows embed.

They are checked as they will be when they are created. Volcano does not check them: a CronJob with a mistake
in its template is admitted, and fails at every run. So whatever refuses a Job is stricter here. Queues only
warn, because the Jobs are for later and queues change.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.fields import FieldError
from pumice.api.jobflows import JobTemplate, job_name
from pumice.api.jobs import Job, JobSpec
from pumice.api.meta import ObjectMeta
from pumice.webhook.patches import applied
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.drafts import draft_of
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.jobs import names as job_names
from pumice.webhook.rules.jobs.defaults import job_defaults
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.references import JOB
from pumice.webhook.rules.rule import Level, warned
from pumice.webhook.rules.updates import judge

Raw = dict[str, Any]

JOB_QUEUE_LATER = warned(
    "JOB-QUEUE-LATER",
    "the queue of future Jobs is open and a leaf",
    "Unless that changes before a Job is created, the Job will be refused; the CronJob, the JobTemplate or the "
    "JobFlow is admitted. A queue that was created a second ago may still count as missing.",
    "jobTemplate: {spec: {queue: closed-for-maintenance}}",
)

_FOR_LATER = frozenset(rule.code for rule in (JOB.missing, JOB.not_open, JOB.not_leaf))
_COMPARING = frozenset(rule.code for rule in job_checks.RULES if rule.compares)
_OF_THE_RUN = frozenset(("JOB-PODNAME", "JOB-PODNAME-INDEX"))
"""Rules about names that end in the moment of a run: the limit on a CronJob's own name, which is Kubernetes'
for its CronJobs, leaves them too little room, so that names within it are only warned about."""

_IN_MESSAGE = re.compile(r"\bspec\.(?=tasks|volumes|policies)")
_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    """Where the parts of a Job stand in the object that holds it.

    Attributes:
        spec: Path of its spec, for example `spec.jobTemplate.spec`.
        metadata: Path of its labels and annotations; its name always comes from the object's.
    """

    spec: str = "spec"
    metadata: str = "metadata"

    def of(self, found: FieldError) -> FieldError:
        """A problem of the Job, where it stands in the object."""
        message = found.message
        if self.spec != "spec":
            message = _IN_MESSAGE.sub(f"{self.spec}.", message)
        return msgspec.structs.replace(found, path=self.path(found.path), message=message)

    def path(self, path: str) -> str:
        """A path of the Job, as one of the object."""
        if path == "spec" or path.startswith(("spec.", "spec[")):
            return self.spec + path.removeprefix("spec")
        if path.startswith("metadata.") and path != _NAME:
            return self.metadata + path.removeprefix("metadata")
        return path


def judge_partial_job(case: Case, spec: JobSpec, place: TemplatePlace) -> None:
    """Judge a part of a Job, which the rest is yet to be added to.

    Only what is there is judged, and each field for itself: what is missing, or does not fit another field,
    may be corrected by the rest. Problems of pod templates, where most fields depend on others, only warn.
    """
    judge_job(case, Job(spec=spec), place, {"spec": msgspec.to_builtins(spec)})


def judge_job(case: Case, job: Job, place: TemplatePlace, part: Raw | None = None) -> None:
    """Check the Job that an object will create, with all defaults applied.

    Args:
        case: Where problems go, under the paths of the object.
        job: The Job, named as it will be.
        place: Path of the Job in the object.
        part: The known fields of the Job, if others are added later; None if the Job is complete.
    """
    raw: Raw = msgspec.to_builtins(job)
    defaulting, judging = case.sibling(), case.sibling()
    judging.creating = True  # the Jobs will be new objects, also when this object is updated
    job_defaults(defaulting, draft_of(raw))
    whole = msgspec.convert(applied(raw, defaulting.patch.operations), Job)
    run(judging, job_checks.CHECKS, whole)
    case.crashes.extend(judging.crashes)
    case.missing_queues.extend(judging.missing_queues)
    refusing = [(each, True) for each in judging.errors]
    warning = [(each, False) for each in (*defaulting.warnings, *judging.warnings)]
    for found, refuses in (*refusing, *warning):
        if refuses and judging.is_crash(found):
            case.errors.append(found)
            continue
        if not _holds(found, part):
            continue
        placed = place.of(found)
        if found.code in _FOR_LATER:
            case.report(JOB_QUEUE_LATER, placed.path, placed.message)
        elif not refuses:
            case.warnings.append(placed)
        else:
            is_template = part is not None and found.code.startswith("TPL-")
            level: Level = "warn" if is_template or found.code in _OF_THE_RUN else "enforce"
            case.add(placed, level, stricter=True)
    for (code, path), excess in judging.excesses.items():
        case.excesses[code, place.path(path)] = excess


def _holds(found: FieldError, part: Raw | None) -> bool:
    """Whether what was found in a part of a Job will hold for the whole."""
    if part is None:
        return True
    return found.code not in _COMPARING and _stands(part, f".{found.path}")


def _stands(value: Any, rest: str) -> bool:
    """Whether something stands at a path; keys of maps may have dots."""
    if not rest:
        return value is not None
    if isinstance(value, list) and rest.startswith("["):
        index, _, after = rest[1:].partition("]")
        return index.isdecimal() and int(index) < len(value) and _stands(value[int(index)], after)
    if not isinstance(value, dict) or not rest.startswith("."):
        return False
    named = rest[1:]
    return any(
        _stands(item, named[len(key) :])
        for key, item in value.items()
        if named.startswith(key) and named[len(key) : len(key) + 1] in ("", ".", "[")
    )


_SHORTEST = "x"
"""Stands for the JobFlow, whose name comes first in the Job's."""


def _job(case: Case, template: JobTemplate) -> None:
    meta = ObjectMeta(
        name=job_name(_SHORTEST, expected_name(template.metadata)),
        namespace=template.metadata.namespace,
    )
    judge_job(case, Job(metadata=meta, spec=template.spec), TemplatePlace())


CHECKS: tuple[Check[JobTemplate], ...] = ((job_names.JOB_NAME, _job),)
"""The checks of a JobTemplate."""


def validate(case: Case, template: JobTemplate, old: JobTemplate | None) -> None:
    """Judge a JobTemplate; Jobs that were made of it stay as they are."""
    judge(case, CHECKS, template, old)
