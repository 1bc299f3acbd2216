"""Updates of a Job: fields that may change after its creation, and fields that may not.

Both Jobs are compared after defaulting, so that a missing default is not a change. Counts may change: `minAvailable`, a
task's `replicas` and `minAvailable`, and with them the number of its partitions, which Volcano pins so that a divided
task cannot be scaled. The size of a partition must not change, since pods have the number of their partition.
"""

import itertools

import msgspec

from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.webhook.patches import applied
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.differences import differences, shown_change
from pumice.webhook.rules.drafts import draft_of
from pumice.webhook.rules.jobs.defaults import job_defaults
from pumice.webhook.rules.rule import Rule

JOB_IMMUTABLE = Rule(
    "JOB-IMMUTABLE",
    "of a Job's spec only counts and priority change",
    "Pods that exist would not change; create a new Job instead.",
    "queue: research, where the stored Job has queue: default",
    reason="FieldValueForbidden",
)
JOB_TASK_COUNT = Rule(
    "JOB-TASK-COUNT",
    "tasks are neither added nor removed",
    "Pods and their addresses are created from the tasks that the Job had at first.",
    "one more item in tasks than the stored Job has",
    reason="FieldValueForbidden",
)

_TASKS = "spec.tasks"
_FROZEN = "job updates may not change fields other than priorityClassName and counts"
_COUNTS = (
    "counts are minAvailable, and of a task replicas, minAvailable, totalPartitions and minPartitions; "
    "to change anything else, create a new Job"
)


def normal(case: Case, job: Job, old: Job | None = None) -> Job:
    """The Job with all defaults applied; if it names no scheduler, it keeps the one of the stored Job.

    The case gets the defaults and warnings about them.
    """
    raw: Raw = msgspec.to_builtins(job)
    if old is not None and not job.spec.scheduler_name and old.spec.scheduler_name:
        raw.setdefault("spec", {})["schedulerName"] = old.spec.scheduler_name
    job_defaults(case, draft_of(raw))
    return msgspec.convert(applied(raw, case.patch.operations), Job)


def frozen_changes(case: Case, old: Job, new: Job) -> list[str]:
    """Report every change of an immutable field; returns the paths for which the update is refused.

    Both Jobs are defaulted.
    """
    before, after = _frozen(old), _frozen(new)
    old_tasks, new_tasks = before.pop("tasks"), after.pop("tasks")
    paths, pairs = _paired(case, old_tasks, new_tasks)
    others = list(differences(before, after, "spec"))
    changes = [each for each in others if each.path < _TASKS]
    for index, stored, task in pairs:
        changes.extend(differences(stored, task, f"{_TASKS}[{index}]"))
    changes.extend(each for each in others if each.path > _TASKS)
    for number, change in enumerate(changes, start=1):
        message = f"{_FROZEN}, found {shown_change(change.old, change.new)}"
        if number == len(changes):
            message += f"; {_COUNTS}"
        if case.report(JOB_IMMUTABLE, change.path, message):
            paths.append(change.path)
    return paths


def _paired(
    case: Case, old_tasks: list[Raw], new_tasks: list[Raw]
) -> tuple[list[str], list[tuple[int, Raw, Raw]]]:
    """Tasks with the stored tasks to which they are compared.

    Tasks are matched by position, or by name if tasks were added, removed or reordered, which is
    reported; an added task is not compared.
    """
    before, after = ([task["name"] for task in tasks] for tasks in (old_tasks, new_tasks))
    refused = False
    if len(before) != len(after):
        refused = case.report(JOB_TASK_COUNT, _TASKS, _other_tasks(before, after))
    elif before != after and sorted(before) == sorted(after):
        message = (
            f"{_FROZEN}; the order of tasks changed, found {', '.join(before)} → {', '.join(after)}"
        )
        refused = case.report(JOB_IMMUTABLE, _TASKS, message)
    else:
        return [], list(zip(range(len(after)), old_tasks, new_tasks, strict=True))
    paths = _moved(before, after) if refused else []
    known = dict(zip(before, old_tasks, strict=True))
    pairs = [
        (index, known[name], task)
        for index, (name, task) in enumerate(zip(after, new_tasks, strict=True))
        if name in known
    ]
    return paths, pairs


def _moved(before: list[str], after: list[str]) -> list[str]:
    """Paths of tasks whose position changed; problems of the others are still reported."""
    if not after:
        return [_TASKS]
    return [
        f"{_TASKS}[{index}]"
        for index, (name, stood) in enumerate(itertools.zip_longest(after, before[: len(after)]))
        if name != stood
    ]


def _frozen(job: Job) -> Raw:
    spec: Raw = msgspec.to_builtins(job.spec)
    _as_compared(spec, "minAvailable", "priorityClassName")
    for task in spec.setdefault("tasks", []):
        _as_compared(task, "replicas", "minAvailable")
        _as_compared(task.get("partitionPolicy") or {}, "totalPartitions", "minPartitions")
    for volume in spec.get("volumes", ()):
        claim = volume.get("volumeClaim") or {}
        # Defaulting drops fields that are null.
        if any(each is not None for each in claim.values()):
            _as_compared(volume, "volumeClaimName")  # the controller fills it in
    return spec


def _as_compared(found: Raw, *mutable: str) -> None:
    """Drop fields that may change, and write the default of a topology's mode, as the CRD does."""
    for name in mutable:
        found.pop(name, None)
    if isinstance(topology := found.get("networkTopology"), dict):
        topology.setdefault("mode", "hard")


def _other_tasks(before: list[str], after: list[str]) -> str:
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    named = (("added", added), ("removed", removed))
    parts = "; ".join(f"{verb}: {', '.join(names)}" for verb, names in named if names)
    what = f" ({parts})" if parts else ""
    return f"job updates may not add or remove tasks, found {len(before)} before, {len(after)} now{what}"
