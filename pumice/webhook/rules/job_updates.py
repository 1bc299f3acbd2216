"""Updates of a Job: what may change once its pods may exist, and what may not.

Both sides are compared with their defaults written, so that a default which one side lacks is no
change.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.api.jobs import Job
from pumice.webhook.patches import applied
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.differences import Difference, differences, shown
from pumice.webhook.rules.drafts import DraftJob
from pumice.webhook.rules.job_defaults import job_defaults
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_IMMUTABLE", "RULES", "frozen_changes", "normal"]

Raw = dict[str, Any]

JOB_IMMUTABLE = Rule(
    "JOB-IMMUTABLE",
    "of a Job's spec only counts and priority change",
    "Pods that exist would not follow; make a new Job instead.",
    "queue: research, where the stored Job has queue: default",
    reason="FieldValueForbidden",
)
JOB_TASK_COUNT = Rule(
    "JOB-TASK-COUNT",
    "tasks are neither added nor removed",
    "Pods and their addresses are made of the tasks that were there at the start.",
    "one more item in tasks than the stored Job has",
    reason="FieldValueForbidden",
)

RULES = (JOB_IMMUTABLE, JOB_TASK_COUNT)

_MUTABLE = (
    "minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable may be changed"
)


def normal(case: Case, job: Job, old: Job | None = None) -> Job:
    """A Job with its defaults written, without asking who should have written them.

    Args:
        case: Settings and plugins, on which some defaults depend.
        job: The Job.
        old: The stored Job, whose scheduler counts where the Job names none.
    """
    raw: Raw = msgspec.to_builtins(job)
    if old is not None and not job.spec.scheduler_name and old.spec.scheduler_name:
        raw.setdefault("spec", {})["schedulerName"] = old.spec.scheduler_name
    writing = case.sibling()
    job_defaults(writing, msgspec.convert(raw, DraftJob))
    return msgspec.convert(applied(raw, writing.patch.operations), Job)


def frozen_changes(case: Case, old: Job, new: Job) -> list[str]:
    """Report every change of what must not change.

    Args:
        case: Where the changes are reported.
        old: The stored Job, defaults written.
        new: The Job as it would be, defaults written.

    Returns:
        The paths reported.

    Source: webhook specification, section 6; section 15, item 3.
    """
    before, after = _frozen(old), _frozen(new)
    paths = []
    old_tasks, new_tasks = before["tasks"], after["tasks"]
    if len(old_tasks) != len(new_tasks):
        paths.append("spec.tasks")
        case.report(JOB_TASK_COUNT, "spec.tasks", _other_tasks(old, new))
        before["tasks"] = after["tasks"] = []
    for change in differences(before, after, "spec"):
        paths.append(change.path)
        case.report(JOB_IMMUTABLE, change.path, _message(change))
    return paths


def _frozen(job: Job) -> Raw:
    """The part of a spec that must not change."""
    spec: Raw = msgspec.to_builtins(job.spec)
    for name in ("minAvailable", "priorityClassName"):
        spec.pop(name, None)
    for task in spec.setdefault("tasks", []):
        for name in ("replicas", "minAvailable"):
            task.pop(name, None)
        _topology(task.get("partitionPolicy"))
    for volume in spec.get("volumes", ()):
        if volume.get("volumeClaim"):
            volume.pop("volumeClaimName", None)  # the controller fills it in
    _topology(spec)
    return spec


def _topology(parent: Raw | None) -> None:
    """Write the default of a topology's mode, which the CRD defaults too."""
    topology = (parent or {}).get("networkTopology")
    if isinstance(topology, dict):
        topology.setdefault("mode", "hard")


def _other_tasks(old: Job, new: Job) -> str:
    before, after = ([task.name for task in job.tasks] for job in (old, new))
    parts = [
        *_listed("added", [name for name in after if name not in before]),
        *_listed("removed", [name for name in before if name not in after]),
    ]
    what = f" ({'; '.join(parts)})" if parts else ""
    return f"tasks must be neither added nor removed: {len(before)} before, {len(after)} now{what}"


def _listed(verb: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{verb}: {', '.join(names)}"


def _message(change: Difference) -> str:
    return f"must not change, found {shown(change.old)} → {shown(change.new)}; only {_MUTABLE}"
