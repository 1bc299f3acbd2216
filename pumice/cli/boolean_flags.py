"""`--flag=true` and `--flag=false`: how Go programs, and so Volcano's and Kubernetes' manifests, write boolean flags."""

from collections.abc import Sequence
from typing import Any

from pumice.cli.exits import UserError

__all__ = ["without_values"]

_VALUES = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""What Go's strconv.ParseBool reads."""


def without_values(parameters: Sequence[Any], arguments: Sequence[str]) -> list[str]:
    """Arguments in which each boolean flag with a value is written without it.

    `--wait=true` becomes `--wait`, and `--leader-elect=false` becomes `--no-leader-elect`. A flag without a negative
    form is removed by `=false`, with those before it, since the last one counts.

    Args:
        parameters: Those of the command, as its parser has them.
        arguments: Those of the user.

    Raises:
        UserError: The value is not a boolean.
    """
    flags = {
        name: (each, is_on)
        for each in parameters
        if getattr(each, "is_flag", False)
        for names, is_on in ((each.opts, True), (each.secondary_opts, False))
        for name in names
    }
    found: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*found, *arguments[position:]]
        name, equals, value = argument.partition("=")
        if not equals or not name.startswith("--") or name not in flags:
            found.append(argument)
            continue
        if value not in _VALUES:
            raise UserError(f"{name}: invalid boolean value {value!r}, expected true or false")
        flag, is_on = flags[name]
        names = flag.opts if _VALUES[value] is is_on else flag.secondary_opts
        if names:
            found.append(names[-1])
        else:
            found = [each for each in found if each not in flag.opts]
    return found
