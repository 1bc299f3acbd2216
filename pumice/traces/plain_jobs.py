"""Jobs to which nothing happens but that their pods start and end, and what the controller does for them.

It creates the PodGroup of such a Job, then its pods, which both follow from the Job alone. What it writes to the status meanwhile, nothing
reads before something else happens. So these passes are put off: they are made with what they would have seen when another one follows, and
if all pods succeed, none need be made to know that the Job is complete.
"""

from collections.abc import Mapping

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import ObjectMeta, Raw, controller_of
from pumice.controller.jobs import job_group
from pumice.controller.jobs.phases import COMPLETED, PENDING, RUNNING, NextPhase, judge
from pumice.controller.jobs.pods import build
from pumice.controller.jobs.situation import LIMITS
from pumice.controller.jobs.status import Counts, facts
from pumice.controller.jobs.subject import min_available
from pumice.controller.plan import CreateObject, Plan
from pumice.controller.podgroups import ADMITTED
from pumice.traces.controlled_job import ControlledJob, SeenByPass

_NEW, _HAS_GROUP, _HAS_PODS, _RUNS = range(4)
"""How many passes over a Job were put off."""


def is_plain(job: Job) -> bool:
    """Whether nothing else happens to a Job, which runs when all its pods do and is complete when all have succeeded.

    Args:
        job: The Job, complete as `subject.read` returns it.
    """
    spec = job.spec
    if spec.policies or spec.plugins or spec.volumes or not 0 < job.replicas < LIMITS.max_pods:
        return False
    if job.metadata.annotation(keys.RESTART_ON_SCALING) or min_available(job) < 1:
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


def put_off(job: ControlledJob, priorities: Mapping[str, int], now: float) -> Plan | None:
    """The plan of a pass that is put off, without the status; None if this one cannot be, because something else has happened.

    Args:
        job: A plain Job.
        priorities: PriorityClass values by name.
        now: The moment, UNIX seconds.
    """
    like = job.plain
    assert like is not None
    stage = len(job.seen)
    steps: list[CreateObject] = []
    if stage == _NEW and not job.pods and job.group is None:
        steps = [CreateObject(POD_GROUP, job_group.wanted(_named(job, like), priorities))]
    elif stage == _HAS_GROUP and not job.pods and _is_admitted(job):
        named = _named(job, like)
        steps = [
            CreateObject(POD, build(named, task, index, _as_it_is))
            for task in like.tasks
            for index in range(task.size)
        ]
    elif stage != _HAS_PODS or not (_are_all(job, like, "Running") and _are_own(job)):
        return None
    job.seen.append(SeenByPass(tuple(job.pods.values()), job.group, now))
    return Plan.of(steps)


def has_succeeded(job: ControlledJob) -> bool:
    """Whether all pods of a plain Job ran together, and all of them have succeeded."""
    like = job.plain
    return like is not None and len(job.seen) == _RUNS and _are_all(job, like, "Succeeded")


def complete(job: ControlledJob) -> None:
    """Let a plain Job be complete."""
    job.raw = job.raw | {"status": {"state": {"phase": COMPLETED}}}


def _named(job: ControlledJob, like: Job) -> Job:
    """The Job, decoded; its kind is."""
    return msgspec.structs.replace(like, metadata=msgspec.convert(job.raw["metadata"], ObjectMeta))


def _as_it_is(_task: Task, _index: int, pod: Raw) -> Raw:
    return pod


def _is_admitted(job: ControlledJob) -> bool:
    return job.group_status is not None and job.group_status.phase in ADMITTED


def _are_all(job: ControlledJob, like: Job, phase: str) -> bool:
    pods = job.pods.values()
    return len(pods) == like.replicas and all(pod.status.phase == phase for pod in pods)


def _are_own(job: ControlledJob) -> bool:
    """Whether the Job controls all pods with its name in a label."""
    uid = job.raw["metadata"]["uid"]
    owners = [controller_of(pod.metadata) for pod in job.pods.values()]
    return all(owner is not None and owner.uid == uid for owner in owners)
