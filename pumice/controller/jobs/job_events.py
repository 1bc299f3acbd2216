"""Events, derived from the present state.

Volcano raises an event when it sees a change, so events are lost while no controller runs. Here an event is a fact
about the present state: a pod *is* failed, a task *is* complete. It stays true until an action was taken, also across a
restart of the controller. It has the time since when it is true, so policies with a timeout need no timer.

Actions are visible, too: a restarted pod is gone or marked as removed by the controller, and an action on the whole Job
makes its version higher than that of the pods that caused it. `job_pods` shows which pods are gone without having been
removed by the controller.

A gang is broken if some pods run and the rest cannot be placed. The scheduler then sets the PodGroup to phase
`Unknown`, and policies may restart the Job. It also sets this phase for a
gang to which a stage was added (`dependsOn`). Only a gang that has lost pods counts as broken.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw, number_in, parse_time
from pumice.api.pods import Pod, PodCondition
from pumice.controller.jobs.job_pods import JobPods, version_of
from pumice.controller.jobs.lifetimes import container_statuses, end_of, started
from pumice.controller.jobs.phases import SYNC_JOB
from pumice.controller.jobs.pods import partition_of
from pumice.controller.jobs.policies import (
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    TASK_COMPLETED,
    Policies,
    PolicyRequest,
    concerns,
)
from pumice.controller.jobs.subject import DEFAULT_MAX_RETRY
from pumice.controller.podgroups import BROKEN, phase_of


def job_events(
    job: Job,
    pods: Sequence[Pod],
    job_pods: JobPods,
    group: Raw | None,
    *,
    without: Collection[str] = (),
) -> Iterator[PolicyRequest]:
    """Facts about a Job that may require an action, pods first.

    Args:
        job: The Job.
        pods: The pods that it wants, in order.
        job_pods: Which pods it has had.
        group: Its PodGroup, when there is one.
        without: `PodPending` and `TaskCompleted`, if no policy concerns them: they are costly for many pods.
    """
    idle = {"Running", "Succeeded"} | ({"Pending", ""} if POD_PENDING in without else set())
    waiting, policies = job_pods.waiting, Policies(job)
    for pod in pods:
        meta, phase = pod.metadata, pod.status.phase
        if phase in idle and meta.deletion_timestamp is None and meta.name not in waiting:
            continue
        if request := _of_pod(pod, job_pods):
            yield request
        since = waiting.get(meta.name) if waiting else None
        if since is not None and (phase in ("Pending", "") or job_pods.waits(meta.name)):
            detail = "was removed and does not run again"
            yield _awaited(_request(POD_EVICTED, pod, since, detail), policies)
    yield from evicted(job, job_pods)
    by_task = _by_task(job, pods)
    lost = job_pods.lost_by_task
    for task in job.tasks:
        if TASK_COMPLETED not in without:
            yield from _completed(task, by_task[task.name], lost.get(task.name, 0), job_pods)
        yield from _of_containers(task, by_task[task.name])
    if group is not None and _is_broken(group, job, by_task):
        yield _of_group(group)


def evicted(job: Job, job_pods: JobPods) -> Iterator[PolicyRequest]:
    """An event for each evicted pod of a Job that no longer exists, and for each restarted one for which a policy waits.

    A pod may fail and be removed before a pass sees it, for example when its node is deleted. If no policy concerns its
    eviction, its failure counts.
    """
    tasks, policies = {task.name: task for task in job.tasks}, Policies(job)
    for name in (*job_pods.missing, *job_pods.awaited):
        task, index = job_pods.names.key(name) or ("", 0)
        since = job_pods.waiting.get(name)
        does = "was removed" if since is None else "was removed and does not run again"
        eviction = PolicyRequest(
            event=POD_EVICTED,
            task=task,
            pod=name,
            partition=partition_of(tasks[task], index),
            version=job_pods.version,
            since=since,
            gone=True,
            detail=f"pod {name} {does}",
        )
        failed = job_pods.failed.get(name)
        if failed is not None and policies.choose(eviction).action == SYNC_JOB:
            yield msgspec.structs.replace(_failure(failed), gone=True)
        else:
            yield eviction if since is None else _awaited(eviction, policies)


def _awaited(eviction: PolicyRequest, policies: Policies) -> PolicyRequest:
    """The event of a pod for which a policy has a timeout: if none concerns its eviction, its failure was noted.

    A policy about failures without a timeout is not the one: that would have acted. So it was one about an exit code.
    """
    if policies.choose(eviction).action != SYNC_JOB:
        return eviction
    failure = msgspec.structs.replace(eviction, event=POD_FAILED)
    if policies.choose(failure).delay:
        return failure
    by_code = msgspec.structs.replace(failure, exit_codes=policies.awaited(eviction.task))
    return by_code if policies.choose(by_code).delay else eviction


def completed(job: Job, pods: Sequence[Pod], job_pods: JobPods, now: float) -> dict[str, float]:
    """Complete tasks for which there is a policy, and since when they are complete."""
    if not concerns(job, TASK_COMPLETED):
        return {}
    by_task, lost, policies = _by_task(job, pods), job_pods.lost_by_task, Policies(job)
    return {
        task.name: now if request.since is None else request.since
        for task in job.tasks
        for request in _completed(task, by_task[task.name], lost.get(task.name, 0), job_pods)
        if policies.choose(request).action != SYNC_JOB
    }


def _of_pod(pod: Pod, job_pods: JobPods) -> PolicyRequest | None:
    meta = pod.metadata
    if meta.annotation(keys.OUT_OF_SYNC):
        return None
    if meta.deletion_timestamp is not None:
        if job_pods.has_succeeded(pod):
            return None  # its work is done, and it is not made again
        return _request(POD_EVICTED, pod, parse_time(meta.deletion_timestamp), "was removed")
    if pod.status.phase == "Failed":
        return _failure(pod)
    if pod.status.phase in ("Pending", ""):
        return _request(
            POD_PENDING,
            pod,
            parse_time(meta.creation_timestamp),
            "did not start within the policy's timeout",
        )
    return None


def _failure(pod: Pod) -> PolicyRequest:
    end = end_of(pod)
    codes = end.exit_codes
    detail = f"failed with exit code {codes[0]}" if codes else "failed"
    return _request(POD_FAILED, pod, end.moment, detail, codes, end.ran)


def _by_task(job: Job, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {task.name: [] for task in job.tasks}
    for pod in pods:
        if (its := found.get(pod.metadata.annotation(keys.TASK_SPEC))) is not None:
            its.append(pod)
    return found


def _completed(
    task: Task, pods: Sequence[Pod], lost: int, job_pods: JobPods
) -> Iterator[PolicyRequest]:
    """The event that a task is complete; once that is recorded, its pods need not exist any more."""
    succeeded = [pod for pod in _living(pods) if pod.status.phase == "Succeeded"]
    noted = job_pods.completed.get(task.name)
    known = succeeded or (lost and noted is not None)
    if known and len(succeeded) + lost >= task.size:
        yield PolicyRequest(
            event=TASK_COMPLETED,
            task=task.name,
            # The last of them completes the task.
            version=max(map(version_of, succeeded)) if noted is None else job_pods.version,
            since=max(filter(None, (end_of(pod).moment for pod in succeeded)), default=None)
            if noted is None
            else noted,
            detail=f"task {task.name} is complete",
        )


def _of_containers(task: Task, pods: Sequence[Pod]) -> Iterator[PolicyRequest]:
    limit = DEFAULT_MAX_RETRY if not task.max_retry else task.max_retry
    active = [pod for pod in _living(pods) if pod.status.phase in ("Running", "Pending")]
    restarts = sum(status.restart_count for pod in active for status in container_statuses(pod))
    if active and 0 <= limit <= restarts:
        yield PolicyRequest(
            event="TaskFailed",
            task=task.name,
            version=max(version_of(pod) for pod in active),
            since=max(filter(None, map(started, active)), default=None),
            detail=f"containers of task {task.name} were restarted {restarts} times,"
            f" maxRetry is {limit}",
        )


def _living(pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None]


def _of_group(group: Raw) -> PolicyRequest:
    annotations = group["metadata"].get("annotations") or {}
    return PolicyRequest(
        event=BROKEN,
        version=number_in(annotations.get(keys.JOB_VERSION)),
        since=_reported_at(group),
        detail="part of the gang runs and the rest cannot be placed",
    )


def _request(
    event: str,
    pod: Pod,
    since: float | None,
    detail: str,
    exit_codes: tuple[int, ...] = (),
    lasted: float | None = None,
) -> PolicyRequest:
    meta = pod.metadata
    return PolicyRequest(
        event=event,
        task=(meta.annotations or {}).get(keys.TASK_SPEC, ""),
        pod=meta.name,
        partition=(meta.labels or {}).get(keys.PARTITION_ID, ""),
        version=version_of(pod),
        exit_codes=exit_codes,
        since=since,
        ran=lasted,
        detail=f"pod {meta.name} {detail}",
    )


def _is_broken(group: Raw, job: Job, by_task: Mapping[str, Sequence[Pod]]) -> bool:
    """Whether a Job's gang has lost pods and the scheduler finds no room for others."""
    return (
        phase_of(group) == BROKEN
        and not _is_outdated(group, list(chain.from_iterable(by_task.values())))
        and not _only_begins(job, by_task)
    )


def _reported_at(group: Raw) -> float | None:
    """When the scheduler last changed its report about a gang, in UNIX seconds."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    times = [parse_time(each.get("lastTransitionTime")) for each in conditions]
    return max(filter(None, times), default=None)


def _only_begins(job: Job, by_task: Mapping[str, Sequence[Pod]]) -> bool:
    """True if the gang lacks only tasks that were just allowed to start (`dependsOn`).

    They wait for free resources. No pod was lost, so running pods are left alone.
    """
    placed = {name: sum(map(_is_placed, pods)) for name, pods in by_task.items()}
    short = [task for task in job.tasks if placed[task.name] < task.minimum]
    return bool(short) and not any(placed[task.name] or not task.depends_on for task in short)


def _is_outdated(group: Raw, pods: Sequence[Pod]) -> bool:
    """True if the scheduler has placed pods since it set phase `Unknown` and has not updated the phase.

    Pods of a gang are bound one after the other, and its phase is written after them. Times have whole seconds, so the
    group's counters show what was placed within the same second.
    """
    since = _reported_at(group)
    placed_at = [parse_time(each.last_transition_time) for each in map(_placing, pods) if each]
    last = max(filter(None, placed_at), default=None)
    if since is None or last is None or last != since:
        return since is not None and last is not None and last > since
    status = group["status"]
    counted = sum(status.get(counter) or 0 for counter in ("running", "succeeded", "failed"))
    return sum(map(_is_placed, pods)) > counted


def _placing(pod: Pod) -> PodCondition | None:
    """The condition about a placed pod."""
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "True":
            return each
    return None


def _is_placed(pod: Pod) -> bool:
    has_been = bool(pod.spec.node_name) or pod.status.phase not in ("Pending", "")
    return has_been and pod.metadata.deletion_timestamp is None
