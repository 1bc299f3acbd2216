"""Two runs of one trace compared, and thresholds on what may change."""

from itertools import permutations
from typing import Any

import msgspec
import pytest

from pumice.traces.comparison import differences
from pumice.traces.measures import Measures, measure
from pumice.traces.records import Past
from pumice.traces.thresholds import Threshold, ThresholdError
from tests.kit.pasts import drawn, nothing, record, small
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


@pytest.fixture
def equal_waits() -> tuple[Measures, Measures]:
    """A wait of 0.1 s and a turnaround of 0.2 s, which two runs have as other floats."""
    base, other = nothing(), nothing()
    base.jobs = [record("a", submit=0.2, start=0.3, end=0.4, outcome="Completed")]
    other.jobs = [record("a", submit=0.2, start=0.1 + 0.2, end=0.4 + 1e-16, outcome="Completed")]
    return measure(base), measure(other)


@pytest.mark.parametrize(
    "text", ["wait.p99 > +0%", "wait.p99 < -0%", "wait.max != 0.1", "turnaround.max != 0.2"]
)
def test_thresholds_are_held_by_the_numbers_that_are_told(
    text: str, equal_waits: tuple[Measures, Measures]
) -> None:
    for one, two in permutations(each.summary for each in equal_waits):
        assert Threshold(text).failure(two, one) == ""


def test_numbers_that_are_told_alike_differ_by_zero_without_a_sign(
    equal_waits: tuple[Measures, Measures],
) -> None:
    for one, two in permutations(equal_waits):
        found = differences(one, two)
        assert {*map(str, numbers(found.summary))} == {"0", "0.0", "None"}
        assert found.gained == found.lost == []


def test_a_difference_has_no_more_decimals_than_its_numbers() -> None:
    base, other = later(small(), {"c": 0.1}), later(small(), {"c": 0.3})
    found = differences(measure(base), measure(other))
    assert (found.summary["makespan"], found.lost[0].difference) == (0.2, 0.2)


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
    summary = measure(small()).summary | {"utilization": {}}
    Threshold("utilization.of.anything > 1").check(summary, is_compared=False)
    with pytest.raises(ThresholdError, match=r"no number 'mkespan'; it has, for example, makespan"):
        Threshold("mkespan > 1").check(summary, is_compared=False)
