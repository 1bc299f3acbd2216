"""Schedules, as robfig/cron v3's standard parser reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.schedules import DESCRIPTORS, Calendar, Interval, ScheduleError, parse_schedule

MINUTES, HOURS = frozenset(range(60)), frozenset(range(24))
DAYS, MONTHS, WEEKDAYS = frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7))
ZERO = frozenset({0})


def calendar(text: str) -> Calendar:
    found = parse_schedule(text)
    assert isinstance(found, Calendar)
    return found


def test_stars_are_everything() -> None:
    assert calendar("* * * * *") == Calendar(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
    assert calendar("? ? ? ? ?") == calendar("* * * * *")


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("5", {5}),
        ("05", {5}),
        ("+5", {5}),
        ("5-8", {5, 6, 7, 8}),
        ("1,3-4,59", {1, 3, 4, 59}),
        ("*/20", {0, 20, 40}),
        ("?/30", {0, 30}),
        ("7/25", {7, 32, 57}),
        ("10-20/5", {10, 15, 20}),
        ("*/100", {0}),
        ("*/9223372036854775807", {0}),
        ("0/00000000000000000000020", {0, 20, 40}),
        ("3,3,3", {3}),
    ],
)
def test_minutes(field: str, values: set[int]) -> None:
    found = calendar(f"{field} * * * *")
    assert found.minutes == values
    assert found.ignored_parts == ()


def test_names_of_months_and_weekdays_in_any_case() -> None:
    found = calendar("0 0 * JAN,mar-May SUN,Mon-wed")
    assert found.months == {1, 3, 4, 5}
    assert found.weekdays == {0, 1, 2, 3}


@pytest.mark.parametrize("blank", [" ", "\t", "  ", "\n", "\xa0", "\u3000"])
def test_any_blank_parts_fields(blank: str) -> None:
    assert calendar(blank.join(["1", "2", "3", "4", "5"])).hours == {2}
    assert calendar(f"{blank}1 2 3 4 5{blank}").hours == {2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must have 5 fields"),
        ("   ", "found 0"),
        ("error schedule", "found 2"),
        ("* * * *", "found 4"),
        ("* * * * * *", "found 6"),
        ("60 * * * *", "minute must be between 0 and 59, found 60"),
        ("0-60 * * * *", "minute must be between 0 and 59, found 60"),
        ("* 24 * * *", "hour must be between 0 and 23, found 24"),
        ("* * 0 * *", "day of month must be between 1 and 31, found 0"),
        ("* * 32 * *", "day of month must be between 1 and 31, found 32"),
        ("* * * 13 *", "month must be between 1 and 12, found 13"),
        ("* * * * 7", "weekday must be between 0 and 6, found 7"),
        ("8-5 * * * *", 'minute "8-5" begins after it ends'),
        ("* * * * fri-mon", 'weekday "fri-mon" begins after it ends'),
        ("1-2-3 * * * *", "more than one -"),
        ("1/2/3 * * * *", "more than one /"),
        ("*/0 * * * *", "a step of 0"),
        ("*/9223372036854775808 * * * *", "a step of more than 9223372036854775807"),
        ("5/99999999999999999999999 * * * *", "a step of more than"),
        ("*/-5 * * * *", 'found "-5" of "*/-5"'),
        ("-5 * * * *", 'minute must be a number, found "" of "-5"'),
        ("1/ * * * *", 'found "" of "1/"'),
        ("a * * * *", 'minute must be a number, found "a"'),
        ("* * * foo *", 'month must be a number or a name, found "foo"'),
        ("jan * * * *", 'minute must be a number, found "jan"'),
        ("1.5 * * * *", 'found "1.5"'),
        ("² * * * *", 'found "²"'),
        ("1_0 * * * *", 'found "1_0"'),
        ("999999999999999999999 * * * *", "must be between 0 and 59"),
        ("1\x1c2 * * * *", "must be a number"),
        ("@Daily", 'no descriptor "@Daily"'),
        ("@reboot", "known are @yearly"),
        ("@daily ", 'no descriptor "@daily "'),
        (" @daily", "found 1"),
        ("@every", 'no descriptor "@every"'),
        ("@every ", 'found ""'),
        ("@every 5", "needs a duration"),
        ("@every  5m", "needs a duration"),
        ("@every 9999999h", "needs a duration"),
    ],
)
def test_what_is_none_has_a_reason(text: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        parse_schedule(text)
    assert problem in str(raised.value)


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_descriptors_stand_for_fields(name: str) -> None:
    assert parse_schedule(name) == parse_schedule(DESCRIPTORS[name])


def test_descriptors_mean_what_they_say() -> None:
    yearly, weekly, hourly = (calendar(name) for name in ("@annually", "@weekly", "@hourly"))
    assert yearly == Calendar(ZERO, ZERO, frozenset({1}), frozenset({1}), WEEKDAYS)
    assert weekly == Calendar(ZERO, ZERO, DAYS, MONTHS, ZERO)
    assert hourly == Calendar(ZERO, HOURS, DAYS, MONTHS, WEEKDAYS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("@every 1m", 60), ("@every 1h30m", 5400), ("@every +3s", 3), ("@every 1s", 1)],
)
def test_intervals(text: str, seconds: int) -> None:
    assert parse_schedule(text) == Interval(seconds)


@pytest.mark.parametrize(
    ("text", "seconds", "ignored_part"),
    [
        ("@every 0s", 1, "less than a second"),
        ("@every -5m", 1, "less than a second"),
        ("@every 100ms", 1, "less than a second"),
        ("@every 90.5s", 90, '"90.5s" counts as 90s'),
    ],
)
def test_intervals_that_count_as_others(text: str, seconds: int, ignored_part: str) -> None:
    found = parse_schedule(text)
    assert isinstance(found, Interval)
    assert found.seconds == seconds
    assert [ignored_part in each for each in found.ignored_parts] == [True]


@pytest.mark.parametrize(
    ("text", "same", "ignored_part"),
    [
        ("*-5 * * * *", "* * * * *", '"*-5" counts as "*"'),
        ("?-x/2 * * * *", "? * * * *", '"?-x" counts as "?"'),
        ("1,,2 * * * *", "1,2 * * * *", 'nothing stands beside a comma of "1,,2"'),
        ("1, * * * *", "1 * * * *", "comma"),
    ],
)
def test_what_does_not_count_is_reported(text: str, same: str, ignored_part: str) -> None:
    found = calendar(text)
    assert ignored_part in found.ignored_parts[0]
    if "/" not in text:
        assert found.minutes == calendar(same).minutes


def test_what_is_said_again_and_again_is_complained_of_once() -> None:
    """Each complaint holds the field, so that together they would be as long as its square."""
    many = 100_000
    (ignored_part,) = calendar(f"{',' * many}1 * * * *").ignored_parts
    assert len(ignored_part) < 2 * many
    assert calendar(f"{'*-5,' * many}1 * * * *").ignored_parts == ('"*-5" counts as "*"',)
    assert calendar(f"{'*/1,' * many}1 * * * *").minutes == MINUTES


@pytest.mark.parametrize(
    ("text", "either"),
    [
        ("0 0 1 * 1", True),
        ("0 0 1 * *", False),
        ("0 0 * * 1", False),
        ("0 0 ? * 1", False),
        ("0 0 */2 * 1", True),
        ("0 0 */1 * 1", False),
        ("0 0 1,* * 1", False),
    ],
)
def test_a_day_or_a_weekday_is_enough_when_both_are_listed(text: str, either: bool) -> None:
    assert calendar(text).either_day is either


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("* * * * *", True),
        ("0 0 29 2 *", True),
        ("0 0 30 2 *", False),
        ("0 0 31 2,4,6,9,11 *", False),
        ("0 0 31 4-5 *", True),
        ("0 0 30 2 1", True),
        ("0 0 30 2 ?", False),
        (", * * * *", False),
        ("0 0 * * ,", False),
        ("@every 1h", True),
    ],
)
def test_a_schedule_that_is_never_due(text: str, possible: bool) -> None:
    assert parse_schedule(text).possible is possible


@given(st.one_of(st.text(), st.text("0123456789*?/,-+ @evrymonMON", max_size=30)))
def test_any_text_is_a_schedule_or_told_why(text: str) -> None:
    try:
        found = parse_schedule(text)
    except ScheduleError:
        return
    if isinstance(found, Calendar):
        assert found.minutes <= MINUTES
        assert found.hours <= HOURS
        assert found.days <= DAYS
        assert found.months <= MONTHS
        assert found.weekdays <= WEEKDAYS
    else:
        assert found.seconds >= 1
