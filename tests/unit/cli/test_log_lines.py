"""Lines of logs: their order, what is left out when a log is read again, and what a terminal gets of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cli.live.log_lines import LONGEST, Lines, in_order, shown


def texts(log: Lines, *chunks: bytes) -> list[str]:
    return [line.text for chunk in chunks for line in log.feed(chunk)]


def at(second: int, text: str, fraction: str = "", zone: str = "Z") -> bytes:
    return f"2026-01-01T00:00:{second:02}{fraction}{zone} {text}\n".encode()


def test_lines_of_several_logs_are_in_the_order_of_their_times() -> None:
    """Nanoseconds count, and nodes may write times of other zones."""
    first = at(1, "a", ".000000002") + at(3, "d") + at(3, "e")
    second = at(1, "b", ".1") + b"2026-01-01T02:00:02.5+02:00 c\n" + at(4, "f")
    logs = [list(Lines(number).feed(each)) for number, each in enumerate((first, second))]
    assert [line.text for line in in_order(logs)] == ["a", "b", "c", "d", "e", "f"]


def test_a_line_without_a_time_stays_behind_the_one_before_it() -> None:
    traceback = at(1, "Traceback:") + b"  line 3\n"
    logs = [list(Lines(0).feed(traceback)), list(Lines(1).feed(at(1, "other")))]
    assert [line.text for line in in_order(logs)] == ["Traceback:", "  line 3", "other"]


def test_a_clock_that_is_set_back_does_not_change_the_order_of_a_log() -> None:
    log = Lines(0)
    assert texts(log, at(9, "a") + at(2, "b") + at(3, "c")) == ["a", "b", "c"]


@given(st.lists(st.integers(0, 59), min_size=1, max_size=20), st.integers(0, 20), st.randoms())
def test_a_log_that_broke_off_goes_on_without_loss(
    seconds: list[int], broken: int, drawn: random.Random
) -> None:
    """The API server repeats the lines of the second from which it is asked."""
    lines = [at(second, str(number)) for number, second in enumerate(sorted(seconds))]
    log = Lines(0)
    before = b"".join(lines[:broken])
    cut = drawn.randint(0, len(before))
    found = texts(log, before[:cut], before[cut:])
    since = log.resume()
    if since is None:
        assert not found
    again = [line for line in lines if since is None or line[:20].decode() >= since]
    assert found + texts(log, b"".join(again)) == list(map(str, range(len(lines))))


def test_a_log_without_times_is_read_again_without_its_first_lines() -> None:
    log = Lines(0)
    assert texts(log, b"one\ntwo\n") == ["one", "two"]
    assert log.resume() is None
    assert texts(log, b"one\ntwo\nthree\n") == ["three"]


def test_a_line_is_bounded_and_the_last_needs_no_end() -> None:
    log = Lines(0)
    found = texts(log, at(1, "x" * (2 * LONGEST))[:-1])
    found += [line.text for line in log.end()]
    assert sum(map(len, found)) == 2 * LONGEST
    assert max(map(len, found)) <= LONGEST


def test_times_within_a_long_line_are_left_out() -> None:
    """Kubelets write one before each 16 KiB of it (kubernetes/kubernetes#77603)."""
    time = b"2019-05-08T12:00:00.123456789Z "
    parts = [b"a" * 16_384, b"b" * 16_384, b"c 2019-05-08T12:00:00Z d"]
    assert texts(Lines(0), b"".join(time + each for each in parts) + b"\n") == [
        b"".join(parts).decode()
    ]
    assert texts(Lines(0), time + b"".join(parts) + b"\n") == [b"".join(parts).decode()]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        (b"  indented\tby tabs\r", "  indented      by tabs"),
        (b" 10%|#   |\r 50%|##  |\r100%|####|\r", "100%|####|"),
        (b"\x1b[31mred\x1b[0m and \x1b]0;title\x07this", "red and this"),
        (b"\x9b1A\xff\x00", "\ufffd1A\ufffd\\x00"),
        ("\u202egnp.exe".encode(), "\\u202egnp.exe"),
    ],
)
def test_what_a_terminal_gets(line: bytes, text: str) -> None:
    assert shown(line) == text


@given(st.binary())
def test_nothing_that_controls_a_terminal_is_left(line: bytes) -> None:
    assert shown(line).isprintable()
