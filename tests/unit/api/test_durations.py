import pytest

from pumice.api.durations import (
    duration_problem,
    format_duration,
    parse_nanoseconds,
    parse_seconds,
)
from pumice.api.json_words import quoted

SECOND = 10**9
READ = {
    "0": 0,
    "-0": 0,
    "0s": 0,
    "1h": 3600 * SECOND,
    "1h30m": 5400 * SECOND,
    "90m": 5400 * SECOND,
    "-1.5h": -5400 * SECOND,
    "+2m": 120 * SECOND,
    ".5s": SECOND // 2,
    "1.s": SECOND,
    "10ms": SECOND // 100,
    "3us": 3000,
    "3µs": 3000,
    "1s1h": 3601 * SECOND,
    "9223372036854775807ns": 2**63 - 1,
}


@pytest.mark.parametrize(("text", "nanoseconds"), READ.items())
def test_durations_as_go_reads_them(text: str, nanoseconds: int) -> None:
    assert parse_nanoseconds(text) == nanoseconds
    assert duration_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "1 h",
        "h",
        "1d",
        "1h30",
        "soon",
        "1h\n",
        "--1h",
        "1h-1m",
        "9223372036854775808ns",
        "1h" * 60,
    ],
)
def test_what_is_no_duration(text: str) -> None:
    assert parse_nanoseconds(text) is None
    problem = duration_problem(text) or ""
    assert problem.startswith("time: ")
    assert problem.endswith(f" {quoted(text)}; write a duration such as 90s, 10m or 1h30m")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("10", "missing unit in duration"),
        ("1h30", "missing unit in duration"),
        ("10 minutes", 'unknown unit " minutes" in duration'),
        ("1h5d", 'unknown unit "d" in duration'),
        ("soon", "invalid duration"),
        ("-", "invalid duration"),
    ],
)
def test_the_fault_of_a_duration_is_named_as_go_does(text: str, fault: str) -> None:
    assert (duration_problem(text) or "").startswith(f'time: {fault} "{text}"; ')


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("0", 0.0),
        ("", None),
        ("ten", None),
        ("10", None),
        ("-5s", None),
        ("5s!", None),
    ],
)
def test_how_long_to_wait_is_read_in_seconds(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "7s"), (120, "2m0s"), (3723, "1h2m3s"), (0, "0s"), (-1, "0s")]
)
def test_seconds_are_written_as_kubernetes_writes_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
