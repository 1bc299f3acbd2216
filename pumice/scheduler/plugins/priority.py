"""priority: more important jobs and pods go first.

A gang is ordered by the lower of two priorities: its PodGroup's and the lowest of its pods'. With `strict-upstream` only
the PodGroup's counts, as in Volcano.
"""

from pumice.scheduler.arguments import Argument, Arguments
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.tasks import Status
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView

__all__ = ["SPEC", "Priority", "is_starving"]

_STRICT = "strict-upstream"


class Priority:
    """Orders by priority, the higher first."""

    def __init__(self, arguments: Arguments) -> None:
        self._strict = arguments.flag(_STRICT)

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the orders."""
        register.task_order(lambda task: -task.priority)
        strict = self._strict
        register.job_order(lambda job: -(job.priority if strict else job.order_priority))
        register.job_starving(is_starving)


def is_starving(job: Job) -> bool:
    """Whether any pod of a job has no place yet."""
    return job.ready + job.counts[Status.PIPELINED] < len(job.tasks)


SPEC = PluginSpec(
    name="priority",
    summary="Jobs and pods of higher priority go first.",
    build=Priority,
    arguments=(
        Argument(
            _STRICT,
            False,
            "order a gang by the priority class of its PodGroup alone, whatever priority its pods have",
        ),
    ),
)
