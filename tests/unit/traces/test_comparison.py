"""Two runs of one trace compared, and thresholds on what may change."""

from typing import Any

import msgspec
import pytest

from pumice.traces.comparison import differences
from pumice.traces.measures import measure
from pumice.traces.records import Past
from pumice.traces.thresholds import Threshold, ThresholdError
from tests.kit.pasts import drawn, small
from tests.kit.tables import table


def later(past: Past, seconds: dict[str, float]) -> Past:
    """The run with some of its jobs over later."""
    past.jobs = [
        msgspec.structs.replace(each, end=each.end + seconds[each.job.name])
        if each.end is not None and each.job.name in seconds
        else each
        for each in past.jobs
    ]
    return past


def numbers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    return [value]


@pytest.mark.parametrize("seed", range(3))
def test_equal_runs_compare_to_zero(seed: int) -> None:
    other = drawn(seed, 40)
    other.decision_seconds, other.cycles = 99.0, 1
    found = differences(measure(drawn(seed, 40)), measure(other))
    assert {*numbers(found.summary)} <= {0, None}
    assert "cost" not in found.summary
    assert found.gained == found.lost == []


def test_the_jobs_that_gained_and_lost_most_are_listed() -> None:
    base = later(small(), {"c": 5.0})
    other = later(small(), {"a": 1.0, "b": 3.0})
    found = differences(measure(base), measure(other))
    assert [(job.name, job.base, job.other, job.difference) for job in found.lost] == [
        ("b", 27.5, 30.5, 3),
        ("a", 10, 11, 1),
    ]
    assert [(job.name, job.difference) for job in found.gained] == [("c", -5)]
    assert found.summary["makespan"] == -5
    assert found.summary["turnaround"]["p50"] == 3


def test_a_job_that_is_over_in_one_run_alone_comes_first_and_ten_are_listed() -> None:
    base, other = drawn(1, 200), drawn(1, 200)
    over = [each for each in base.jobs if each.end is not None]
    later(other, {each.job.name: 1.0 + number for number, each in enumerate(over)})
    never = other.jobs[base.jobs.index(over[0])]
    never.end, never.outcome = None, "Running"
    found = differences(measure(base), measure(other))
    assert len(found.lost) == 10
    assert (found.lost[0].name, found.lost[0].difference) == (over[0].job.name, None)
    assert found.lost[1].difference == pytest.approx(len(over))
    assert [job.name for job in differences(measure(other), measure(base)).gained] == [
        job.name for job in found.lost
    ]


def failure(row: dict[str, Any]) -> str:
    threshold = Threshold(row["threshold"])
    threshold.check(row["summary"], is_compared="base" in row)
    return threshold.failure(row["summary"], row.get("base"))


@pytest.mark.parametrize("row", table("traces/thresholds"), ids=lambda row: str(row["threshold"]))
def test_thresholds(row: dict[str, Any]) -> None:
    if error := row.get("error"):
        with pytest.raises(ThresholdError) as raised:
            failure(row)
        assert str(raised.value).startswith(error)
        assert "\n" not in str(raised.value)
    else:
        assert failure(row) == row["fails"]


def test_a_path_is_checked_before_a_run_as_far_as_it_can_be() -> None:
    summary = msgspec.to_builtins(measure(small()).summary) | {"utilization": {}}
    Threshold("utilization.of.anything > 1").check(summary, is_compared=False)
    with pytest.raises(ThresholdError, match=r"no number 'mkespan'; it has, for example, makespan"):
        Threshold("mkespan > 1").check(summary, is_compared=False)
