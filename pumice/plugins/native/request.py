"""What the annotations of a pod template ask for: plugins with their arguments, and parts to play.

`pumice.dev/plugins` is a mapping as in `spec.plugins` of a Volcano Job, in YAML or JSON, or only names
with commas between them. `pumice.dev/tasks` divides pods of one template: `server=2,worker`.
"""

from typing import Any

import msgspec
import yaml

from pumice.api import keys
from pumice.api.names import dns_label_problem

__all__ = ["Plugins", "RequestError", "read_plugins", "read_tasks"]

Plugins = dict[str, list[str]]
"""Plugins by name with their arguments."""

_EXAMPLE = '{"pytorch": ["--port=23456"]}'


class RequestError(ValueError):
    """An annotation that cannot be understood or does not fit the pods; the message says why."""


def read_plugins(text: str) -> Plugins:
    """Read `pumice.dev/plugins`.

    Raises:
        RequestError: It is neither a mapping of lists of texts nor a list of names.
    """
    found = _decoded(text)
    if isinstance(found, str):
        found = dict.fromkeys(filter(None, (each.strip() for each in found.split(","))))
    if not isinstance(found, dict) or not found:
        raise RequestError(
            f"{keys.PLUGINS}: expected {_EXAMPLE} or names with commas between them, found {text!r}"
        )
    return {_name(name): _arguments(name, value) for name, value in found.items()}


def read_tasks(text: str, size: int) -> list[tuple[str, int]]:
    """Read `pumice.dev/tasks`: tasks with their number of pods, in the order of indexes.

    Args:
        text: `name=count` items with commas between; one of them may leave out the count and gets the rest.
        size: Pods that there are.

    Raises:
        RequestError: It is no such list, or its numbers do not add up to the pods.
    """
    counts: dict[str, int | None] = {}
    for item in text.split(","):
        name, equals, number = (each.strip() for each in item.partition("="))
        if problem := dns_label_problem(name):
            raise RequestError(f"{keys.TASKS}: a task's name {problem}")
        if name in counts:
            raise RequestError(f'{keys.TASKS}: there are two tasks "{name}"')
        if equals and not (number.isascii() and number.isdigit()):
            raise RequestError(f"{keys.TASKS}: expected {name}=<number of pods>, found {item!r}")
        counts[name] = int(number) if equals else None
    stated = sum(count for count in counts.values() if count is not None)
    open_ended = [name for name, count in counts.items() if count is None]
    if len(open_ended) > 1:
        raise RequestError(
            f"{keys.TASKS}: one task can have the rest of the pods, found {', '.join(open_ended)}"
        )
    if stated > size or (stated < size and not open_ended):
        raise RequestError(f"{keys.TASKS}: the tasks have {stated} pods, and there are {size}")
    return [(name, size - stated if count is None else count) for name, count in counts.items()]


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass  # YAML has more ways to write it
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise RequestError(f"{keys.PLUGINS}: this is no YAML: {problem}") from None


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise RequestError(f"{keys.PLUGINS}: expected names of plugins, found {name!r}")
    return name


def _arguments(name: object, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise RequestError(
        f'{keys.PLUGINS}: expected a list of texts as the arguments of "{name}", found {value!r}'
    )
