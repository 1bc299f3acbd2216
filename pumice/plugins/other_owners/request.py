"""Plugins and tasks that the annotations of a pod template request.

`pumice.dev/plugins` is a mapping as in `spec.plugins` of a Volcano Job, in YAML or JSON, or only names
with commas between them. `pumice.dev/tasks` divides pods of one template: `server=2,worker`.

Any user who may create a Job can write these annotations, and the controller and the webhook read them. So their length
is limited, YAML aliases are refused, and messages quote only the start of a text.
"""

from typing import Any

import msgspec
import yaml

from pumice.api import keys
from pumice.api.json_words import quoted, shown
from pumice.api.names import dns_label_problem
from pumice.api.yaml_values import DocumentError, YamlReader

ANNOTATION_LIMIT = 16 * 1024
"""Maximum length of an annotation in bytes; about ten plugins with their arguments need less."""

Plugins = dict[str, list[str]]
"""Plugins by name with their arguments."""

_EXAMPLE = '{"pytorch": ["--port=23456"]}'


class RequestError(ValueError):
    """An annotation that is invalid or does not fit the pods; the message says why."""


def read_plugins(text: str) -> Plugins:
    """Read `pumice.dev/plugins`.

    Raises:
        RequestError: It is too long, or neither a mapping of lists of texts nor a list of names.
    """
    _check_length(keys.PLUGINS, text)
    found = _decoded(text)
    if isinstance(found, str):
        found = dict.fromkeys(filter(None, (each.strip() for each in found.split(","))))
    if not isinstance(found, dict) or not found:
        raise RequestError(
            f"{keys.PLUGINS}: expected {_EXAMPLE} or names with commas between them, found {quoted(text)}"
        )
    return {_name(name): _arguments(name, value) for name, value in found.items()}


def read_tasks(text: str, size: int) -> list[tuple[str, int]]:
    """Read `pumice.dev/tasks`: tasks with their numbers of pods, in the order of indexes.

    Args:
        text: `name=count` items with commas between; one of them may lack the count and gets the remaining pods.
        size: Number of pods.

    Raises:
        RequestError: It is too long, not such a list, or its numbers do not add up to the pods.
    """
    _check_length(keys.TASKS, text)
    counts: dict[str, int | None] = {}
    for item in text.split(","):
        name, equals, number = (each.strip() for each in item.partition("="))
        if problem := dns_label_problem(name):
            raise RequestError(f"{keys.TASKS}: invalid name of a task: {problem}")
        if name in counts:
            raise RequestError(f'{keys.TASKS}: there are two tasks "{name}"')
        if equals and not (number.isascii() and number.isdigit()):
            raise RequestError(
                f"{keys.TASKS}: expected {name}=<number of pods>, found {quoted(item.strip())}"
            )
        digits = number.lstrip("0")
        if len(digits) > len(str(size)):
            raise RequestError(
                f"{keys.TASKS}: expected at most {size} pods for {name}, as many as there are, found a number of "
                f"{len(digits)} digits"
            )
        counts[name] = int(digits or "0") if equals else None
    stated = sum(count for count in counts.values() if count is not None)
    open_ended = [name for name, count in counts.items() if count is None]
    if len(open_ended) > 1:
        raise RequestError(
            f"{keys.TASKS}: one task can have the rest of the pods, found {', '.join(open_ended[:_SHOWN])}"
        )
    if stated > size or (stated < size and not open_ended):
        raise RequestError(f"{keys.TASKS}: the tasks have {stated} pods, and there are {size}")
    return [(name, size - stated if count is None else count) for name, count in counts.items()]


_SHOWN = 5
"""Names that a message lists."""
_LONGEST_NAME = 63
_LONGEST_PROBLEM = 200


class _PlainReader(YamlReader):
    """Reads YAML scalars as strings, and refuses aliases."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        following = self._next

        def checked() -> Any:
            event = following()
            if getattr(event, "anchor", None) is not None or _is_merge_key(event):
                line = event.start_mark.line + 1
                message = "anchors, aliases and merge keys (&, *, <<) cannot be used here; write the value out"
                raise DocumentError(message, line)
            return event

        self._next = checked


def _is_merge_key(event: Any) -> bool:
    return bool(isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0])


def _check_length(key: str, text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > ANNOTATION_LIMIT:
        raise RequestError(f"{key}: expected at most {ANNOTATION_LIMIT} bytes, found {size}")


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass  # YAML has more ways to write it
    try:
        reader = _PlainReader(text)
        try:
            start = reader.next_document()
            found = None if start is None else reader.value(start)
            if start is not None and reader.next_document() is not None:
                raise DocumentError("expected one document, found a second one")
            return found
        finally:
            reader.dispose()
    except DocumentError as error:
        problem = f"{error} (line {error.line})" if error.line else str(error)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
    problem = problem if len(problem) <= _LONGEST_PROBLEM else f"{problem[:_LONGEST_PROBLEM]}…"
    raise RequestError(f"{keys.PLUGINS}: invalid YAML: {problem}")


def _name(name: object) -> str:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name[:1].isalpha():
        raise RequestError(f"{keys.PLUGINS}: expected names of plugins, found {shown(name)}")
    return name


def _arguments(name: object, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise RequestError(
        f'{keys.PLUGINS}: expected a list of strings as the arguments of "{name}", found {shown(value)}'
    )
