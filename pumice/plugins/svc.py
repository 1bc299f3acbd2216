"""Plugin `svc`: gives the pods of a Job addresses and a Service.

It wants a headless Service and a ConfigMap with the addresses of all tasks. Each pod gets its hostname, the addresses
as files in `/etc/volcano`, and variables. A NetworkPolicy admits only the Job's own pods.

Running pods see a changed ConfigMap in the files; variables keep the values of the pod's start.
"""

from typing import Any

from pumice.api import names
from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.kinds import NETWORK_POLICY, SERVICE
from pumice.api.meta import Raw
from pumice.plugins import shards
from pumice.plugins.addresses import (
    OwnerJob,
    addresses,
    domain,
    fixed_hostname,
    hostname,
    is_small,
    joined_size,
    labels_of_job,
    subdomain,
)
from pumice.plugins.arguments import BOOLEAN, Argument, ArgumentSpec, Values, parse
from pumice.plugins.edits import EnvVar, Mount, PodEdits
from pumice.plugins.interface import Findings, JobPlugin, PodEditor, manifest, name_errors
from pumice.plugins.kept_volumes import kept_volume_warnings
from pumice.plugins.shared_checks import kept_warnings, pod_size_errors
from pumice.plugins.used_names import used_names
from pumice.plugins.variables import too_large_for_variable

MOUNT_PATH = "/etc/volcano"
"""Directory of the hosts files in every container."""

CONFIG_MAP_LIMIT = shards.LIMIT
"""Data size in bytes above which addresses are stored once, and in several ConfigMaps if needed."""

DATA_LIMIT = 8 * CONFIG_MAP_LIMIT
"""Data size in bytes above which a Job is refused: every pod mounts all of it, in its node's memory."""

_FILE = ".host"
_FRAMEWORKS = ("tensorflow", "pytorch", "mpi", "mxnet", "ray", "roles")
"""Plugins whose pods talk to each other before they are ready."""
_NOT_READY = "publish-not-ready-addresses"
_FEW_TASKS = 50
"""Number of tasks whose variables are surely below every limit."""
_REFERENCE = 16
"""Size in bytes of a variable that refers to a ConfigMap, without the names."""
_PREFIX = "VC_"
"""Prefix of the names of the variables."""


class Svc(JobPlugin):
    """Headless Service, hosts files and variables, network policy."""

    name = "svc"
    summary = "Gives the pods names that resolve, and the addresses of every task."
    after = ()
    arguments = ArgumentSpec(
        Argument(
            _NOT_READY,
            BOOLEAN,
            False,
            "names resolve before a pod is ready; true unless set where a framework plugin is used",
        ),
        Argument(
            "disable-network-policy",
            BOOLEAN,
            False,
            "make no NetworkPolicy, so that others may connect to the pods",
        ),
        Argument(
            "inject-hosts-env",
            BOOLEAN,
            True,
            "set the variables `VC_<TASK>_HOSTS` and `VC_<TASK>_NUM`; the files are there anyway",
        ),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse invalid names; warn about addresses that will not resolve."""
        small = is_small(job)
        volume = names.hosts_config_map(job.metadata.name)
        errors = [*_name_errors(job, volume), *(() if small else _size_errors(job))]
        if values["inject-hosts-env"] and len(job.tasks) > _FEW_TASKS:
            variables = _variables(job, volume)
            size = sum(2 * len(each.name) + len(volume) + _REFERENCE for each in variables)
            errors += pod_size_errors(job, self.name, size)
        # For the Job's own volumes rule VOL-TAKEN reports it.
        kept = kept_volume_warnings(job, self.name, volume, (MOUNT_PATH,), of_job=False)
        if values["inject-hosts-env"] and used_names(job).may_set_any(_PREFIX):
            kept = [*kept_warnings(job, values, _names_of_variables(job)), *kept]
        return Findings(tuple(errors), (*_address_warnings(job, values, small=small), *kept))

    def in_effect(self, job: Job, values: Values, name: str) -> Any:
        """Whether names resolve before pods are ready: true by default with a framework plugin."""
        if name == _NOT_READY:
            return _publishes_not_ready(job, values)
        return values[name]

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """ConfigMap `<job>-svc` (several of a large Job), Service `<job>`, NetworkPolicy `<job>`."""
        wanted = _config_maps(job)
        if not _has_service(job):
            wanted.append(_service(job, _publishes_not_ready(job, values)))
        if not values["disable-network-policy"]:
            wanted.append(_network_policy(job))
        return wanted

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """Hostname, subdomain, hosts variables and the hosts files."""
        volume = names.hosts_config_map(job.metadata.name)
        spread = _config_maps(job) if _is_spread(job) else []
        volumes = (shards.volume(volume, spread) if spread else _volume(volume),)
        mounts = (Mount(volume, MOUNT_PATH),)
        env = _variables(job, volume) if values["inject-hosts-env"] else ()

        def edit(task: Task, index: int) -> PodEdits:
            return PodEdits(
                hostname=hostname(job, task, index),
                subdomain=domain(job),
                env=env,
                volumes=volumes,
                mounts=mounts,
            )

        return edit


def variables_of(job: Job) -> list[str]:
    """Names of the variables that this plugin sets; none if the Job does not name it."""
    plugins = job.spec.plugins or {}
    if Svc.name not in plugins:
        return []
    values = parse(Svc.arguments, plugins[Svc.name] or ()).values
    return _names_of_variables(job) if values["inject-hosts-env"] else []


def _volume(name: str) -> Raw:
    return {"name": name, "configMap": {"name": name}}


def _variables(job: Job, config_map: str) -> tuple[EnvVar, ...]:
    """The variables, all from the first ConfigMap."""
    return tuple(EnvVar(each, config_map=config_map) for each in _names_of_variables(job))


def _names_of_variables(job: Job) -> list[str]:
    only_files = _only_files(job)
    found: list[str] = []
    for task in job.tasks:
        hosts, number = _variable_names(task)
        found += (number,) if task.name in only_files else (hosts, number)
    return found


def _variable_names(task: Task) -> tuple[str, str]:
    stem = f"{_PREFIX}{_file_stem(task).upper()}"
    return f"{stem}_HOSTS", f"{stem}_NUM"


def _file(task: Task) -> str:
    return f"{_file_stem(task)}{_FILE}"


def _file_stem(task: Task) -> str:
    return task.name.replace("-", "_")


def _config_maps(job: Job) -> list[Raw]:
    data = _hosts(job)
    if _is_spread(job):
        # Pods read their variables from the first ConfigMap only.
        files = {key: text for key, text in data.items() if key.endswith(_FILE)}
        data = {key: text for key, text in data.items() if key not in files} | files
    name = names.hosts_config_map(job.metadata.name)
    return shards.config_maps(name, job.metadata.namespace, data)


def _is_spread(job: Job) -> bool:
    return not is_small(job) and _size(job, _holds_once(job)) > CONFIG_MAP_LIMIT


def _hosts(job: Job) -> dict[str, str]:
    once = _holds_once(job)
    data: dict[str, str] = {}
    for task in job.tasks:
        found = addresses(job, task)
        hosts, number = _variable_names(task)
        data[_file(task)] = "\n".join(found)
        if task.name not in once:
            data[hosts] = ",".join(found)
        data[number] = str(len(found))
    return data


def _holds_once(job: Job) -> frozenset[str]:
    """Tasks whose addresses are in the hosts file only, because the ConfigMap would be too large with both copies.

    New pods do not refer to the missing key. Pods from before the task grew do, but a ConfigMap above
    the size limit could not be written at all.
    """
    if _size(job, frozenset()) <= CONFIG_MAP_LIMIT:
        return frozenset()
    once = frozenset(task.name for task in job.tasks if too_large_for_variable(job, task))
    return once if _size(job, once) <= CONFIG_MAP_LIMIT else once | _beyond_first(job, once)


def _beyond_first(job: Job, once: frozenset[str]) -> frozenset[str]:
    """Further tasks whose variables do not fit into the first ConfigMap."""
    room = CONFIG_MAP_LIMIT
    for task in job.tasks:
        room -= len(_variable_names(task)[1]) + len(str(task.size))
    beyond = set()
    for task in job.tasks:
        size = len(_variable_names(task)[0]) + joined_size(job, task)
        if task.name in once or size > room:
            beyond.add(task.name)
        else:
            room -= size
    return frozenset(beyond)


def _only_files(job: Job) -> frozenset[str]:
    """Tasks whose addresses are in no variable."""
    if is_small(job):
        return frozenset()
    large = (task.name for task in job.tasks if too_large_for_variable(job, task))
    return _holds_once(job).union(large)


def _size(job: Job, once: frozenset[str]) -> int:
    """Bytes of the ConfigMap's data, keys included."""
    total = 0
    for task in job.tasks:
        hosts, number = _variable_names(task)
        size = joined_size(job, task)
        total += len(_file(task)) + size + len(number) + len(str(task.size))
        if task.name not in once:
            total += len(hosts) + size
    return total


def _service(job: Job, publish_not_ready: bool) -> Raw:
    spec: Raw = {"clusterIP": "None", "selector": labels_of_job(job)}
    if publish_not_ready:
        spec["publishNotReadyAddresses"] = True
    return manifest(SERVICE, domain(job), job.metadata.namespace, spec=spec)


def _network_policy(job: Job) -> Raw:
    spec = {
        "podSelector": {"matchLabels": labels_of_job(job)},
        "ingress": [{"from": [{"podSelector": {"matchLabels": labels_of_job(job)}}]}],
        "policyTypes": ["Ingress"],
    }
    return manifest(NETWORK_POLICY, job.metadata.name, job.metadata.namespace, spec=spec)


def _has_service(job: Job) -> bool:
    """True if another controller creates the Service."""
    return isinstance(job, OwnerJob) and job.has_service


def _publishes_not_ready(job: Job, values: Values) -> bool:
    if _NOT_READY in values.given or values.strict_upstream:
        return bool(values[_NOT_READY])
    # A pod that becomes ready only once its peers answer would otherwise wait for itself.
    return any(name in _FRAMEWORKS for name in job.spec.plugins or ())


def _name_errors(job: Job, volume: str) -> list[FieldError]:
    name = job.metadata.name
    derived = (
        ("Service", name, names.service_name_problem(name)),
        ("volume", volume, names.dns_label_problem(volume)),
    )
    return name_errors(job, Svc.name, derived)


def _size_errors(job: Job) -> tuple[FieldError, ...]:
    size = _size(job, _holds_once(job))
    if size <= DATA_LIMIT:
        return ()
    text = (
        f"plugin svc would write {size} bytes of addresses for {job.replicas} pods, and every pod would mount "
        f"them; the limit is {DATA_LIMIT}: use shorter names or fewer pods"
    )
    return (FieldError("spec.tasks", text, "JOB-PLUGIN-SIZE"),)


def _address_warnings(job: Job, values: Values, *, small: bool) -> list[FieldError]:
    if small and not used_names(job).addresses:
        return []
    warnings = []
    only_files = frozenset() if small else _only_files(job)
    for position, task in enumerate(job.tasks):
        spec = f"spec.tasks[{position}].template.spec"
        if task.size > 1 and fixed_hostname(task):
            warnings.append(
                FieldError(
                    f"{spec}.hostname",
                    f'"{fixed_hostname(task)}" becomes the host name of all {task.size} pods, which then '
                    "share one address; leave it out, so that each pod has its own host name",
                    "JOB-PLUGIN-HOSTNAME",
                )
            )
        if subdomain(job, task) != domain(job):
            label, value = next(iter(labels_of_job(job).items()))
            warnings.append(
                FieldError(
                    f"{spec}.subdomain",
                    f'addresses in "{subdomain(job, task)}" resolve only if you make a headless Service '
                    f"of that name that selects {label}={value}; leave it out to use "
                    "the one that plugin svc makes",
                    "JOB-PLUGIN-SUBDOMAIN",
                )
            )
        if not small and (text := _large_text(job, task, values, only_files)):
            path = f"spec.tasks[{position}].replicas"
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SIZE"))
    return warnings


def _large_text(job: Job, task: Task, values: Values, only_files: frozenset[str]) -> str:
    """Where the addresses of a large task can be read; empty if they are at the usual places."""
    hosts, _ = _variable_names(task)
    file = f"{MOUNT_PATH}/{_file(task)}"
    if shards.is_in_parts(_file(task), joined_size(job, task)):
        return (
            f"the addresses of {task.size} pods fit neither into a variable nor into one file: read "
            f"{file}.0001 and those after it, as in `cat {file}.*`"
        )
    if not values["inject-hosts-env"] or task.name not in only_files:
        return ""
    return (
        f"the addresses of {task.size} pods do not fit into a variable: {hosts} is not set; "
        f"read {file}"
    )
