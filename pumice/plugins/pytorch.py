"""Plugin `pytorch`: gives each container its rank in the process group.

`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK` as Volcano sets them, counted in pods, and the `PET_*` variables
that `torchrun` reads instead of its options: with them the command of every pod is `torchrun train.py`.

Source: PyTorch documentation, "torchrun (Elastic Launch)": the default of each option `--name` is taken from `PET_NAME`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job, Task
from pumice.plugins import words
from pumice.plugins.accelerators import claim_warnings
from pumice.plugins.addresses import OwnerJob
from pumice.plugins.arguments import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    BadValueError,
    Values,
    ValueType,
    between,
    parse,
)
from pumice.plugins.edits import EnvVar, PodEdits, Port
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.role_members import RoleMembers, empty_warnings, role_warnings
from pumice.plugins.shared_checks import kept_warnings, shared_hostname_errors
from pumice.plugins.upstream_arguments import parse_upstream
from pumice.plugins.variables import Variable, prepared
from pumice.plugins.waiting import wait_arguments, wait_step, wait_warnings

_RANGE = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Nodes:
    """A range of pods.

    Attributes:
        least: Number with which the group starts.
        most: Maximum number.
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}:{self.most}"


def read_nodes(word: str) -> Nodes:
    """Read a range.

    Raises:
        ValueError: The text is not a range; the message says what was expected.
    """
    match = _RANGE.fullmatch(word)
    if match and 0 < (least := int(match[1])) <= (most := int(match[2])):
        return Nodes(least, most)
    raise ValueError("expected least:most, for example 2:8")


def elastic_warnings(job: Job, members: RoleMembers, nodes: Nodes) -> list[FieldError]:
    """Warn about a range for which the Job has too few pods, or whose minimum the gang always exceeds."""
    warnings = []
    if nodes.most > members.size > 0:
        text = f"--elastic={nodes} reaches beyond the {members.size} pods of master and workers"
        warnings.append(FieldError("spec.plugins.pytorch", text, "JOB-PLUGIN-ROLE"))
    if isinstance(job, OwnerJob):
        return warnings  # its pods are no gang
    others = sum(task.minimum for task in job.tasks if not members.role(task))
    minimum = job.spec.min_available or sum(task.minimum for task in job.tasks)
    if minimum > nodes.least + others:
        text = (
            f"is {minimum} (by default the minimum of all tasks), and no pod starts before {minimum} pods fit, so "
            f"--elastic={nodes} of plugin pytorch never starts with {nodes.least}: let minAvailable of the tasks "
            f"add up to {nodes.least + others}"
        )
        warnings.append(FieldError("spec.minAvailable", text, "JOB-PLUGIN-ROLE"))
    return warnings


_PORT_NAME = "pytorchjob-port"
# Precise enough to detect mistakes; the node and its registry check the rest.
_IMAGE = re.compile(r"([A-Za-z0-9\[][-\w./:@+\[\]]*)?", re.ASCII)
_MOST_PROCESSES = 65535
_RESTARTS = between("number", "a number", 0, 2**31 - 1)
_VARIABLES = (
    Variable("MASTER_ADDR", "{address:master}"),
    Variable("MASTER_PORT", "{port}"),
    Variable("WORLD_SIZE", "{size}"),
    Variable("RANK", "{rank}"),
)
_TORCHRUN = (
    Variable("PET_MASTER_ADDR", "{address:master}"),
    Variable("PET_MASTER_PORT", "{port}"),
    Variable("PET_NODE_RANK", "{rank}"),
)
_NODES = Variable("PET_NNODES", "{size}")
_PROCESSES = Variable("PET_NPROC_PER_NODE", "{processes}")
_STORE = "PET_RDZV_CONF"


def _read_processes(word: str) -> str:
    number = words.integer(word)
    if number is not None and 0 < number <= _MOST_PROCESSES:
        return str(number)
    if word in ("auto", "gpu", "cpu"):
        return word
    raise ValueError(f"expected auto, gpu, cpu or a number of processes up to {_MOST_PROCESSES}")


def _read_image(word: str) -> str:
    if _IMAGE.fullmatch(word):
        return word
    raise BadValueError("the name of an image", upstream=word, accepted_upstream=True)


class PyTorch(JobPlugin):
    """Tasks named master and worker become the nodes of a process group."""

    name = "pytorch"
    summary = (
        "Tells every container the process group's master, size and its own rank, for torchrun too."
    )
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument("master", TEXT, "master", "task of the master"),
        Argument("worker", TEXT, "worker", "task of the workers"),
        Argument("port", PORT, 23456, "port of the master's store; opened on every container"),
        *wait_arguments(
            "master", "hold workers back until the master answers", "a worker", ours=False
        ),
        Argument(
            "wait-master-image",
            ValueType("image", _read_image),
            "",
            "image that waits; a setting of the cluster by default",
        ),
        Argument(
            "nproc-per-node",
            ValueType("processes", _read_processes),
            "auto",
            "`PET_NPROC_PER_NODE`; `auto` is one a requested accelerator, or one",
            ours=True,
        ),
        Argument(
            "elastic",
            ValueType("range", read_nodes),
            (),
            "`PET_NNODES` as a range of pods, `least:most`, with a c10d rendezvous on the master",
            ours=True,
        ),
        Argument(
            "max-restarts",
            _RESTARTS,
            0,
            "`PET_MAX_RESTARTS`; left out when 0",
            ours=True,
        ),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse several masters; warn about roles without tasks and about the user's own variables."""
        warnings = list(role_warnings(job, self.name, values, ("worker",)))
        members = _members(job, values)
        path = "spec.plugins.pytorch"
        if "master" not in members:
            hint = did_you_mean(values["master"], [task.name for task in job.tasks])
            text = (
                f'no task is named "{values["master"]}"{hint}, so no pod is wired; name one so, or say '
                "which it is with --master=<task>"
            )
            warnings.append(FieldError(path, text, "JOB-PLUGIN-ROLE"))
        elastic = values["elastic"]
        if elastic:
            warnings += elastic_warnings(job, members, elastic)
        warnings += empty_warnings(job, values, "master")
        warnings += wait_warnings(job, self.name, "master", values, values["worker"])
        if "master" in members:
            warnings += _variable_warnings(job, members, values)
        # The others connect to the master alone; in an elastic group any pod may become that.
        addressed = (values["master"], values["worker"] if elastic else "")
        errors = shared_hostname_errors(job, self.name, addressed)
        return Findings(tuple(errors), tuple(warnings))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The port, both sets of variables, and the wait step of workers."""
        members = _members(job, values)
        if "master" not in members:
            return lambda _task, _index: PodEdits()
        strict = values.strict_upstream
        variables = prepared(_VARIABLES, members, values["port"], init_containers=not strict)
        torchrun = prepared(_torchrun(job, members, values), members, values["port"])
        ports = (Port(_PORT_NAME, values["port"]),)
        image = values["wait-master-image"]
        hosts, held = [members.address("master")], members.task("worker")
        waiting = wait_step("master", hosts, values["port"], values, held, image=image)

        def edit(task: Task, index: int) -> PodEdits:
            env = variables(task, index)
            role = members.role(task)
            if strict:
                env = tuple(_upstream_rank(each, role, index) for each in env)
            elif role:
                env = (*env, *torchrun(task, index))
                if values["elastic"]:
                    env = (*env, _store(is_host=role == "master" and index == 0))
            first = waiting if role == "worker" else ()
            return PodEdits(env=env, ports=ports, init_containers=first)

        return edit


def pytorch_ranks(job: Job, *, strict_upstream: bool) -> Callable[[Task, int], str]:
    """The variable RANK of each pod of a Job; empty for pods without one."""
    plugins = job.spec.plugins or {}
    if PyTorch.name not in plugins:
        return lambda _task, _index: ""
    read = parse_upstream if strict_upstream else parse
    values = read(PyTorch.arguments, plugins[PyTorch.name] or ()).values
    edit = PyTorch().for_job(job, values)

    def rank(task: Task, index: int) -> str:
        env = edit(task, index).env
        return next((each.value for each in env if each.name == "RANK"), "")

    return rank


def _members(job: Job, values: Values) -> RoleMembers:
    return RoleMembers(job, {"master": values["master"], "worker": values["worker"]})


def _variable_warnings(job: Job, members: RoleMembers, values: Values) -> list[FieldError]:
    """Warn about variables that a template sets itself, and about devices that are not counted."""
    torchrun = [each.name for each in _torchrun(job, members, values)]
    if values["elastic"]:
        torchrun.append(_STORE)
    warnings = kept_warnings(job, values, [each.name for each in _VARIABLES])
    warnings += kept_warnings(job, values, torchrun, tasks=members.roles.values())
    if values["nproc-per-node"] == "auto" and not values.strict_upstream:
        missing = "torchrun starts one process in each pod; say how many with --nproc-per-node"
        warnings += claim_warnings(job, members.roles.values(), missing)
    return warnings


def _upstream_rank(variable: EnvVar, role: str, index: int) -> EnvVar:
    """Rank as in Volcano: every replica of the master has rank 0, and workers count from 1."""
    if variable.name != "RANK":
        return variable
    rank = 0 if role == "master" else index + 1
    return EnvVar("RANK", str(rank), init_containers=variable.init_containers)


def _torchrun(job: Job, members: RoleMembers, values: Values) -> tuple[Variable, ...]:
    """Variables of torchrun for a node and for all nodes."""
    processes, elastic = values["nproc-per-node"], values["elastic"]
    variables = [
        *_TORCHRUN,
        Variable(_NODES.name, str(elastic)) if elastic else _NODES,
        _PROCESSES if processes == "auto" else Variable(_PROCESSES.name, processes),
    ]
    if elastic:
        variables += [
            Variable("PET_RDZV_BACKEND", "c10d"),
            Variable("PET_RDZV_ENDPOINT", f"{members.address('master')}:{values['port']}"),
            Variable("PET_RDZV_ID", job.metadata.name),
        ]
    if values["max-restarts"]:
        variables.append(Variable("PET_MAX_RESTARTS", str(values["max-restarts"])))
    return tuple(variables)


def _store(*, is_host: bool) -> EnvVar:
    """Variables with the pod that hosts the rendezvous.

    Without them each pod resolves the master's name to find out, and the master does not find out before its own name
    resolves.
    """
    return EnvVar(_STORE, f"is_host={int(is_host)}")
