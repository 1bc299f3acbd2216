"""Plugin `task-topology`: which tasks should share a node, and which should not.

The user's side of Volcano's task topology: the arguments become annotations of the Job, which its PodGroup inherits and
which the scheduler's plugin of the same name reads. Both spellings are written: Volcano's three annotations, and the
single one with JSON of `docs/design/bucket.md` of Volcano. Existing annotations of the Job are kept.
"""

import json

from pumice.api import keys
from pumice.api.fields import FieldError, Suggestions
from pumice.api.jobs import Job
from pumice.api.task_lists import TaskGroups, format_groups, read_groups, read_order
from pumice.plugins.arguments import Argument, ArgumentSpec, Values, ValueType
from pumice.plugins.interface import Findings, JobPlugin

_LISTS = ValueType("lists of tasks", read_groups)
_LIST = ValueType("list of tasks", read_order)

_ANNOTATIONS = {
    "affinity": keys.TOPOLOGY_AFFINITY,
    "anti-affinity": keys.TOPOLOGY_ANTI_AFFINITY,
    "task-order": keys.TOPOLOGY_TASK_ORDER,
}
_JSON_KEYS = {"affinity": "affinity", "anti-affinity": "antiAffinity", "task-order": "taskOrder"}


class TaskTopology(JobPlugin):
    """Affinity and anti-affinity between the tasks of a Job."""

    name = "task-topology"
    summary = "Tells the scheduler which tasks of the Job belong on one node and which apart."
    arguments = ArgumentSpec(
        Argument("affinity", _LISTS, (), "groups of tasks whose pods should share a node"),
        Argument("anti-affinity", _LISTS, (), "groups of tasks whose pods should not share a node"),
        Argument("task-order", _LIST, (), "tasks in the order in which they are placed"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Warn about tasks that the Job does not have, and about conflicting annotations."""
        return Findings(warnings=(*_unknown_tasks(job, values), *_kept_annotations(job, values)))

    def job_annotations(self, job: Job, values: Values) -> dict[str, str]:
        """The annotations, one for each argument and one with all of them as JSON; none for an ignored argument."""
        wishes = {name: groups for name, groups in _wishes(job, values).items() if groups}
        if not wishes:
            return {}
        annotations = {_ANNOTATIONS[name]: format_groups(groups) for name, groups in wishes.items()}
        arguments = {
            _JSON_KEYS[name]: groups[0] if name == "task-order" else groups
            for name, groups in wishes.items()
        }
        annotations[keys.TOPOLOGY_JSON] = json.dumps(arguments, separators=(",", ":"))
        return annotations


def _groups(name: str, values: Values) -> TaskGroups:
    value = values[name]
    if name == "task-order":
        return (value,) if value else ()
    groups: TaskGroups = value
    return groups


def _wishes(job: Job, values: Values) -> dict[str, TaskGroups]:
    """The groups of each argument; none for an argument that names an unknown task.

    Leaving out only the unknown task could reverse the meaning: `[ps, wroker]` would become `[ps]` and keep the
    parameter servers together.
    """
    wishes = {}
    for name in _ANNOTATIONS:
        groups = _groups(name, values)
        wishes[name] = () if _unknown(job, groups) else groups
    return wishes


def _unknown(job: Job, groups: TaskGroups) -> list[str]:
    known = {task.name for task in job.tasks}
    return list(dict.fromkeys(name for group in groups for name in group if name not in known))


def _unknown_tasks(job: Job, values: Values) -> list[FieldError]:
    tasks, suggestions = [task.name for task in job.tasks], Suggestions()
    return [
        FieldError(
            "spec.plugins.task-topology",
            f'--{name} names task "{unknown}", which the Job does not have'
            f"{suggestions.did_you_mean(unknown, tasks)}; the argument is ignored",
            "JOB-PLUGIN-ROLE",
        )
        for name in _ANNOTATIONS
        for unknown in _unknown(job, _groups(name, values))
    ]


def _kept_annotations(job: Job, values: Values) -> list[FieldError]:
    warnings = []
    for name, groups in _wishes(job, values).items():
        key = _ANNOTATIONS[name]
        present = job.metadata.annotation(key)
        if groups and present and present != format_groups(groups):
            text = f'is set to "{present}" and kept: --{name} of plugin task-topology has no effect'
            warnings.append(FieldError(f"metadata.annotations[{key}]", text, "JOB-PLUGIN-KEPT"))
    return warnings
