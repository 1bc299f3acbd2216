"""When schedules are due, against a reference that looks at every minute of three years."""

from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.occurrences import LAST, Occurrences
from pumice.api.schedules import Calendar, parse_schedule, time_zone

ZONES = [
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Pacific/Apia",
]
"""With an hour, half an hour and two hours of summer time, at midnight, in Ramadan, and with odd offsets."""

BEGIN = int(datetime(2018, 1, 1, tzinfo=UTC).timestamp()) // 60
END = int(datetime(2021, 1, 1, tzinfo=UTC).timestamp()) // 60
QUARTER = 15  # minutes; clocks are changed at none other in these years


@cache
def clock(zone: str) -> tuple[np.ndarray, np.ndarray]:
    """For every minute: the local one, counted from 1970, and whether it is a repeated one."""
    moments = [
        datetime.fromtimestamp(minute * 60, time_zone(zone))
        for minute in range(BEGIN, END, QUARTER)
    ]
    offsets = [(moment.utcoffset() or timedelta()) // timedelta(minutes=1) for moment in moments]
    folds = [bool(moment.fold) for moment in moments]
    return np.arange(BEGIN, END) + np.repeat(offsets, QUARTER), np.repeat(folds, QUARTER)


FIRST_DAY = BEGIN // 1440 - 2
DATES = [datetime(1970, 1, 1) + timedelta(days=FIRST_DAY + day) for day in range(3 * 366 + 4)]


def listed(calendar: Calendar, local: np.ndarray) -> np.ndarray:
    """Which local minutes a calendar lists."""
    days = []
    for each in DATES:
        by_date, by_weekday = each.day in calendar.days, each.isoweekday() % 7 in calendar.weekdays
        day = by_date or by_weekday if calendar.either_day else by_date and by_weekday
        days.append(day and each.month in calendar.months)
    times = [
        minute // 60 in calendar.hours and minute % 60 in calendar.minutes for minute in range(1440)
    ]
    found: np.ndarray = np.array(days)[local // 1440 - FIRST_DAY] & np.array(times)[local % 1440]
    return found


def reference(calendar: Calendar, zone: str, *, once: bool = False) -> np.ndarray:
    """Every instant of the three years, in UNIX seconds."""
    local, repeated = clock(zone)
    due = listed(calendar, local)
    if once and len(calendar.hours) < 24:
        due &= ~repeated
        for gap in np.flatnonzero(np.diff(local) > 1):
            due[gap + 1] |= listed(calendar, np.arange(local[gap] + 1, local[gap + 1])).any()
    return (np.flatnonzero(due) + BEGIN) * 60


def item(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    span = st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.builds("{}/{}".format, st.one_of(st.just("*"), span), st.integers(1, high))
    return st.one_of(st.just("*"), value.map(str), span, step)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(item(low, high), min_size=1, max_size=3).map(",".join)


SCHEDULES = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).map(
    " ".join
)
MOMENTS = st.floats(BEGIN * 60, END * 60 - 1)


@given(SCHEDULES, st.sampled_from(ZONES), st.booleans(), st.data())
def test_any_schedule_in_odd_zones(text: str, zone: str, once: bool, data: st.DataObject) -> None:
    calendar = parse_schedule(text)
    assert isinstance(calendar, Calendar)
    found = Occurrences(calendar, time_zone(zone), once=once)
    wanted = reference(calendar, zone, once=once)
    local, _ = clock(zone)
    changes = (np.flatnonzero(np.diff(local) != 1) + BEGIN + 1) * 60
    near = st.builds(
        lambda change, aside: float(change) + aside,
        st.sampled_from([int(each) for each in changes] or [BEGIN * 60]),
        st.integers(-3 * 3600, 3 * 3600),
    ).filter(lambda moment: BEGIN * 60 <= moment < END * 60)
    for moment in data.draw(st.lists(st.one_of(MOMENTS, near), min_size=3, max_size=8)):
        place = int(np.searchsorted(wanted, moment, side="right"))
        later = found.after(moment)
        if place < len(wanted):
            assert later == wanted[place]
        else:
            assert later is None or later >= END * 60
        earlier = wanted[place - 1] if place else None
        assert found.before(moment, BEGIN * 60 - 1) == earlier
    if len(wanted) < 200:
        at, walked = BEGIN * 60 - 1.0, []
        while (later := found.after(at)) is not None and later < END * 60:
            walked.append(later)
            at = later
        assert walked == list(wanted)


@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_of_three_years(zone: str) -> None:
    """A schedule of the hours in which clocks are changed."""
    calendar = parse_schedule("*/15 0-3 * * *")
    assert isinstance(calendar, Calendar)
    for once in (False, True):
        found = Occurrences(calendar, time_zone(zone), once=once)
        wanted = reference(calendar, zone, once=once)
        at, walked = BEGIN * 60 - 1.0, []
        while (later := found.after(at)) is not None and later < END * 60:
            walked.append(later)
            at = later
        assert walked == list(wanted)


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def due(schedule: str, zone: str, after: str, count: int, **options: object) -> list[str]:
    found = Occurrences(parse_schedule(schedule), time_zone(zone), **options)  # type: ignore[arg-type]
    at, shown = instant(after), []
    for _ in range(count):
        later = found.after(at)
        assert later is not None
        assert found.before(later, at) == later
        assert found.before(later - 1, at) is None
        at = later
        shown.append(datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"))
    return shown


def test_a_day_that_does_not_exist() -> None:
    """Samoa went from 29 to 31 December 2011."""
    shown = due("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 2)
    assert shown == ["2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"]
    shown = due("0 12 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", 1)
    assert shown == ["2012-12-29T22:00:00Z"]
    shown = due("0 12 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", 1, once=True)
    assert shown == ["2011-12-30T10:00:00Z"]


def test_a_leap_day_that_is_eight_years_away() -> None:
    assert due("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1) == ["2104-02-29T00:00:00Z"]


def test_intervals_are_counted_from_their_anchor() -> None:
    anchor = instant("2026-03-02T08:00:20Z")
    shown = due("@every 30m", "Asia/Kathmandu", "2026-03-02T08:00:20Z", 2, anchor=anchor)
    assert shown == ["2026-03-02T08:30:20Z", "2026-03-02T09:00:20Z"]
    found = Occurrences(parse_schedule("@every 30m"), UTC, anchor=anchor)
    assert found.before(anchor + 1799, 0) is None
    assert found.before(anchor + 1800.5, 0) == anchor + 1800
    assert found.after(anchor - 1e6) == anchor + 1800


@pytest.mark.parametrize(
    ("schedule", "moment"),
    [
        ("59 23 31 2 *", "2026-03-02T10:00:00Z"),
        ("59 23 31 2 *", "1970-01-01T00:00:00Z"),
        ("@every 1s", "9999-12-31T23:59:59Z"),
        ("* * * * *", "9999-12-31T23:59:59Z"),
    ],
)
def test_what_is_never_due(schedule: str, moment: str) -> None:
    found = Occurrences(parse_schedule(schedule), time_zone("Pacific/Apia"))
    assert found.after(instant(moment)) is None


def test_no_moment_is_too_far_away() -> None:
    for schedule in ("* * * * *", "0 0 29 2 *", "@every 1s"):
        found = Occurrences(parse_schedule(schedule), time_zone("America/New_York"))
        for moment in (-1e15, -62135596800.0, 0.0, float(LAST), 1e15):
            later, earlier = found.after(moment), found.before(moment, -1e15)
            assert later is None or 0 <= later < LAST
            assert earlier is None or 0 <= earlier < LAST


def test_intervals_years_behind_cost_nothing() -> None:
    """Neither do schedules of every minute: the last instant is searched backwards."""
    now = instant("2026-03-02T10:00:00Z")
    for schedule in ("@every 1s", "* * * * *"):
        assert Occurrences(parse_schedule(schedule), UTC).before(now, 0.0) == now
