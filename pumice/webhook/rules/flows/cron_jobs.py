"""CronJobs: their schedules, and whether their Jobs could be created."""

from pumice.api import keys
from pumice.api.cronjobs import CronJob, job_name
from pumice.api.fields import Reason
from pumice.api.jobs import Job
from pumice.api.json_words import quoted
from pumice.api.meta import ObjectMeta, parse_bool
from pumice.api.names import qualified_name_problem
from pumice.api.schedules import Interval, ScheduleError, parse_schedule, time_zone_problem
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.flows.job_templates import TemplatePlace, judge_job
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.labels import annotation_problems, label_problems
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.rules.updates import judge

NAME_LENGTH = 52
"""A Job's name has at most 63 characters, of which Kubernetes reserves 11 for the time of the run."""

MINUTE = 60
"""Seconds."""

SHORTEST_DEADLINE = 10
"""Seconds until another controller leads at the latest."""

CRON_NAME = Rule(
    "CRON-NAME",
    "a CronJob's name has at most 52 characters",
    "The names of its Jobs end with the time of the run.",
    "metadata: {name: a-name-of-more-than-fifty-two-characters-…}",
)
CRON_SCHEDULE = Rule(
    "CRON-SCHEDULE",
    "the schedule is a valid cron expression",
    "The controller could not tell when the Jobs are due.",
    "schedule: 0 20 * *",
)
CRON_SCHEDULE_ODD = stricter(
    "CRON-SCHEDULE-ODD",
    "every part of the schedule has an effect",
    "`*-5` runs at any time, and `@every 0s` each second; probably something else was meant.",
    "schedule: '*-5 * * * *'",
)
CRON_NEVER = warned(
    "CRON-NEVER",
    "the schedule is due at some time",
    "No Job would ever be created.",
    "schedule: 0 0 30 2 *",
)
CRON_TZ = Rule(
    "CRON-TZ",
    "the schedule does not name a time zone",
    "There is a field for it, spec.timeZone; the two could contradict each other.",
    "schedule: TZ=UTC 0 20 * * *",
)
CRON_ZONE = Rule(
    "CRON-ZONE",
    "the time zone exists",
    "The controller could not tell when the Jobs are due.",
    "timeZone: Amerrica/New_York",
)
CRON_SHORT = warned(
    "CRON-SHORT",
    "Jobs are made at most once a minute",
    "Names of Jobs have the minute of the run, so in Volcano runs within the same minute are lost; Pumice names such Jobs by the second.",
    "schedule: '@every 20s'",
)
CRON_DEADLINE = warned(
    "CRON-DEADLINE",
    "a run may begin ten seconds late or more",
    "While the controller restarts or another one takes over, runs are due and cannot begin; with a short deadline they are missed.",
    "startingDeadlineSeconds: 0",
)
CRON_LABELS = stricter(
    "CRON-LABELS",
    "labels and annotations of the Jobs are valid",
    "The API server would refuse every Job.",
    "jobTemplate: {metadata: {labels: {team: a b}}}",
)
CRON_ANNOTATION = stricter(
    "CRON-ANNOTATION",
    "annotations that switch something on are true or false",
    "Any other value has no effect; probably something was meant.",
    "metadata: {annotations: {pumice.dev/replace-when-gone: 'yes'}}",
)
SWITCHES = (keys.ONCE_PER_LOCAL_DAY, keys.REPLACE_WHEN_GONE)


def _name_problem(name: str) -> str | None:
    if len(name) > NAME_LENGTH:
        return f"cronJob name must be no more than {NAME_LENGTH} characters, found {len(name)}"
    problem = qualified_name_problem(name)
    return f"invalid cronJob name: {problem}" if problem else None


def _name(case: Case, cron_job: CronJob) -> None:
    name = expected_name(cron_job.metadata)
    if problem := _name_problem(name):
        reason: Reason | None = "FieldValueTooLong" if len(name) > NAME_LENGTH else None
        case.report(CRON_NAME, "metadata.name", problem, reason)


def _schedule(case: Case, cron_job: CronJob) -> None:
    text, path = cron_job.spec.schedule, "spec.schedule"
    if not text:
        message = 'schedule is required, but got empty; write for example "*/5 * * * *" or "@daily"'
        case.report(CRON_SCHEDULE, path, message, "FieldValueRequired")
    elif "TZ" in text:
        message = f'schedule should not contain TZ or CRON_TZ, found "{text}"; use spec.timeZone'
        case.report(CRON_TZ, path, message)
    else:
        try:
            schedule = parse_schedule(text)
        except ScheduleError as error:
            message = f"schedule is not a valid cron expression: {error}"
            case.report(CRON_SCHEDULE, path, message)
            return
        for ignored_part in schedule.ignored_parts:
            case.report(CRON_SCHEDULE_ODD, path, ignored_part)
        often = isinstance(schedule, Interval) and schedule.seconds < MINUTE
        if often and not schedule.ignored_parts:
            message = (
                f'creates several Jobs a minute, found "{text}"; Volcano creates only one of them'
            )
            case.report(CRON_SHORT, path, message)
        if not schedule.possible:
            case.report(CRON_NEVER, path, f'no date matches "{text}"')


def _time_zone(case: Case, cron_job: CronJob) -> None:
    zone = cron_job.spec.time_zone
    if zone is not None and (problem := time_zone_problem(zone)):
        case.report(CRON_ZONE, "spec.timeZone", problem)


def _deadline(case: Case, cron_job: CronJob) -> None:
    seconds = cron_job.spec.starting_deadline_seconds
    if seconds is not None and 0 <= seconds < SHORTEST_DEADLINE:
        path = "spec.startingDeadlineSeconds"
        message = f"should be at least {SHORTEST_DEADLINE}, found {seconds}: runs are missed when the controller restarts"
        case.report(CRON_DEADLINE, path, message)


def _switches(case: Case, cron_job: CronJob) -> None:
    annotations = cron_job.metadata.annotations or {}
    for key in SWITCHES:
        text = annotations.get(key)
        if text is not None and parse_bool(text) is None:
            message = f"must be true or false, found {quoted(text)}"
            case.report(CRON_ANNOTATION, f"metadata.annotations[{key}]", message)


def _labels(case: Case, cron_job: CronJob) -> None:
    meta, path = cron_job.spec.job_template.metadata, "spec.jobTemplate.metadata"
    for where, problem in label_problems(meta.labels):
        case.report(CRON_LABELS, f"{path}.labels{where}", problem)
    for where, problem in annotation_problems(meta.annotations):
        case.report(CRON_LABELS, f"{path}.annotations{where}", problem)


def _job(case: Case, cron_job: CronJob) -> None:
    """Check the Job of one run; the names of all runs have the same length."""
    template, name = cron_job.spec.job_template, expected_name(cron_job.metadata)
    if _name_problem(name):
        name = _SHORT  # problems that only follow from the bad name are not reported
    try:
        schedule = parse_schedule(cron_job.spec.schedule)
    except ScheduleError:
        schedule = None
    meta = ObjectMeta(
        name=job_name(name, schedule, _RUN),
        namespace=cron_job.metadata.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
    )
    judge_job(case, Job(metadata=meta, spec=template.spec), _TEMPLATE)


_TEMPLATE = TemplatePlace("spec.jobTemplate.spec", "spec.jobTemplate.metadata")
_SHORT = "x"
_RUN = 10_000_000 * 60 * 2
"""UNIX seconds of an example run. Its minutes have eight digits, as until 2160, and its seconds ten."""

CHECKS: tuple[Check[CronJob], ...] = (
    (CRON_NAME, _name),
    (CRON_SCHEDULE, _schedule),
    (CRON_ZONE, _time_zone),
    (CRON_DEADLINE, _deadline),
    (CRON_ANNOTATION, _switches),
    (CRON_LABELS, _labels),
    (CRON_LABELS, _job),
)


def validate(case: Case, cron_job: CronJob, old: CronJob | None) -> None:
    """Check a CronJob; every part of its spec may change."""
    # Two bad schedules may be reported in the same words; the new one is wrong nevertheless.
    same = old is not None and cron_job.spec.schedule == old.spec.schedule
    standing = CHECKS if same else [check for check in CHECKS if check[1] is not _schedule]
    judge(case, CHECKS, cron_job, old, standing=standing)
