"""Jobs to which nothing happens but that their pods start and end, and the passes of the controller that they do not need.

A pass over such a Job whose pods all run writes that they do, and nothing else. Nothing reads that before the next pass, so it is made
before that one, with what it would have seen. If all pods have succeeded then, no pass need say that the Job is complete.
"""

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.meta import controller_of
from pumice.controller.jobs.phases import COMPLETED, PENDING, RUNNING, NextPhase, judge
from pumice.controller.jobs.status import Counts, facts
from pumice.traces.controlled_job import ControlledJob


def is_plain(job: Job) -> bool:
    """Whether nothing else happens to a Job, which runs when all its pods do and is complete when all have succeeded.

    Args:
        job: The Job, complete as `subject.read` returns it.
    """
    spec = job.spec
    if spec.policies or spec.plugins or spec.volumes or not job.replicas:
        return False
    if job.metadata.annotation(keys.RESTART_ON_SCALING):
        return False
    if any(task.policies or task.depends_on for task in job.tasks):
        return False
    runs = judge(NextPhase.START, PENDING, facts(job, _counts(job, "Running")))
    ends = judge(NextPhase.RUN, RUNNING, facts(job, _counts(job, "Succeeded")))
    return (runs.phase, ends.phase) == (RUNNING, COMPLETED)


def _counts(job: Job, phase: str) -> Counts:
    """The counts of a Job whose pods are all in one phase."""
    tasks = {task.name: {phase: task.size} for task in job.tasks if task.size}
    running = job.replicas if phase == "Running" else 0
    return Counts(0, running, job.replicas - running, 0, 0, 0, tasks)


def has_begun(job: ControlledJob) -> bool:
    """Whether all pods of a plain Job run, and no pass has seen that."""
    uid = job.raw["metadata"]["uid"]
    return (
        job.phase == PENDING
        and _are_all(job, "Running")
        and all(
            (owner := controller_of(pod.metadata)) is not None and owner.uid == uid
            for pod in job.pods.values()
        )
    )


def has_succeeded(job: ControlledJob) -> bool:
    """Whether all pods of a plain Job have succeeded."""
    return _are_all(job, "Succeeded")


def complete(job: ControlledJob) -> None:
    """Let a plain Job be complete."""
    job.raw = job.raw | {"status": {"state": {"phase": COMPLETED}}}


def _are_all(job: ControlledJob, phase: str) -> bool:
    pods = job.pods.values()
    return len(pods) == job.plain_pods and all(pod.status.phase == phase for pod in pods)
