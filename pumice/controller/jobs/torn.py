"""Torn gangs: a part runs, and the rest cannot be placed.

The scheduler says so by the phase `Unknown` of the PodGroup, which policies may answer with a restart. It
says it of any gang that runs in part, also of one to which a stage was added (`dependsOn`), and it says it
until it has written otherwise. Only a gang that has lost something is torn.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from pumice.api.jobs import Job
from pumice.api.meta import Raw, parse_time
from pumice.api.pods import Pod, PodCondition
from pumice.controller.podgroups import phase_of

__all__ = ["is_torn", "told_at"]

_UNKNOWN = "Unknown"


def is_torn(group: Raw, job: Job, by_task: Mapping[str, Sequence[Pod]]) -> bool:
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


def told_at(group: Raw) -> float | None:
    """When the scheduler last changed what it says of a gang, UNIX seconds."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    times = [parse_time(each.get("lastTransitionTime")) for each in conditions]
    return max(filter(None, times), default=None)


def _only_begins(job: Job, by_task: Mapping[str, Sequence[Pod]]) -> bool:
    """Whether all that a gang lacks are tasks whose turn has just come (`dependsOn`).

    They have been waiting, and now they wait for room; nothing was lost, so what runs is left alone.
    """
    placed = {name: sum(map(_is_placed, pods)) for name, pods in by_task.items()}
    short = [task for task in job.tasks if placed[task.name] < task.minimum]
    return bool(short) and not any(placed[task.name] or not task.depends_on for task in short)


def _is_outdated(group: Raw, pods: Sequence[Pod]) -> bool:
    """Whether the scheduler has placed pods since it called the gang torn, and has not said so yet.

    Pods of a gang are bound one after the other, and its phase is written after them. Times have whole
    seconds only, so what was placed within the same one is told by the group's counters.
    """
    since = told_at(group)
    placed_at = [parse_time(each.last_transition_time) for each in map(_placing, pods) if each]
    last = max(filter(None, placed_at), default=None)
    if since is None or last is None or last != since:
        return since is not None and last is not None and last > since
    status = group["status"]
    counted = sum(status.get(counter) or 0 for counter in ("running", "succeeded", "failed"))
    return sum(map(_is_placed, pods)) > counted


def _placing(pod: Pod) -> PodCondition | None:
    """The condition that says that a pod was placed."""
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "True":
            return each
    return None


def _is_placed(pod: Pod) -> bool:
    has_been = bool(pod.spec.node_name) or pod.status.phase not in ("Pending", "")
    return has_been and pod.metadata.deletion_timestamp is None
