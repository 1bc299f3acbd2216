"""Plugin `tensorflow`: gives each container `TF_CONFIG` with the cluster and its task, and a file with the cluster.

The JSON equals Volcano's: compact, roles in the order ps, worker, chief, evaluator, without absent roles. A `TF_CONFIG`
that the template sets is kept.

The file is a ConfigMap that the controller updates, so that running pods see added and removed pods. It can also list
more pods than a variable can hold.
"""

import json
from collections.abc import Mapping

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw
from pumice.plugins import shards
from pumice.plugins.addresses import address, fixed_hostname, is_small, joined_size
from pumice.plugins.arguments import PORT, TEXT, Argument, ArgumentSpec, Values
from pumice.plugins.edits import EnvVar, Mount, PodEdits
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.kept_volumes import kept_volume_warnings
from pumice.plugins.shared_checks import kept_warnings, pod_size_errors, shared_hostname_errors
from pumice.plugins.variables import VARIABLE_LIMIT

VARIABLE = "TF_CONFIG"

MOUNT_PATH = "/etc/tensorflow"
"""Directory of the cluster file in every container."""

CLUSTER_FILE = "cluster.json"
"""File with the content of `cluster` in `TF_CONFIG`."""

FILE_VARIABLE, TYPE_VARIABLE, INDEX_VARIABLE = (
    "PUMICE_TF_CLUSTER_FILE",
    "PUMICE_TF_TASK_TYPE",
    "PUMICE_TF_TASK_INDEX",
)
"""Path of that file, and the content of `task` in `TF_CONFIG`."""

# Volcano looks through the roles in one order for the lists and in another for a pod's own role;
# the orders differ only if two roles have the same task.
_CLUSTER_ORDER = ("ps", "worker", "chief", "evaluator")
_ROLE_ORDER = ("chief", "worker", "ps", "evaluator")

_AROUND = 512
"""Maximum number of bytes of a configuration without addresses: names of variables, roles and the task."""


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
        """Warn about roles without tasks and about the user's own variables; refuse configurations that are too large."""
        if not _is_distributed(job):
            return Findings()
        size = _size(job, values)
        roles = {role: values.of[role] for role in _CLUSTER_ORDER}
        kept = kept_warnings(job, values, (VARIABLE,))
        warnings = [*_role_warnings(job, values, roles), *kept]
        if size:
            warnings += _variable_warnings(job, values, size)
        if not values.strict_upstream:
            warnings += kept_volume_warnings(job, self.name, _name(job), (MOUNT_PATH,))
        errors = shared_hostname_errors(job, self.name, roles.values())
        if size:
            errors += _file_errors(job, values, size)
            if size < VARIABLE_LIMIT:
                errors += pod_size_errors(job, self.name, size)
        if kept:
            # Containers that set the variable themselves do not need it.
            return Findings(warnings=(*warnings, *errors))
        return Findings(tuple(errors), tuple(warnings))

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """ConfigMap `<job>-tf` with the cluster."""
        if values.strict_upstream or not _is_distributed(job):
            return []
        return _config_maps(job, _json(_cluster(job, values)))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """`TF_CONFIG` and the cluster file for every container; Volcano has no file and excludes init containers."""
        if not _is_distributed(job):
            return lambda _task, _index: PodEdits()
        cluster = _json(_cluster(job, values))
        if values.strict_upstream:
            return lambda task, index: PodEdits(
                env=(
                    EnvVar(VARIABLE, _config(cluster, task, index, values), init_containers=False),
                )
            )
        is_variable = _size(job, values) < VARIABLE_LIMIT
        file = EnvVar(FILE_VARIABLE, f"{MOUNT_PATH}/{CLUSTER_FILE}")
        volumes = (shards.volume(_name(job), _config_maps(job, cluster)),)
        mounts = (Mount(_name(job), MOUNT_PATH),)

        def edit(task: Task, index: int) -> PodEdits:
            own = (
                file,
                EnvVar(TYPE_VARIABLE, _role(task.name, values)),
                EnvVar(INDEX_VARIABLE, str(index)),
            )
            env = (EnvVar(VARIABLE, _config(cluster, task, index, values)), *own)
            return PodEdits(env=env if is_variable else own, volumes=volumes, mounts=mounts)

        return edit


def _is_distributed(job: Job) -> bool:
    return len(job.tasks) != 1 or job.tasks[0].size != 1


def _name(job: Job) -> str:
    return f"{job.metadata.name}-tf"


def _config_maps(job: Job, cluster: str) -> list[Raw]:
    return shards.config_maps(_name(job), job.metadata.namespace, {CLUSTER_FILE: cluster})


def _config(cluster: str, task: Task, index: int, values: Values) -> str:
    role = _json(_role(task.name, values))
    return f'{{"cluster":{cluster},"task":{{"type":{role},"index":{index}}}}}'


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


def _role_warnings(job: Job, values: Values, roles: Mapping[str, str]) -> list[FieldError]:
    """Warn about roles without a task, and about tasks with several roles; `roles` has the task of each."""
    tasks = [task.name for task in job.tasks]
    played: dict[str, str] = {}
    unplayed, shared = [], []
    for role, task in roles.items():
        if task in tasks:
            if (first := played.setdefault(task, role)) != role:
                shared.append(
                    f'--{role} and --{first} both name task "{task}", which counts as {first} '
                    f"in the cluster and as {_role(task, values)} in its own pods"
                )
        elif role in values.given:
            text = f'--{role} names task "{task}", which the Job does not have'
            unplayed.append(text + did_you_mean(task, tasks))
    if not played:
        wanted = ", ".join(f'"{task}"' for task in roles.values())
        unplayed.append(
            f"no task plays a role, so {VARIABLE} lists no pod: expected one of {wanted}; "
            "name a task so, or say which it is with --worker=<task>"
        )
    texts = (*unplayed, *shared)
    return [FieldError("spec.plugins.tensorflow", text, "JOB-PLUGIN-ROLE") for text in texts]


def _variable_warnings(job: Job, values: Values, size: int) -> list[FieldError]:
    """Warn if the cluster is too large for a variable."""
    if size < VARIABLE_LIMIT:
        return []
    text = (
        f"{VARIABLE} would have some {size} bytes for {job.replicas} pods, and Linux starts no program with a "
        f"variable of {VARIABLE_LIMIT}: "
    )
    if values.strict_upstream:
        fitting = job.replicas * (VARIABLE_LIMIT - _AROUND) // size
        text += f"use fewer pods (about {fitting} of such names fit) or shorter names"
    else:
        text += (
            "it is not set, and a program that reads nothing else trains in each pod alone; build the cluster "
            f"resolver from {MOUNT_PATH}/{CLUSTER_FILE}, {TYPE_VARIABLE} and {INDEX_VARIABLE}"
        )
    return [FieldError("spec.tasks", text, "JOB-PLUGIN-SIZE")]


def _file_errors(job: Job, values: Values, size: int) -> list[FieldError]:
    """Refuse a cluster that is too large for a file: JSON cannot be read in parts."""
    if values.strict_upstream or not shards.is_in_parts(CLUSTER_FILE, size):
        return []
    fitting = job.replicas * (shards.LIMIT - _AROUND) // size
    text = (
        f"plugin tensorflow would write a cluster of some {size} bytes for {job.replicas} pods, and a ConfigMap "
        f"holds {shards.LIMIT}; use shorter names or fewer pods (about {fitting} of such names fit)"
    )
    return [FieldError("spec.tasks", text, "JOB-PLUGIN-SIZE")]


def _size(job: Job, values: Values) -> int:
    """Maximum number of bytes of any pod's configuration, without computing it; 0 if it is far below every limit."""
    if is_small(job):
        return 0
    return _AROUND + sum(_list_size(job, task, values) for task in job.tasks)


def _list_size(job: Job, task: Task, values: Values) -> int:
    """Bytes of a task's list: address, colon and port in quotes, separated by commas."""
    if task.name not in (values[role] for role in _CLUSTER_ORDER):
        return 0
    fixed = task.size * (len(address(job, task, 0)) + 1) if fixed_hostname(task) else 0
    port = len(f'"":{values["port"]}')
    return (fixed or joined_size(job, task)) + task.size * port
