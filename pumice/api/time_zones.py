"""Names of time zones, as the IANA database has them.

The names are those of the database in Pumice's package `tzdata`, not of the machine, so that a manifest
gets the same result on every machine and in every image.
"""

import re
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from pumice.api.fields import did_you_mean

__all__ = ["time_zone", "time_zone_problem", "time_zones"]

_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")


@cache
def time_zones() -> frozenset[str]:
    """Every name of a time zone, old names included."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(listed.split())


@cache
def time_zone(name: str) -> ZoneInfo:
    """A time zone of the database in package `tzdata`; an empty name is UTC, as in Go.

    Raises:
        ValueError: There is none of that name; the message says why.
    """
    if name and (problem := time_zone_problem(name)):
        raise ValueError(problem)
    parts = (name or "UTC").split("/")
    with resources.files("tzdata").joinpath("zoneinfo", *parts).open("rb") as data:
        return ZoneInfo.from_file(data, key=name or "UTC")


def time_zone_problem(name: str) -> str | None:
    """Explain why a string is not the name of a time zone; None if it is one."""
    if not name:
        return "timeZone must be nil or non-empty string; leave it out for the time zone of the controller"
    if name.lower() == "local":
        return f'timeZone can\'t be Local, found "{name}"; write a name such as Europe/Oslo or UTC'
    for part in name.split("/"):
        if not _PART.fullmatch(part) or part in (".", "..") or part.startswith("-"):
            return f'unknown timeZone "{name}": no time zone has such a name; write one such as Europe/Oslo or UTC'
    if name not in time_zones():
        hint = did_you_mean(name, time_zones())
        return f'invalid timeZone "{name}": the IANA database has no such time zone{hint}'
    return None
