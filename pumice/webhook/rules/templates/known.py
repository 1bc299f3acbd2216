"""Templates that were in order when they were judged, so that they need not be judged again.

Whether a template is in order depends on nothing but itself and the settings. Jobs are made from the same
manifests over and over, and every change of a Job brings all its templates along; to know one again costs
a fifth of judging it. What the Jobs of a sweep differ in, arguments and the values of variables, no rule
looks at, so a template is known again whatever these are.
"""

from operator import itemgetter
from typing import Any

import msgspec

__all__ = ["KnownTemplates"]

Raw = dict[str, Any]

_MOST = 256
"""Templates that are remembered; with the next one the oldest is forgotten."""

_VARIABLE = itemgetter("name", "value")
_TEXTS = ("command", "args")
_LEFT_OUT = b""
"""Stands for texts that are left out; no JSON has bytes, so it is never taken for anything else."""

_LONGEST = 8192
"""Bytes of one that is remembered, so that all of them together take 2 MiB at most."""


class KnownTemplates:
    """What one set of settings has found nothing wrong with, not even anything doubtful."""

    __slots__ = ("_encode", "_found")

    def __init__(self) -> None:
        """Know none yet."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._found: dict[bytes, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __len__(self) -> int:
        return len(self._found)

    def key(self, template: Raw) -> bytes:
        """A template to the last bit that a rule looks at; empty for one that is not remembered."""
        try:
            key = self._encode(_judged(template))
        except (ValueError, TypeError, OverflowError, RecursionError):
            return b""  # it holds numbers without end, or text that is none
        return key if len(key) <= _LONGEST else b""

    def add(self, key: bytes) -> None:
        """Remember a template by its key."""
        if not key:
            return
        if len(self._found) >= _MOST:
            del self._found[next(iter(self._found))]
        self._found[key] = None


def _judged(template: Raw) -> Raw:
    """The part of a template that rules look at; all of it where its containers are not in order."""
    try:
        spec = template["spec"]
        containers = [_judged_of_container(each) for each in spec["containers"]]
    except (KeyError, TypeError, AttributeError):
        return template
    return {**template, "spec": {**spec, "containers": containers}}


def _judged_of_container(container: Raw) -> Raw:
    judged = {**container}
    for field in _TEXTS:
        if type(found := container.get(field)) is list:
            "".join(found)  # raises where one of them is no text
            judged[field] = _LEFT_OUT
    variables = container.get("env")
    if variables and sum(map(len, variables)) == 2 * len(variables):
        try:
            names, values = zip(*map(_VARIABLE, variables), strict=True)
        except KeyError:
            return judged  # some have their values from elsewhere
        "".join(values)
        if len(set(names)) == len(names):  # of two with the same name, one may hold the other
            judged["env"] = [_LEFT_OUT, *names]
    return judged
