"""CronJobs: when they create Jobs, and which ended Jobs are kept.

`plan` is a pure function of a CronJob, its Jobs and the moment: it decides whether a run is due and what to do about it.
`timetable` reads schedule and time zone, `runs` reads a CronJob, creates and selects its Jobs, and forecasts the next runs
for `pumice lint` and `pumice render`. `worker.cronjobs` is the shell.

No run is lost or repeated if the process is killed at any write. A Job is created before the run is recorded in `lastScheduleTime`, and its
name follows from the instant of the run. Every pass takes the latest instant of the Jobs that exist for the last run, and
writes it before it deletes a Job.
"""

from pumice.controller.cronjobs.plan import decide, plan_cron_job
from pumice.controller.cronjobs.runs import awaits_note, forecast, next_job, phase, read
from pumice.controller.cronjobs.timetable import TimetableError, read_timetable

__all__ = [
    "TimetableError",
    "awaits_note",
    "decide",
    "forecast",
    "next_job",
    "phase",
    "plan_cron_job",
    "read",
    "read_timetable",
]
