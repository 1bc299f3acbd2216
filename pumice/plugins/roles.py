"""Plugin `roles`: variables with ranks, sizes and addresses, for any framework.

The Job itself defines the roles of its tasks and the variables, so a framework needs no plugin of its own:

    roles:
    - --roles=coordinator,worker=trainer
    - --env=COORDINATOR={address:coordinator}:{port};RANK={rank};SIZE={size}
    - --port=1234
"""

import re

from pumice.api.fields import FieldError, Suggestions
from pumice.api.jobs import Job, Task
from pumice.api.names import env_name_problem
from pumice.plugins.arguments import PORT, Argument, ArgumentSpec, Values, ValueType
from pumice.plugins.edits import PodEdits, Port
from pumice.plugins.env import VARIABLES, Env
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.role_members import RoleMembers
from pumice.plugins.shared_checks import kept_warnings, pod_size_errors, shared_hostname_errors
from pumice.plugins.svc import MOUNT_PATH, variables_of
from pumice.plugins.variables import (
    VARIABLE_LIMIT,
    Variable,
    VariableError,
    addressed,
    fault,
    prepared,
    size,
)

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?")


def _read_roles(word: str) -> tuple[tuple[str, str], ...]:
    roles: dict[str, str] = {}
    for item in word.split(","):
        role, _, task = (each.strip() for each in item.partition("="))
        if not _NAME.fullmatch(role):
            raise ValueError("expected role=task pairs with commas between them")
        if role in roles:
            raise ValueError(f'expected every role once, found "{role}" twice')
        roles[role] = task or role
    return tuple(roles.items())


def _read_variables(word: str) -> tuple[Variable, ...]:
    variables = []
    for item in filter(None, (each.strip() for each in word.split(";"))):
        name, equals, text = item.partition("=")
        if not equals or env_name_problem(name):
            raise ValueError("expected NAME=text pairs with semicolons between them")
        variables.append(Variable(name, text))
    return tuple(variables)


class Roles(JobPlugin):
    """Variables with role, rank and address, as the Job's arguments define them."""

    name = "roles"
    summary = (
        "Sets variables that a Job spells out itself, filled in with roles, ranks and addresses."
    )
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument(
            "roles",
            ValueType("roles", _read_roles),
            (),
            "roles in the order of ranks, each with its task: `master,worker=trainer`",
        ),
        Argument(
            "env",
            ValueType("variables", _read_variables),
            (),
            "variables with fields in braces: `MASTER={address:master}:{port};RANK={rank}`",
        ),
        Argument(
            "port", PORT, 29500, "port that `{port}` stands for; opened on every container if given"
        ),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse variables with invalid references or of excessive size; warn about roles without a task."""
        members = _members(job, values)
        errors = [
            error
            for variable in values["env"]
            if (error := _variable_error(job, variable, members, values["port"])) is not None
        ]
        sizes = (size(each, members, values["port"]) for each in values["env"])
        errors += pod_size_errors(job, self.name, sum(sizes))
        addresses = {task for each in values["env"] for task in addressed(each, members)}
        errors += shared_hostname_errors(job, self.name, addresses)
        tasks, suggestions = {task.name: task for task in job.tasks}, Suggestions()
        warnings = [
            FieldError(
                "spec.plugins.roles",
                f'role "{role}" is played by task "{task}", which the Job does not have'
                + suggestions.did_you_mean(task, tasks),
                "JOB-PLUGIN-ROLE",
            )
            for role, task in values["roles"]
            if task not in tasks
        ]
        warnings += _hidden_warnings(job, values)
        warnings += kept_warnings(job, values, [each.name for each in values["env"]])
        return Findings(tuple(errors), tuple(warnings))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The variables and the port."""
        try:
            variables = prepared(values["env"], _members(job, values), values["port"])
        except VariableError:
            return lambda _task, _index: PodEdits()
        ports = (Port("rolesjob-port", values["port"]),) if "port" in values.given else ()

        def edit(task: Task, index: int) -> PodEdits:
            return PodEdits(env=variables(task, index), ports=ports)

        return edit


def _variable_error(
    job: Job, variable: Variable, members: RoleMembers, port: int
) -> FieldError | None:
    found = fault(variable, members)
    if found:
        return FieldError("spec.plugins.roles", found, "JOB-PLUGIN-VARIABLE")
    length = size(variable, members, port)
    if length < VARIABLE_LIMIT:
        return None
    text = (
        f"{variable.name} would have {length} bytes for {job.replicas} pods, and Linux starts no program with a "
        f"variable of {VARIABLE_LIMIT}; read the files of plugin svc in {MOUNT_PATH}"
    )
    return FieldError("spec.plugins.roles", text, "JOB-PLUGIN-SIZE")


def _hidden_warnings(job: Job, values: Values) -> list[FieldError]:
    """Warn about variables that the same argument or an earlier plugin already sets."""
    earlier = dict.fromkeys(variables_of(job), "plugin svc sets")
    if Env.name in (job.spec.plugins or ()):
        earlier |= dict.fromkeys(VARIABLES, "plugin env sets")
    warnings = []
    for variable in values["env"]:
        if variable.name in earlier:
            text = f"--env: {earlier[variable.name]} {variable.name} already, and that one counts; choose another name"
            warnings.append(FieldError("spec.plugins.roles", text, "JOB-PLUGIN-ARGUMENT"))
        earlier.setdefault(variable.name, "it sets")
    return warnings


def _members(job: Job, values: Values) -> RoleMembers:
    return RoleMembers(job, dict(values["roles"]))
