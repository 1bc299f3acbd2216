"""Objects with fields of wrong types, judged without those fields.

The type problem is reported, the field is dropped, and the rules judge the rest, so that a user with a
string in place of a number and a misspelt plugin hears about both. Nothing is guessed: what the field may
have meant is not judged, and results that its absence may have caused are left out.
"""

import copy
import functools
import operator
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from pumice.api.fields import FieldError
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.jobs.defaults import JOB_ZERO
from pumice.webhook.rules.within import unaffected

__all__ = ["steps_of", "trusted", "value_at", "without"]

_SEGMENT = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")


def without(raw: Any, paths: Iterable[str]) -> Any:
    """A copy of a raw object without some of its fields; list items become empty objects.

    A path that cannot be followed, because a key of it has dots, is passed over.
    """
    rest = copy.deepcopy(raw)
    for path in paths:
        _remove(rest, steps_of(path))
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


def trusted(found: Iterable[FieldError], dropped: Iterable[str]) -> list[FieldError]:
    """Results about the rest that hold for the whole object, too; see `unaffected`."""
    return unaffected(found, dropped, _COMPARING)


_COMPARING = frozenset(
    rule.code for rule in ALL if rule.compares and not rule.code.startswith("TPL-")
) | {JOB_ZERO.code}
"""Rules that compare fields, and the one whose message names a default that is computed from several.

Rules of pod templates compare fields of one template, which drops its own; see `pod_template`.
"""
