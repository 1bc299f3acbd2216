"""Variables of a framework as a table: a name, and a text in which roles, ranks and addresses stand.

`{address:master}`, `{rank}` and the like are filled in for each pod; what is the same for all pods of
a Job is worked out once. A variable that has no value for a pod (`{rank}` where the pod plays no
role) is left out of it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pumice.api.jobs import Task
from pumice.plugins.cast import Cast
from pumice.plugins.edits import EnvVar

__all__ = ["FIELDS", "Variable", "VariableError", "prepared"]

FIELDS: dict[str, str] = {
    "rank": "number of the pod among all that play a role, from 0",
    "size": "pods that play a role",
    "role": "role of the pod",
    "index": "index of the pod in its task",
    "port": "the plugin's port",
    "count:ROLE": "pods of a role",
    "address:ROLE": "address of a role's first pod",
    "addresses:ROLE": "addresses of a role, with commas",
    "endpoints:ROLE": "addresses of a role with the port, with commas",
    "self": "address of the pod",
}
"""What may stand in braces, and what is put in its place."""

_FIELD = re.compile(r"\{([a-z]+)(?::([^{}]*))?\}")
_OF_POD = ("rank", "role", "index", "self")
_OF_ROLE = ("count", "address", "addresses", "endpoints")

Value = Callable[[Task, int], str | None]


class VariableError(ValueError):
    """A text refers to what there is not; the message says what there is."""


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
    variables: Sequence[Variable], cast: Cast, port: int, *, init_containers: bool = True
) -> Callable[[Task, int], tuple[EnvVar, ...]]:
    """Fill in what all pods share and return the function that fills in the rest.

    Args:
        variables: The table.
        cast: Who plays which role.
        port: The plugin's port.
        init_containers: Whether init containers get the variables too.

    Raises:
        VariableError: A text refers to an unknown field or role.
    """
    values = [(each.name, _value(each, cast, port)) for each in variables]

    def of_pod(task: Task, index: int) -> tuple[EnvVar, ...]:
        filled = ((name, value(task, index)) for name, value in values)
        return tuple(
            EnvVar(name, text, init_containers=init_containers)
            for name, text in filled
            if text is not None
        )

    return of_pod


def _value(variable: Variable, cast: Cast, port: int) -> Value:
    parts: list[str | Value] = []
    end = 0
    for match in _FIELD.finditer(variable.text):
        parts.append(variable.text[end : match.start()])
        parts.append(_part(variable, match[1], match[2], cast, port))
        end = match.end()
    parts.append(variable.text[end:])
    if all(isinstance(part, str) for part in parts):
        whole = "".join(part for part in parts if isinstance(part, str))
        return lambda _task, _index: whole

    def joined(task: Task, index: int) -> str | None:
        texts = [part if isinstance(part, str) else part(task, index) for part in parts]
        return None if None in texts else "".join(text for text in texts if text is not None)

    return joined


def _part(variable: Variable, field: str, role: str | None, cast: Cast, port: int) -> str | Value:
    if role is None and field in _OF_POD:
        return _of_pod(field, cast)
    if role is None and field in ("size", "port"):
        return str(cast.size if field == "size" else port)
    if field in _OF_ROLE and role is not None:
        if role not in cast.roles:
            known = ", ".join(cast.roles) or "none"
            raise VariableError(f'{variable.name}: there is no role "{role}", known are {known}')
        return _of_role(field, role, cast, port)
    known = ", ".join(f"{{{each}}}" for each in FIELDS)
    found = field if role is None else f"{field}:{role}"
    raise VariableError(f"{variable.name}: there is no {{{found}}}, known are {known}")


def _of_pod(field: str, cast: Cast) -> Value:
    if field == "rank":
        return lambda task, index: None if (rank := cast.rank(task, index)) is None else str(rank)
    if field == "role":
        return lambda task, _index: cast.role(task) or None
    if field == "index":
        return lambda _task, index: str(index)
    return cast.own_address


def _of_role(field: str, role: str, cast: Cast, port: int) -> str:
    if field == "count":
        return str(cast.count(role))
    if field == "address":
        return cast.address(role)
    return ",".join(
        each if field == "addresses" else f"{each}:{port}" for each in cast.addresses(role)
    )
