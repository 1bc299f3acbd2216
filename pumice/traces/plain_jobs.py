"""Jobs to which nothing happens but that their pods start and end, and what the controller does for them.

It creates the PodGroup of such a Job, then its pods, which both follow from the Job alone. What it writes to the status meanwhile, nothing
reads before something else happens. So these passes are put off: they are made with what they would have seen when another one follows, and
if all pods end, none need be made to know how the Job ends.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api import keys
from pumice.api.failures import grouped, with_failures
from pumice.api.jobs import Job, Task
from pumice.api.messages import shortened
from pumice.api.meta import ObjectMeta, Raw, controller_of, format_time
from pumice.api.names import pod_group_name, pod_name
from pumice.api.pods import Pod
from pumice.controller.jobs import job_group
from pumice.controller.jobs.phases import COMPLETED, PENDING, RUNNING, SOFT, NextPhase, judge
from pumice.controller.jobs.pods import build
from pumice.controller.jobs.situation import LIMITS
from pumice.controller.jobs.status import Counts, count, facts
from pumice.controller.jobs.subject import min_available
from pumice.controller.podgroups import ADMITTED
from pumice.traces.controlled_job import ControlledJob, PlainKind, SeenByPass
from pumice.traces.plan_execution import ControllerChanges, PlanExecution

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


def put_off(
    job: ControlledJob,
    kind: PlainKind,
    execution: PlanExecution,
    priorities: Mapping[str, int],
    changes: ControllerChanges,
    now: float,
) -> bool:
    """Do what a pass would do that is put off, but for the status; False if this one cannot be, because something else has happened.

    Args:
        job: A plain Job.
        kind: Its kind.
        execution: Creates objects.
        priorities: PriorityClass values by name.
        changes: Gets what is created.
        now: The moment, UNIX seconds.
    """
    stage = len(job.seen)
    seen = SeenByPass(tuple(job.pods.values()), job.group, job.group_status, now)
    if stage == _NEW and not job.pods and job.group is None:
        if kind.group is None:
            kind.group = job_group.wanted(_named(job, kind), priorities)
        execution.create_group(group_of(kind.group, job.raw["metadata"]), job, changes)
    elif stage == _HAS_GROUP and not job.pods and _is_admitted(job):
        for task in kind.job.tasks:
            _create_pods(task, job, kind, execution, changes, now)
    elif stage != _HAS_PODS or not (_all_run(job, kind) and _are_own(job)):
        return False
    job.seen.append(seen)
    job.read_status = job.group_status
    return True


def group_of(group: Raw, job: Raw) -> Raw:
    """The PodGroup of a Job with this metadata, from that of another Job of its kind."""
    meta, named = group["metadata"], {"name": job["name"], "uid": job["uid"]}
    owners = [each | named for each in meta["ownerReferences"]]
    name = pod_group_name(job["name"], job["uid"])
    return group | {"metadata": meta | {"name": name, "ownerReferences": owners}}


def _create_pods(
    task: Task,
    job: ControlledJob,
    kind: PlainKind,
    execution: PlanExecution,
    changes: ControllerChanges,
    now: float,
) -> None:
    """Create the pods of a task; only their partition, if they have one, does not follow from one of them, their Job and their index."""
    if task.partition_policy is not None:
        named = _named(job, kind)
        for index in range(task.size):
            execution.create_pod(build(named, task, index, _as_it_is), job, changes, now)
    elif task.size:
        known = kind.pods.get(task.name)
        if known is None:
            first = execution.created(build(_named(job, kind), task, 0, _as_it_is), job, now)
        else:
            first = first_of(known, job.raw["metadata"], task, now)
        kind.pods[task.name] = first
        execution.add_pod(first, job, changes)
        for index in range(1, task.size):
            execution.add_pod(replica(first, job.raw["metadata"], task, index), job, changes)


def first_of(pod: Pod, job: Raw, task: Task, now: float) -> Pod:
    """The first pod of a task without partitions of a Job with this metadata, from that of another Job of its kind."""
    name, uid, of_job = job["name"], job["uid"], {keys.JOB_NAME: job["name"]}
    of_pod = {keys.GROUP_NAME: pod_group_name(name, uid), keys.TEMPLATE_UID: f"{name}-{task.name}"}
    owners = [replace(each, name=name, uid=uid) for each in pod.metadata.owner_references or ()]
    meta = {"creation_timestamp": format_time(now), "owner_references": owners}
    return _renamed(pod, pod_name(name, task.name, 0), of_job, of_job | of_pod, **meta)


def replica(first: Pod, job: Raw, task: Task, index: int) -> Pod:
    """The pod of another replica than the first one of a task without partitions of a Job with this metadata."""
    number = {keys.TASK_INDEX: str(index)}
    return _renamed(first, pod_name(job["name"], task.name, index), number, number)


def _renamed(pod: Pod, name: str, labels: Raw, annotations: Raw, **fields: Any) -> Pod:
    meta = pod.metadata
    labels, annotations = (meta.labels or {}) | labels, (meta.annotations or {}) | annotations
    uid = f"{meta.namespace}-{name}"
    meta = replace(meta, name=name, uid=uid, labels=labels, annotations=annotations, **fields)
    return replace(pod, metadata=meta)


def end(job: ControlledJob) -> bool:
    """Let a plain Job end all of whose pods ran together and have ended; False if it does not end so."""
    kind, pods = job.plain, list(job.pods.values())
    if kind is None or len(job.seen) != _RUNS or len(pods) != kind.job.replicas:
        return False
    if all(pod.status.phase == "Succeeded" for pod in pods):
        state = {"phase": COMPLETED}
    elif all(pod.status.phase in SOFT for pod in pods):
        verdict = judge(NextPhase.RUN, RUNNING, facts(kind.job, count(pods)))
        message = with_failures(verdict.message, grouped(pods))
        state = {"phase": verdict.phase, "message": shortened(message)}
    else:
        return False
    job.raw = job.raw | {"status": {"state": state}}
    return True


def _named(job: ControlledJob, kind: PlainKind) -> Job:
    """The Job, decoded; its kind is."""
    return replace(kind.job, metadata=msgspec.convert(job.raw["metadata"], ObjectMeta))


def _as_it_is(_task: Task, _index: int, pod: Raw) -> Raw:
    return pod


def _is_admitted(job: ControlledJob) -> bool:
    return job.group_status is not None and job.group_status.phase in ADMITTED


def _all_run(job: ControlledJob, kind: PlainKind) -> bool:
    pods = job.pods.values()
    return len(pods) == kind.job.replicas and all(pod.status.phase == "Running" for pod in pods)


def _are_own(job: ControlledJob) -> bool:
    """Whether the Job controls all pods with its name in a label."""
    uid = job.raw["metadata"]["uid"]
    owners = [controller_of(pod.metadata) for pod in job.pods.values()]
    return all(owner is not None and owner.uid == uid for owner in owners)
