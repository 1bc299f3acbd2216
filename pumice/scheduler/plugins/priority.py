"""priority: more important jobs and pods go first."""

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.tasks import Status
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView

__all__ = ["SPEC", "Priority", "is_starving"]


class Priority:
    """Orders by priority, the higher first."""

    def __init__(self, _arguments: Arguments) -> None:
        """Needs no arguments."""

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the orders."""
        register.task_order(lambda task: -task.priority)
        register.job_order(lambda job: -job.priority)
        register.job_starving(is_starving)


def is_starving(job: Job) -> bool:
    """Whether any pod of a job has no place yet."""
    return job.ready + job.counts[Status.PIPELINED] < len(job.tasks)


SPEC = PluginSpec(
    name="priority",
    summary="Jobs and pods of higher priority go first.",
    build=Priority,
)
