import pytest

from pumice.api.durations import duration_problem, parse_nanoseconds

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
    assert duration_problem(text) == (
        f'must be a duration such as 90s, 10m or 1h30m, found "{text}"'
    )
