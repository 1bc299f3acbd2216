"""Names of time zones."""

import subprocess
import sys
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.schedules import time_zone_problem, time_zones


@pytest.mark.parametrize(
    "name",
    [
        "UTC",
        "Etc/UTC",
        "Etc/GMT+8",
        "Etc/GMT-14",
        "Pacific/Honolulu",
        "America/Port-au-Prince",
        "America/Argentina/ComodRivadavia",
        "America/North_Dakota/New_Salem",
        "Asia/Calcutta",
        "EST5EDT",
    ],
)
def test_names_of_the_database(name: str) -> None:
    assert time_zone_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "timeZone must be nil or non-empty string"),
        ("Local", "timeZone can't be Local"),
        ("LOCAL", "timeZone can't be Local"),
        ("Asia/./Shanghai", "unknown timeZone"),
        ("Asia/../Shanghai", "unknown timeZone"),
        ("/etc/localtime", "unknown timeZone"),
        ("Asia/", "unknown timeZone"),
        ("America/-NewYork", "unknown timeZone"),
        ("New York", "unknown timeZone"),
        ("UTC!", "unknown timeZone"),
        ("Europe/Ośló", "unknown timeZone"),
        ("Europe/Oslo\n", "unknown timeZone"),
        ("Europe/Abcdefghijklmno", "unknown timeZone"),
        ("Amerrica/New_York", 'did you mean "America/New_York"?'),
        ("europe/oslo", 'did you mean "Europe/Oslo"?'),
        ("utc", 'did you mean "UTC"?'),
        ("Mars", 'invalid timeZone "Mars"'),
        ("zone.tab", 'invalid timeZone "zone.tab"'),
    ],
)
def test_others_have_a_reason(name: str, problem: str) -> None:
    assert problem in (time_zone_problem(name) or "")


def test_every_name_of_the_database_is_one() -> None:
    assert len(time_zones()) > 500
    assert [name for name in time_zones() if time_zone_problem(name)] == []


def test_every_name_can_be_loaded() -> None:
    for name in ("UTC", "Pacific/Honolulu", "America/Argentina/ComodRivadavia"):
        assert zoneinfo.ZoneInfo(name).key == name


def test_the_machine_has_no_say() -> None:
    """The same names where the machine has no database of its own."""
    script = (
        "import zoneinfo; zoneinfo.reset_tzpath([]);"
        "from pumice.api.schedules import time_zones, time_zone_problem;"
        "assert time_zone_problem('Europe/Oslo') is None;"
        "print(len(time_zones()))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONTZPATH": ""},
    )
    assert int(found.stdout) == len(time_zones())


@given(st.text())
def test_any_text_is_a_name_or_told_why(text: str) -> None:
    assert time_zone_problem(text) is None or text not in time_zones()
