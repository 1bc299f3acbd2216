"""Schedules of CronJobs: five fields, or a descriptor such as `@daily` or `@every 90m`.

The syntax is that of robfig/cron v3's standard parser, which Volcano and Kubernetes use: no seconds, no years, weekdays
0 to 6, names in any case, `?` for `*`. That parser silently ignores parts of some texts (it reads `*-5` as `*`). These
are read in the same way and reported in `ignored_parts`.

Names of time zones are those of the IANA database in Pumice's package `tzdata`, not of the machine, so that a manifest gets
the same result on every machine and in every image.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from pumice.api.durations import parse_nanoseconds
from pumice.api.fields import did_you_mean


class ScheduleError(ValueError):
    """A text that is not a schedule; the message is one clause with the reason."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The minutes whose hour, day, month and weekday are all listed.

    Attributes:
        minutes: 0 to 59.
        hours: 0 to 23.
        days: Of the month, 1 to 31.
        months: 1 to 12.
        weekdays: 0 for Sunday to 6 for Saturday.
        either_day: Whether a day matches if one of day and weekday does: neither begins with `*`.
        ignored_parts: Parts of the text that have no effect.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool = False
    ignored_parts: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether there is such a minute in any year."""
        if not (self.minutes and self.hours and self.months):
            return False
        dated = any(day <= _LONGEST[month] for month in self.months for day in self.days)
        if self.either_day:
            return dated or bool(self.weekdays)
        return dated and bool(self.weekdays)


@dataclass(frozen=True, slots=True)
class Interval:
    """A fixed interval in seconds.

    Attributes:
        seconds: 1 or more.
        ignored_parts: Parts of the text that have no effect.
    """

    seconds: int
    ignored_parts: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """True if the schedule has at least one run."""
        return True


_LONGEST = dict.fromkeys(range(1, 13), 31) | {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
"""Days of each month, in the years that have most."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("weekday", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)

DESCRIPTORS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Descriptors and the five fields that they stand for; `@every` stands for an `Interval`."""

_EVERY = "@every "
_BLANKS = re.compile("[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""Characters that Go takes for blanks; Python's set differs."""


def parse_schedule(text: str) -> Calendar | Interval:
    """Read a schedule.

    Raises:
        ScheduleError: The text is not a schedule.
    """
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return _interval(text.removeprefix(_EVERY))
        fields = DESCRIPTORS.get(text)
        if fields is None:
            known = ", ".join([*DESCRIPTORS, "@every <duration>"])
            raise ScheduleError(f'there is no descriptor "{text}", known are {known}')
        return parse_schedule(fields)
    parts = [part for part in _BLANKS.split(text) if part]
    if len(parts) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise ScheduleError(f"must have 5 fields ({names}) or be a descriptor, found {len(parts)}")
    ignored_parts: list[str] = []
    read = [_field(part, field, ignored_parts) for part, field in zip(parts, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return Calendar(
        minutes,
        hours,
        days,
        months,
        weekdays,
        not (any_day or any_weekday),
        tuple(ignored_parts),
    )


def _field(text: str, field: _Field, ignored_parts: list[str]) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether it allows any value.

    Repeated items are read and reported once.
    """
    values: set[int] = set()
    anything = False
    for item in dict.fromkeys(text.split(",")):
        if not item:
            ignored_parts.append(f'nothing stands beside a comma of "{text}"')
            continue
        found, any_value = _item(item, field, ignored_parts)
        values.update(found)
        anything |= any_value
    return frozenset(values), anything


def _item(text: str, field: _Field, ignored_parts: list[str]) -> tuple[range, bool]:
    """One of a field's values, ranges or steps."""
    span, *steps = text.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        raise ScheduleError(f'{field.name} "{text}" has more than one /')
    anything = ends[0] in ("*", "?")
    if anything:
        if len(ends) > 1:
            ignored_parts.append(f'"{span}" counts as "{ends[0]}"')
        low, high = field.low, field.high
    elif len(ends) > 2:
        raise ScheduleError(f'{field.name} "{text}" has more than one -')
    else:
        low, high = _number(ends[0], text, field), _number(ends[-1], text, field)
    step = 1
    if steps:
        step = _plain(steps[0], text, field)
        if step == 0:
            raise ScheduleError(f'{field.name} "{text}" has a step of 0')
        if step > _LONGEST_STEP:
            raise ScheduleError(f'{field.name} "{text}" has a step of more than {_LONGEST_STEP}')
        if len(ends) == 1:
            high = field.high
    if low < field.low or high > field.high:
        found = low if low < field.low else high
        raise ScheduleError(
            f"{field.name} must be between {field.low} and {field.high}, found {found}"
        )
    if low > high:
        raise ScheduleError(f'{field.name} "{text}" begins after it ends')
    return range(low, high + 1, step), anything and step == 1


def _number(text: str, item: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _plain(text, item, field) if named is None else named


def _plain(text: str, item: str, field: _Field) -> int:
    """A number as Go reads it: digits with an optional plus. A very long one counts as one that is too large."""
    digits = text.removeprefix("+")
    if not digits.isdecimal() or not digits.isascii():
        kind = "a number or a name" if field.names else "a number"
        shown = f' of "{item}"' if item != text else ""
        raise ScheduleError(f'{field.name} must be {kind}, found "{text}"{shown}')
    return int(digits[-_DIGITS:]) if len(digits.lstrip("0")) <= _DIGITS else 10**_DIGITS


_DIGITS = 19
_LONGEST_STEP = 2**63 - 1
"""Largest number that Go reads. A step that is longer than its field selects the first value only."""

_SECOND = 10**9
"""Nanoseconds."""


def _interval(text: str) -> Interval:
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None:
        raise ScheduleError(f'@every needs a duration such as 90s, 10m or 1h30m, found "{text}"')
    seconds, rest = divmod(nanoseconds, _SECOND)
    if seconds < 1:
        return Interval(1, (f'"{text}" is less than a second and counts as 1s',))
    return Interval(seconds, (f'"{text}" counts as {seconds}s',) if rest else ())


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
