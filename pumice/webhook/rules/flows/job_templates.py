"""Jobs within other objects: JobTemplates, and the Jobs that CronJobs and JobFlows embed.

They are checked in the form in which they will be created. Volcano does not check them: a CronJob with a mistake in its
template is admitted, and fails at every run. So every rule that refuses a Job is stricter here. Problems with queues
only warn, because queues may change before the Jobs are created.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.fields import FieldError
from pumice.api.jobflows import JobTemplate, job_name
from pumice.api.jobs import Job
from pumice.api.meta import ObjectMeta
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.jobs import names as job_names
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.jobs.updates import normal
from pumice.webhook.rules.references import JOB
from pumice.webhook.rules.rule import Level, warned

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
"""Rules about names that end in the time of a run. They only warn: within Kubernetes' limit for names of CronJobs, names of runs may be too long."""

_IN_MESSAGE = re.compile(r"\bspec\.(?=tasks|volumes|policies)")
_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    """Paths of the parts of a Job in the object that embeds it.

    Attributes:
        spec: Path of its spec, for example `spec.jobTemplate.spec`.
        metadata: Path of its labels and annotations; its name always comes from the object's.
    """

    spec: str = "spec"
    metadata: str = "metadata"

    def of(self, found: FieldError) -> FieldError:
        """A problem of the Job at its path in the object."""
        message = _IN_MESSAGE.sub(f"{self.spec}.", found.message)
        return msgspec.structs.replace(found, path=self.path(found.path), message=message)

    def path(self, path: str) -> str:
        """A path of the Job as a path of the object."""
        if path == "spec" or path.startswith("spec."):
            return self.spec + path.removeprefix("spec")
        if path.startswith("metadata.") and path != _NAME:
            return self.metadata + path.removeprefix("metadata")
        return path


def judge_job(case: Case, job: Job, place: TemplatePlace, *, partial: bool = False) -> None:
    """Check the Job that an object will create, with all defaults applied.

    If fields will be added, only present fields are checked, each by itself: missing fields, and conflicts between
    fields, may be corrected by the rest. Problems of pod templates then only warn, because most of their fields depend
    on others.

    Args:
        case: Case of the object, which gets the problems.
        job: The Job with its future name.
        place: Path of the Job in the object.
        partial: Whether other fields are added later.
    """
    present = msgspec.to_builtins(job) if partial else None
    defaulting, judging = case.sibling(), case.sibling()
    judging.creating = True  # the Jobs will be new objects, also when this object is updated
    run(judging, job_checks.CHECKS, normal(defaulting, job))
    case.crashes.extend(judging.crashes)
    case.missing_queues.extend(judging.missing_queues)
    warnings = (*defaulting.warnings, *judging.warnings)
    for position, found in enumerate((*judging.errors, *warnings)):
        refuses, placed = position < len(judging.errors), place.of(found)
        if refuses and judging.is_crash(found):
            case.errors.append(found)
        elif partial and (found.code in _COMPARING or not _stands(present, f".{found.path}")):
            continue  # the problem may not exist in the whole Job
        elif found.code in _FOR_LATER:
            case.report(JOB_QUEUE_LATER, placed.path, placed.message)
        elif not refuses:
            case.warnings.append(placed)
        else:
            is_template = partial and found.code.startswith("TPL-")
            level: Level = "warn" if is_template or found.code in _OF_THE_RUN else "enforce"
            case.add(placed, level, stricter=True)
    for (code, path), excess in judging.excesses.items():
        case.excesses[code, place.path(path)] = excess


def _stands(value: Any, rest: str) -> bool:
    """True if there is a value at a path; keys of maps may have dots."""
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
"""Placeholder for the name of the JobFlow, which is the first part of the Job's."""


def _job(case: Case, template: JobTemplate) -> None:
    meta = ObjectMeta(
        name=job_name(_SHORTEST, expected_name(template.metadata)),
        namespace=template.metadata.namespace,
    )
    judge_job(case, Job(metadata=meta, spec=template.spec), TemplatePlace())


CHECKS: tuple[Check[JobTemplate], ...] = ((job_names.JOB_NAME, _job),)
