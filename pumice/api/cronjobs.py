"""The CronJob of Volcano: Jobs that are created on a schedule.

Group `batch.volcano.sh/v1alpha1`, not to be confused with Kubernetes' own CronJob of group `batch`.
"""

from typing import Annotated

from pumice.api.jobs import JobSpec
from pumice.api.markers import Marker
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.schedules import Calendar, Interval

CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")
"""What the controller does if a Job still runs when the next one is due."""


class EmbeddedMeta(ApiStruct, frozen=True):
    """Metadata of an object that will be created.

    Attributes:
        name: Not used, names are generated.
        namespace: Not used, the namespace is that of the CronJob.
        labels: Labels of the object.
        annotations: Annotations of the object.
        finalizers: Finalizers of the object.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class JobTemplateSpec(ApiStruct, frozen=True):
    """Template of the Jobs that a CronJob creates.

    Attributes:
        metadata: Their labels and annotations.
        spec: What they ask for.
    """

    metadata: EmbeddedMeta = EmbeddedMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(ApiStruct, frozen=True):
    """Schedule of a CronJob and template of its Jobs.

    Attributes:
        schedule: Minutes, hours, days, months and weekdays, for example `*/5 * * * *`, or a
            descriptor such as `@daily` or `@every 90m`.
        time_zone: Time zone of the schedule, for example `Europe/Oslo`; that of the controller when
            left out.
        starting_deadline_seconds: Seconds after which a Job that was due is not created any more; values below 1 count
            as 1.
        concurrency_policy: What happens if a Job still runs when the next one is due: `Allow`
            lets both run, `Forbid` skips the next one, `Replace` deletes the one that runs.
        suspend: Whether to create no further Jobs until this is false again.
        job_template: Template of the Jobs that are created.
        successful_jobs_history_limit: Completed Jobs that are kept.
        failed_jobs_history_limit: Failed Jobs that are kept.
    """

    schedule: Annotated[str, Marker(required=True)] = ""
    time_zone: Annotated[str | None, Marker(nullable=True)] = None
    starting_deadline_seconds: Annotated[int | None, Marker(minimum=0, format="int64")] = None
    concurrency_policy: Annotated[str, Marker(enum=CONCURRENCY_POLICIES, default="Allow")] = ""
    suspend: Annotated[bool | None, Marker(default=False)] = None
    job_template: Annotated[JobTemplateSpec, Marker(required=True)] = JobTemplateSpec()
    successful_jobs_history_limit: Annotated[int | None, Marker(minimum=0, default=3)] = None
    failed_jobs_history_limit: Annotated[int | None, Marker(minimum=0, default=1)] = None


class ObjectReference(ApiStruct, frozen=True):
    """A reference to another object.

    Attributes:
        api_version: Its group and version.
        field_path: A part of it.
        kind: Its kind.
        name: Its name.
        namespace: Its namespace.
        resource_version: State of it that is meant.
        uid: Its UID.
    """

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class CronJobStatus(ApiStruct, frozen=True):
    """Status of a CronJob.

    Attributes:
        active: Jobs that run.
        last_schedule_time: When a Job was last due and made.
        last_successful_time: When a Job last completed.
    """

    active: Annotated[list[ObjectReference] | None, Marker(atomic=True)] = None
    last_schedule_time: Annotated[str | None, Marker(format="date-time")] = None
    last_successful_time: Annotated[str | None, Marker(format="date-time")] = None


class CronJob(ApiStruct, frozen=True):
    """Jobs that are created on a schedule.

    Attributes:
        spec: Schedule and template.
        status: Its observed state.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


def job_name(cron_job: str, schedule: Calendar | Interval | None, moment: float) -> str:
    """Name of the Job of a run, which follows from its instant, so that no run is created twice.

    It is `<cron job>-<minutes since 1970>`. Of intervals below a minute it is the seconds, since one minute has several runs.

    Args:
        cron_job: Name of the CronJob.
        schedule: Its schedule; None if that cannot be read.
        moment: UNIX seconds of the instant at which the run was due.
    """
    if isinstance(schedule, Interval) and schedule.seconds < 60:
        return f"{cron_job}-{int(moment)}"
    return f"{cron_job}-{int(moment) // 60}"
