"""The rest of an object of which some fields cannot be read.

A user with a text where a number belongs, and a misspelt plugin besides, is told of both. So the
unreadable fields are taken out, or replaced, and the rest is judged; what may be said for that reason
alone is left out.
"""

import copy
import functools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pumice.api.fields import FieldError
from pumice.webhook.rules.catalogue import by_code
from pumice.webhook.rules.within import Within

__all__ = ["compares", "instead", "steps_of", "trusted", "value_at", "without"]

_SEGMENT = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")


def without(raw: Any, paths: Iterable[str]) -> Any:
    """A copy of a raw object without some of its fields; list items become empty objects.

    A path that cannot be followed, because a key of it has dots, is passed over.
    """
    rest = copy.deepcopy(raw)
    for path in paths:
        _remove(rest, steps_of(path))
    return rest


def instead(raw: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a raw object with other values at some paths; one that cannot be followed is passed over."""
    rest = copy.deepcopy(raw)
    for path, value in values.items():
        *outer, last = steps_of(path)
        try:
            here = functools.reduce(operator.getitem, outer, rest)
            here[last] = value
        except (LookupError, TypeError):
            continue
    return rest


def value_at(raw: Any, path: str) -> Any:
    """What stands at a path; `msgspec.UNSET` where it cannot be followed."""
    if "".join(match[0] for match in _SEGMENT.finditer(path)) != path:
        return msgspec.UNSET
    try:
        return functools.reduce(operator.getitem, steps_of(path), raw)
    except (LookupError, TypeError):
        return msgspec.UNSET


def steps_of(path: str) -> list[str | int]:
    """The keys and positions that lead to a field; wrong ones for a key with dots."""
    return [
        int(match["index"]) if match["name"] is None else match["name"]
        for match in _SEGMENT.finditer(path)
    ]


def _remove(here: Any, steps: list[str | int]) -> None:
    for step in steps[:-1]:
        try:
            here = here[step]
        except (LookupError, TypeError):
            return
    last = steps[-1] if steps else None
    if isinstance(here, dict) and isinstance(last, str):
        here.pop(last, None)
    elif isinstance(here, list) and isinstance(last, int) and last < len(here):
        here[last] = {}


def trusted(
    found: Sequence[Iterable[FieldError]], paths: Iterable[str], *, whole: bool
) -> list[FieldError]:
    """Of what was found in the rest, that which holds for the whole too.

    What is said of the fields themselves is said better by whoever could not read them.

    Args:
        found: What was found in each of the objects that were judged instead; only what was found word for
            word in all of them counts.
        paths: The fields that cannot be read.
        whole: Whether something stood in their place. Otherwise what is said about something of which a
            part was taken out may be said for want of that part, and rules that weigh fields against each
            other are not to be trusted.
    """
    unreadable, (first, *others) = Within(paths), found
    lasting = set(first).intersection(*others)
    return [
        error
        for error in first
        if error in lasting
        and error.path not in unreadable
        and (whole or not (compares(error.code) or unreadable.below(error.path)))
    ]


def compares(code: str) -> bool:
    """Whether a rule weighs several fields against each other."""
    rule = by_code(code)
    return rule is not None and rule.compares
