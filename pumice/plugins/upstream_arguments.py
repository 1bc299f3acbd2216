"""Volcano's own parsing of a plugin's words, for `strict-upstream`.

It ends at the first word that it cannot read: later words have no effect, a bad boolean becomes false, and a bad
integer 0 (or the nearest in 64 bits). A word that is not a flag ends it without an error, so nothing is reported for
it.
"""

from collections.abc import Sequence
from typing import Any

from pumice.plugins.arguments import (
    BOOLEAN,
    Argument,
    ArgumentProblem,
    ArgumentSpec,
    BadValueError,
    Parsed,
    Values,
    shown,
    split_flag,
)


def parse_upstream(spec: ArgumentSpec, vector: Sequence[str]) -> Parsed:
    """Parse a plugin's words exactly as Volcano does; also returns the problem that ended it, if any."""
    values: dict[str, Any] = {}
    problem: ArgumentProblem | None = None
    position = 0
    while problem is None and position < len(vector):
        word = vector[position]
        if len(word) < 2 or not word.startswith("-") or word == "--":
            break
        flag = split_flag(word)
        argument = spec.get(flag[0]) if flag else None
        if flag is None or argument is None or argument.ours:
            problem = _stop(position, "", f'"{word}" is no argument of this plugin')
            break
        value, consumed = _value(argument, flag[1], vector, position)
        if value is None:
            used = shown(values.get(argument.name, argument.default))
            problem = _stop(position, used, f"--{argument.name} has no value; {used} is used")
            break
        problem = _assign(values, argument, value, position)
        position += consumed
    of = {**spec.defaults.of, **values}
    return Parsed(
        Values(of, frozenset(values), strict_upstream=True), (problem,) if problem else ()
    )


def _value(
    argument: Argument, value: str | None, vector: Sequence[str], position: int
) -> tuple[str | None, int]:
    if value is not None:
        return value, 1
    if argument.kind is BOOLEAN:
        return "true", 1
    return (vector[position + 1], 2) if position + 1 < len(vector) else (None, 1)


def _assign(
    values: dict[str, Any], argument: Argument, word: str, position: int
) -> ArgumentProblem | None:
    try:
        values[argument.name] = argument.kind.read(word)
    except BadValueError as error:
        values[argument.name] = error.upstream
        if error.accepted_upstream:
            return None
        used = shown(error.upstream)
        fault = f'bad value "{word}" for --{argument.name}: {error}; {used} is used instead'
        return _stop(position, used, fault)
    except ValueError as error:
        # A type that Volcano does not have: there is no upstream result to reproduce.
        used = shown(values.get(argument.name, argument.default))
        fault = f'bad value "{word}" for --{argument.name}: {error}'
        return _stop(position, used, fault)
    return None


def _stop(position: int, used: str, message: str) -> ArgumentProblem:
    text = f"{message}, and the arguments after it are ignored"
    return ArgumentProblem(position, used, text)
