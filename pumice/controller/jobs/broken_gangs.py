"""Broken gangs: some pods run, and the rest cannot be placed.

The scheduler then sets the PodGroup to phase `Unknown`, and policies may restart the Job. It also sets this phase for a
gang to which a stage was added (`dependsOn`). Only a gang that has lost pods counts as broken.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from pumice.api.jobs import Job
from pumice.api.meta import Raw, parse_time
from pumice.api.pods import Pod, PodCondition
from pumice.controller.podgroups import phase_of

__all__ = ["is_broken", "reported_at"]

_UNKNOWN = "Unknown"


def is_broken(group: Raw, job: Job, by_task: Mapping[str, Sequence[Pod]]) -> bool:
    """Whether a Job's gang has lost pods and the scheduler finds no room for others.

    Args:
        group: The PodGroup.
        job: The Job.
        by_task: Its pods by task.
    """
    return (
        phase_of(group) == _UNKNOWN
        and not _is_outdated(group, list(chain.from_iterable(by_task.values())))
        and not _only_begins(job, by_task)
    )


def reported_at(group: Raw) -> float | None:
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
    since = reported_at(group)
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
