"""priority: more important jobs and pods go first.

A gang is ordered by the lower of two priorities: its PodGroup's and the lowest of its pods'. With `strict-upstream` only
the PodGroup's counts, as in Volcano.
"""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PIPELINED
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView

_STRICT = "strict-upstream"


class Priority(LastingPlugin):
    """Orders by priority, the higher first."""

    def __init__(self, arguments: Arguments) -> None:
        self._of = attrgetter("priority" if arguments.flag(_STRICT) else "order_priority")

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the orders."""
        register.task_order(lambda task: -task.priority)
        register.job_order(lambda job: -self._of(job))
        register.job_starving(is_starving)
        register.preemptable(
            self._less_important,
            by=lambda preemptor: (self._of(preemptor.job), preemptor.task.priority),
            lasts=True,
            spares=self._none_less_important,
        )

    def _less_important(self, preemptor: Preemptor, candidates: Candidates) -> Bools:
        """Pods of gangs with a lower priority, and pods of the same gang that have a lower one themselves."""
        own = preemptor.job
        less: Bools = candidates.of_jobs(self._of) < self._of(own)
        if own in candidates.jobs:
            inside = candidates.job == candidates.jobs.index(own)
            below = candidates.of_tasks(lambda task: task.priority) < preemptor.task.priority
            less = np.where(inside, below, less)
        return less

    def _none_less_important(self, preemptor: Preemptor, gangs: Sequence[JobInfo]) -> bool:
        own, least = preemptor.job, preemptor.task.priority
        if own in gangs and any(task.priority < least for task in own.tasks.values()):
            return False
        return bool(min(map(self._of, gangs)) >= self._of(own))


def is_starving(job: JobInfo) -> bool:
    """Whether any pod of a job has no place yet."""
    return job.ready + job.counts[PIPELINED] < len(job.tasks)


SPEC = PluginSpec(
    name="priority",
    summary="Jobs and pods of higher priority go first.",
    build=Priority,
    arguments=(
        SchedulerArgument(
            _STRICT,
            False,
            "Order a gang by the priority class of its PodGroup alone, whatever priority its pods have.",
        ),
    ),
)
