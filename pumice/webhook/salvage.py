"""The rest of an object of which some fields cannot be read.

A user with a text where a number belongs, and a misspelt plugin besides, is told of both. So the
unreadable fields are taken out and the rest is judged; what is said about the missing fields, or by
rules that weigh several fields against each other, is left out, since it may be wrong.
"""

import copy
import re
from collections.abc import Iterable
from typing import Any

from pumice.api.fields import FieldError
from pumice.webhook.rules.catalogue import by_code
from pumice.webhook.rules.within import Within

__all__ = ["steps_of", "trusted", "without"]

_SEGMENT = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")


def without(raw: Any, paths: Iterable[str]) -> Any:
    """A copy of a raw object without some of its fields; list items become empty objects.

    A path that cannot be followed, because a key of it has dots, is passed over.
    """
    rest = copy.deepcopy(raw)
    for path in paths:
        _remove(rest, steps_of(path))
    return rest


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


def trusted(found: Iterable[FieldError], paths: Iterable[str]) -> list[FieldError]:
    """Of what was found in the rest, that which holds for the whole too.

    What is said about something of which a part was taken out may be said for want of that part.
    """
    unreadable = Within(paths)
    return [
        error
        for error in found
        if not ((rule := by_code(error.code)) and rule.compares)
        and error.path not in unreadable
        and not unreadable.below(error.path)
    ]
