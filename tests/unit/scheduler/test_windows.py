"""Windows of the day: when they are open, and when that changes."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.plugins.tdm import next_change, read_window, window_problem
from tests.unit.scheduler.scenarios import Raw, load_cases

OSLO = ZoneInfo("Europe/Oslo")
ZONES = st.sampled_from(["UTC", "Europe/Oslo", "Australia/Lord_Howe", "America/St_Johns"])
TIMES = st.integers(0, 24 * 60 - 1).map(lambda at: f"{at // 60}:{at % 60:02}")
DAYS = 1_711_756_800  # 30 March 2024; clocks change in the following days, and again in the autumn


def _at(text: str, day: int = 15, zone: ZoneInfo = OSLO) -> float:
    hour, minute = text.split(":")
    return datetime(2024, 1, day, int(hour), int(minute), tzinfo=zone).timestamp()


@pytest.mark.parametrize("case", load_cases("tdm.yaml", "windows"), ids=lambda case: case["text"])
def test_windows(case: Raw) -> None:
    window = read_window(case["text"])
    assert window is not None
    for text in (*case["open"], *case["closed"]):
        assert window.is_open(_at(text), OSLO) is (text in case["open"]), text


@given(
    start=TIMES,
    end=TIMES,
    name=ZONES,
    now=st.integers(DAYS, DAYS + 300 * 86_400),
    part=st.floats(0, 1),
)
def test_nothing_changes_before_the_next_change(
    start: str, end: str, name: str, now: int, part: float
) -> None:
    window, zone = read_window(f"{start}-{end}"), ZoneInfo(name)
    assert window is not None
    change = next_change([window], now, zone)
    assert change is not None
    assert now < change <= now + 49 * 3600
    between = now + part * (change - now)
    assert between >= change or window.is_open(between, zone) is window.is_open(now, zone)


@given(start=TIMES, end=TIMES, now=st.integers(DAYS, DAYS + 300 * 86_400))
def test_without_summer_time_it_is_the_time_of_day_that_counts(
    start: str, end: str, now: int
) -> None:
    window = read_window(f"{start}-{end}")
    assert window is not None
    clock = datetime.fromtimestamp(now, UTC).time()
    inside = (
        window.start <= clock < window.end
        if window.start < window.end
        else clock >= window.start or clock < window.end
    )
    assert window.is_open(now, ZoneInfo("UTC")) is inside


@pytest.mark.parametrize(
    ("now", "is_open"), [("2024-03-31T01:29:00", False), ("2024-03-31T01:30:00", True)]
)
def test_a_skipped_time_counts_as_if_the_clock_had_gone_on(now: str, is_open: bool) -> None:
    """In Oslo 2:00 is followed by 3:00, so that 2:30 is 3:30."""
    window = read_window("2:30-5:00")
    assert window is not None
    assert window.is_open(datetime.fromisoformat(f"{now}+00:00").timestamp(), OSLO) is is_open


def test_without_windows_nothing_changes() -> None:
    assert next_change([], 0.0, OSLO) is None
    assert window_problem("1:00-2:00") is None
