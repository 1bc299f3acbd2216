"""Plugin `tensorflow`: each container finds its place in the cluster in `TF_CONFIG`.

Source: job specification, section 6. The JSON is Volcano's to the byte: compact, roles in the order
ps, worker, chief, evaluator, absent roles left out. A `TF_CONFIG` that the template sets is kept.
"""

import json

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job, Task
from pumice.plugins.addresses import address, fixed_hostname, is_small, joined_size
from pumice.plugins.arguments import PORT, TEXT, Argument, ArgumentSpec, Values
from pumice.plugins.edits import EnvVar, PodEdits
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.kept import kept_warnings
from pumice.plugins.variables import VARIABLE_LIMIT

__all__ = ["VARIABLE", "VARIABLE_LIMIT", "TensorFlow"]

VARIABLE = "TF_CONFIG"

# Volcano looks through the roles in one order for the lists and in another for a pod's own role;
# it shows when two roles are given the same task.
_CLUSTER_ORDER = ("ps", "worker", "chief", "evaluator")
_ROLE_ORDER = ("chief", "worker", "ps", "evaluator")


class TensorFlow(JobPlugin):
    """Tasks named ps, worker, chief and evaluator become the roles of a TensorFlow cluster."""

    name = "tensorflow"
    summary = "Describes the TensorFlow cluster to every container."
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument("ps", TEXT, "ps", "task of the parameter servers"),
        Argument("worker", TEXT, "worker", "task of the workers"),
        Argument("chief", TEXT, "chief", "task of the chief"),
        Argument("evaluator", TEXT, "evaluator", "task of the evaluator"),
        Argument("port", PORT, 2222, "port on which the pods talk to each other"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Warn where roles are not played or a user's own variable stands, refuse what no program can read."""
        if not _is_distributed(job):
            return Findings()
        kept = kept_warnings(job, values, (VARIABLE,))
        warnings = [*_role_warnings(job, values), *kept]
        too_large = _size_problems(job, values)
        if kept or values.strict_upstream:
            # Containers with a variable of their own start, and Volcano admits the others as well.
            return Findings(warnings=(*warnings, *too_large))
        return Findings(tuple(too_large), tuple(warnings))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """`TF_CONFIG` on every container; Volcano leaves init containers out."""
        if not _is_distributed(job):
            return lambda _task, _index: PodEdits()
        cluster = _json(_cluster(job, values))
        everywhere = not values.strict_upstream

        def edit(task: Task, index: int) -> PodEdits:
            role = _json(_role(task.name, values))
            config = f'{{"cluster":{cluster},"task":{{"type":{role},"index":{index}}}}}'
            return PodEdits(env=(EnvVar(VARIABLE, config, init_containers=everywhere),))

        return edit


def _is_distributed(job: Job) -> bool:
    return len(job.tasks) != 1 or job.tasks[0].size != 1


def _cluster(job: Job, values: Values) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for task in job.tasks:
        role = next((each for each in _CLUSTER_ORDER if values[each] == task.name), None)
        if role is not None and task.size:
            members[role] = [
                f"{address(job, task, index)}:{values['port']}" for index in range(task.size)
            ]
    return {role: members[role] for role in _CLUSTER_ORDER if role in members}


def _role(task_name: str, values: Values) -> str:
    return next((each for each in _ROLE_ORDER if values[each] == task_name), task_name)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _role_warnings(job: Job, values: Values) -> list[FieldError]:
    tasks = [task.name for task in job.tasks]
    played = [role for role in _CLUSTER_ORDER if values[role] in tasks]
    warnings = [
        f'--{role} names task "{values[role]}", which the Job does not have'
        + did_you_mean(values[role], tasks)
        for role in _CLUSTER_ORDER
        if role in values.given and role not in played
    ]
    if not played:
        roles = ", ".join(f'"{values[role]}"' for role in _CLUSTER_ORDER)
        warnings.append(
            f"no task plays a role, so {VARIABLE} lists nobody: expected one of {roles}; "
            "name a task so, or say which it is with --worker=<task>"
        )
    for role in played:
        first = next(each for each in played if values[each] == values[role])
        if first != role:
            warnings.append(
                f'--{role} and --{first} both name task "{values[role]}", which counts as {first} '
                f"in the cluster and as {_role(values[role], values)} in its own pods"
            )
    return [FieldError("spec.plugins.tensorflow", text, "JOB-PLUGIN-ROLE") for text in warnings]


def _size_problems(job: Job, values: Values) -> list[FieldError]:
    if is_small(job):
        return []
    size = len(VARIABLE) + sum(_list_size(job, task, values) for task in job.tasks)
    if size < VARIABLE_LIMIT:
        return []
    fitting = job.replicas * VARIABLE_LIMIT // size
    text = (
        f"{VARIABLE} would have more than {size} bytes for {job.replicas} pods, Linux starts no program with a "
        f"variable of {VARIABLE_LIMIT}, and TensorFlow reads the cluster from nothing else; use fewer pods "
        f"(about {fitting} of such names fit) or shorter names"
    )
    return [FieldError("spec.tasks", text, "JOB-PLUGIN-SIZE")]


def _list_size(job: Job, task: Task, values: Values) -> int:
    """Bytes of a task's list: address, colon and port in quotes, separated by commas."""
    if task.name not in (values[role] for role in _CLUSTER_ORDER):
        return 0
    fixed = task.size * (len(address(job, task, 0)) + 1) if fixed_hostname(task) else 0
    port = len(f'"":{values["port"]}')
    return (fixed or joined_size(job, task)) + task.size * port
