"""Measures of a run: counted by hand on a small one, and equal to a slow recomputation on drawn ones, to the last digit."""

from typing import Any

import msgspec
import pytest

from pumice.traces.measures import measure, size_class
from pumice.traces.records import Past
from tests.kit.pasts import drawn, nothing, record, small
from tests.kit.recomputed import recomputed


def measured(past: Past) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    found = measure(past)
    return msgspec.to_builtins(found.jobs), found.summary


def test_a_small_run_is_measured_as_by_hand() -> None:
    jobs, summary = measured(small())
    a, b, c, d = jobs
    assert (a["wait"], a["run"], a["slowdown"], a["bounded_slowdown"]) == (0, 10, 1, 1)
    assert (b["wait"], b["run"], b["turnaround"], b["evictions"]) == (0, 27.5, 27.5, 2)
    assert (b["slowdown"], b["nodes"]) == (1.375, ["n1"])  # of the 20 s that it needs
    assert (c["wait"], c["turnaround"], c["slowdown"], c["nodes"]) == (27, 37, 3.7, ["n0", "n1"])
    assert (d["outcome"], d["wait"], d["end"], d["reason"]) == (
        "Refused",
        None,
        None,
        "queue blue is closed",
    )
    assert summary["makespan"] == 40
    assert summary["utilization"] == {"cpu": (2.5 * 4 + 2.5 * 8 + 25 * 4 + 10 * 8) / 320}
    assert summary["fragmentation"] == {"cpu": 25 * 4 / 320}
    assert summary["goodput"] == {"cpu": (40 + 80 + 80) / 320}  # b's first 10 cpu-seconds are lost
    assert summary["lost_hours"] == {"cpu": 0.002778}  # 10 / 3600
    assert summary["wait"] == {"count": 3, "mean": 9, "p50": 0, "p95": 27, "p99": 27, "max": 27}
    assert [*summary["wait_by"]["size"]] == ["1", "2", "4", "8"]
    assert [*summary["wait_by"]["priority"]] == ["0", "5"]
    # with the 5 s of pods of b that were lost: they were served
    red, blue = (40 + 80) / (40 + 8 * 37), 45 / (2 * 27.5)
    assert summary["jain"] == round((red + blue) ** 2 / 2 / (red**2 + blue**2), 6)
    assert summary["below_deserved"] == {"blue": 5, "red": 20}
    assert (summary["evictions"], summary["broken_gangs"], summary["skipped"]) == (2, 1, 1)
    assert summary["cost"] == {"cycles": 6, "decision_seconds": 0.25}


@pytest.mark.parametrize("seed", range(12))
def test_every_number_equals_its_slow_recomputation(seed: int) -> None:
    past = drawn(seed, jobs=40 if seed else 1)
    if seed % 2:  # everything is over: the period ends with the last job
        past.jobs = [each for each in past.jobs if each.outcome not in ("Running", "Waiting")]
    assert measured(past) == recomputed(past)


def test_the_small_run_equals_its_slow_recomputation() -> None:
    assert measured(small()) == recomputed(small())


def test_a_run_without_a_job_has_no_numbers() -> None:
    jobs, summary = measured(nothing())
    assert jobs == []
    assert summary["wait"]["mean"] is summary["makespan"] is summary["jain"] is None
    assert summary["utilization"] == {"cpu": None}
    assert (jobs, summary) == recomputed(nothing())


def test_a_job_of_no_length_has_no_slowdown_but_a_bounded_one() -> None:
    past = nothing()
    past.jobs = [record("a", duration=0.0, start=25.0, end=25.0, outcome="Completed")]
    jobs, summary = measured(past)
    assert (jobs[0]["slowdown"], jobs[0]["bounded_slowdown"]) == (None, 2.5)
    assert summary["slowdown"]["count"] == 0


def test_equal_service_is_exactly_fair() -> None:
    past = small()
    past.jobs = [
        msgspec.structs.replace(
            past.jobs[0], job=msgspec.structs.replace(past.jobs[0].job, user=f"u{n}"), end=10.1
        )
        for n in range(7)
    ]
    assert measure(past).summary["jain"] == 1


def test_a_user_and_a_queue_of_one_name_are_two_tenants() -> None:
    """As in SWF, where both are numbers, and some jobs have no user."""
    past = small()
    first = msgspec.structs.replace(past.jobs[0].job, user="3", queue="1")
    second = msgspec.structs.replace(first, user="", queue="3")
    past.jobs = [
        msgspec.structs.replace(past.jobs[0], job=first),
        msgspec.structs.replace(past.jobs[0], job=second, start=None, end=None, runs=[]),
    ]
    assert measure(past).summary["jain"] == 0.5  # only one is served


def test_sizes_are_classes_of_powers_of_two() -> None:
    assert [size_class(pods) for pods in (0, 1, 2, 3, 4, 5, 8, 9, 10_000)] == [
        1,
        1,
        2,
        4,
        4,
        8,
        8,
        16,
        16384,
    ]
