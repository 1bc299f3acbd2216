"""Variables of a framework as a table: names, and texts with fields for roles, ranks and addresses; and how large a variable may be.

`{address:master}`, `{rank}` and the like are filled in for each pod; values that all pods of a Job share are computed
once. A pod does not get a variable that has no value for it (`{rank}` if the pod has no role).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pumice.api.fields import did_you_mean
from pumice.api.jobs import Job, Task
from pumice.plugins.accelerators import accelerators
from pumice.plugins.addresses import joined_size
from pumice.plugins.edits import EnvVar
from pumice.plugins.role_members import RoleMembers

FIELDS: dict[str, str] = {
    "rank": "number of the pod among all that play a role, from 0",
    "size": "pods that play a role",
    "role": "role of the pod",
    "index": "index of the pod in its task",
    "port": "the plugin's port",
    "processes": "accelerators that the pod asks for, or 1",
    "self": "address of the pod",
    "count:ROLE": "pods of a role",
    "address:ROLE": "address of a role's first pod",
    "addresses:ROLE": "addresses of a role, with commas",
    "endpoints:ROLE": "addresses of a role with the port, with commas",
}
"""Fields in braces, and their values."""

VARIABLE_LIMIT = 128 * 1024
"""Size in bytes, including name and `=`, at which Linux refuses to start a program with the variable."""

HOSTS_VARIABLE_LIMIT = 96 * 1024
"""Bytes of addresses above which a task's hosts are a file only; the rest of `VARIABLE_LIMIT` is room for the Job to grow."""

_FIELD = re.compile(r"\{([a-z]+)(?::([^{}]*))?\}")
_OF_POD = ("rank", "role", "index", "processes", "self")
_OF_JOB = ("size", "port")
_OF_ROLE = ("count", "address", "addresses", "endpoints")

Value = Callable[[Task, int], str | None]


class VariableError(ValueError):
    """A text refers to an unknown field or role; the message lists the known ones."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable.

    Attributes:
        name: Its name.
        text: Its value with fields in braces, see `FIELDS`.
    """

    name: str
    text: str


def prepared(
    variables: Sequence[Variable], members: RoleMembers, port: int, *, init_containers: bool = True
) -> Callable[[Task, int], tuple[EnvVar, ...]]:
    """Compute what all pods share, and return the function that computes the rest.

    Raises:
        VariableError: A text refers to an unknown field or role.
    """
    values = [(each.name, _value(each, members, port)) for each in variables]

    def of_pod(task: Task, index: int) -> tuple[EnvVar, ...]:
        filled = ((name, value(task, index)) for name, value in values)
        return tuple(
            EnvVar(name, text, init_containers=init_containers)
            for name, text in filled
            if text is not None
        )

    return of_pod


def fault(variable: Variable, members: RoleMembers) -> str:
    """What is wrong with a text; empty if it is valid."""
    for match in _FIELD.finditer(variable.text):
        found = _fault(variable, match[1], match[2], members)
        if found:
            return found
    return ""


def addressed(variable: Variable, members: RoleMembers) -> set[str]:
    """Tasks of which a text uses addresses of single pods."""
    found: set[str] = set()
    for field, role in _FIELD.findall(variable.text):
        if field == "self":
            found.update(members.roles.values())
        elif field in ("address", "addresses", "endpoints") and role in members.roles:
            found.add(members.roles[role])
    return found


def size(variable: Variable, members: RoleMembers, port: int) -> int:
    """Minimum size of a variable in bytes, including name and `=`, without computing addresses.

    Admission calls this for Jobs of any size. Values that differ between pods count as empty.
    """
    total = len(variable.name) + len("=")
    end = 0
    for match in _FIELD.finditer(variable.text):
        total += len(variable.text[end : match.start()].encode())
        if match[1] in ("addresses", "endpoints"):
            each = len(f":{port}") if match[1] == "endpoints" else 0
            total += members.joined_size(match[2] or "", each)
        end = match.end()
    return total + len(variable.text[end:].encode())


def too_large_for_variable(job: Job, task: Task) -> bool:
    """True if the addresses of a task are a file only, without computing them."""
    return joined_size(job, task) > HOSTS_VARIABLE_LIMIT


def _value(variable: Variable, members: RoleMembers, port: int) -> Value:
    parts: list[str | Value] = []
    end = 0
    for match in _FIELD.finditer(variable.text):
        parts.append(variable.text[end : match.start()])
        parts.append(_part(variable, match[1], match[2], members, port))
        end = match.end()
    parts.append(variable.text[end:])
    if all(isinstance(part, str) for part in parts):
        whole = "".join(part for part in parts if isinstance(part, str))
        return lambda _task, _index: whole

    def joined(task: Task, index: int) -> str | None:
        texts = [part if isinstance(part, str) else part(task, index) for part in parts]
        return None if None in texts else "".join(text for text in texts if text is not None)

    return joined


def _fault(variable: Variable, field: str, role: str | None, members: RoleMembers) -> str:
    if field in (_OF_POD + _OF_JOB if role is None else _OF_ROLE):
        if role is None or role in members.roles:
            return ""
        known = ", ".join(members.roles) or "none"
        return f'{variable.name}: there is no role "{role}", known are {known}'
    found = field if role is None else f"{field}:{role}"
    hint = did_you_mean(field, _OF_POD + _OF_JOB + _OF_ROLE) if field not in _OF_ROLE else ""
    known = ", ".join(f"{{{each}}}" for each in FIELDS)
    return f"{variable.name}: there is no {{{found}}}{hint}, known are {known}"


def _part(
    variable: Variable, field: str, role: str | None, members: RoleMembers, port: int
) -> str | Value:
    found = _fault(variable, field, role, members)
    if found:
        raise VariableError(found)
    if role is not None:
        return _of_role(field, role, members, port)
    if field in _OF_JOB:
        return str(members.size if field == "size" else port)
    return _of_pod(field, members)


def _of_pod(field: str, members: RoleMembers) -> Value:
    if field == "rank":
        return lambda task, index: (
            None if (rank := members.rank(task, index)) is None else str(rank)
        )
    if field == "role":
        return lambda task, _index: members.role(task) or None
    if field == "index":
        return lambda _task, index: str(index)
    if field == "processes":
        return _processes()
    return members.own_address


def _processes() -> Value:
    """Number of processes of a task; its template is read once."""
    known: dict[str, str] = {}

    def of_pod(task: Task, _index: int) -> str:
        found = known.get(task.name)
        if found is None:
            found = known[task.name] = str(accelerators(task) or 1)
        return found

    return of_pod


def _of_role(field: str, role: str, members: RoleMembers, port: int) -> str:
    if field == "count":
        return str(members.count(role))
    if field == "address":
        return members.address(role)
    return ",".join(
        each if field == "addresses" else f"{each}:{port}" for each in members.addresses(role)
    )
