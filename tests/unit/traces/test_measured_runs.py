"""Whole runs measured: every number equals its slow recomputation, and what samples say agrees with what pods did."""

from fractions import Fraction
from random import Random
from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Node
from pumice.api.queues import Queue
from pumice.scheduler import Config, load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.comparison import differences
from pumice.traces.measures import Period, Ticks, measure, measured_period
from pumice.traces.records import Past
from tests.kit.builders import node, queue, task
from tests.kit.recomputed import recomputed
from tests.kit.traces import GREEDY, cluster_of, ran, trace_job

QUEUES = ("a", "b", "c")


def busy_days(config: Config | None) -> Past:
    """Three queues on eight cpus: with the defaults, gangs are evicted; one job never fits, one never ends, one fails."""
    draw = Random(5)
    jobs = [
        trace_job(
            f"job-{number}",
            draw.choice((float(number), number + draw.random())),
            draw.choice((0.0, 7.0, draw.random() * 60)),
            queue=draw.choice(QUEUES),
            priority=draw.choice((0, 0, 5)),
            replicas=draw.choice((1, 2, 3, 5)),
            fails=number == 11,
        )
        for number in range(30)
    ]
    jobs.append(trace_job("never-fits", 3.0, queue="a", replicas=9))
    jobs.append(trace_job("never-ends", 40.0, None, queue="b"))
    return ran(jobs, cluster_of(4, 4), config)


@pytest.fixture(scope="module", params=["defaults", "greedy"])
def past(request: pytest.FixtureRequest) -> Past:
    if request.param == "greedy":
        return busy_days(load_config(GREEDY))
    found = busy_days(None)
    assert sum(record.evictions for record in found.jobs)
    assert any(record.lost for record in found.jobs)
    return found


def test_every_number_equals_its_slow_recomputation(past: Past) -> None:
    found = measure(past)
    jobs, summary = recomputed(past)
    assert msgspec.to_builtins(found.jobs) == jobs
    assert found.summary == summary
    counts = summary["jobs"]
    assert (counts["waiting"], counts["running"], counts["failed"]) == (1, 1, 1)
    assert summary["wait"]["max"] > 0


def test_what_nodes_held_is_what_pods_used(past: Past) -> None:
    """The integral of the samples is the sum over the pods, exactly."""
    begin, end = measured_period(past)
    times = [
        each for record in past.jobs for runs in record.runs for each in (runs.start, runs.end)
    ]
    ticks = Ticks([*past.samples.moments, begin, end, *filter(None, times)])
    sampled = Period(ticks, past.samples.moments, begin, end).integral(past.samples.used["cpu"])
    ran_for = sum(
        runs.pods
        * record.requests[runs.task]["cpu"]
        * (Fraction(end if runs.end is None else runs.end) - Fraction(runs.start))
        for record in past.jobs
        for runs in record.runs
    )
    assert Fraction(sampled, ticks.second) == ran_for


def test_equal_configurations_compare_to_zero() -> None:
    jobs = [trace_job(f"job-{number}", number / 3, replicas=3) for number in range(6)]
    base, other = (measure(ran(jobs, cluster_of(4))) for _ in range(2))
    found = differences(base, other)
    assert found.gained == found.lost == []
    assert (found.summary["makespan"], *found.summary["wait"].values()) == (0,) * 7
    assert msgspec.to_builtins(base.jobs) == msgspec.to_builtins(other.jobs)


def test_work_on_full_nodes_is_all_of_the_utilization() -> None:
    jobs = [trace_job(f"job-{number}", replicas=2) for number in range(3)]
    summary = measure(ran(jobs, cluster_of(2))).summary
    assert (summary["makespan"], summary["utilization"]["cpu"], summary["goodput"]["cpu"]) == (
        30,
        1,
        1,
    )
    assert (summary["wait"]["mean"], summary["wait"]["p50"]) == (10, 10)


def test_what_pods_of_each_task_request_is_measured() -> None:
    """A pod of each task is evicted after 10 s, and runs again for 100 s."""
    gpus: dict[str, Any] = {"nvidia.com/gpu": "4"}
    amounts = {"cpu": "1", "nvidia.com/gpu": "3"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    tasks = [task("ps", cpu="1"), task("worker", spec={"containers": [container]})]
    manifest = {"spec": {"tasks": tasks, "minAvailable": 2}}
    jobs = [
        trace_job("usual", 0.0, 100.0, replicas=2, manifest=manifest),
        trace_job("urgent", 10.0, 10.0, priority=10, requests={"cpu": "4"}),
    ]
    objects = ClusterObjects(nodes=[msgspec.convert(node("n", "4", **gpus), Node)])
    past = ran(jobs, objects)
    summary = measure(past).summary
    assert past.resources == ["cpu", "nvidia.com/gpu"]
    assert summary["goodput"] == {
        "cpu": (2 * 100 + 4 * 10) / (4 * 120),
        "nvidia.com/gpu": 3 * 100 / (4 * 120),
    }
    assert summary["lost_hours"] == {"cpu": 0.005556, "nvidia.com/gpu": 0.008333}  # 20 and 30 s
    assert summary == recomputed(past)[1]


def test_a_queue_deserves_a_whole_gpu_that_only_rounding_takes() -> None:
    """Of 6 GPUs one queue asks for 4; the other one's part by weight, and what is left then, add up to a last bit less than 2."""
    amounts = {"cpu": "1", "nvidia.com/gpu": "1"}
    jobs = [
        trace_job(name, queue=name, replicas=replicas, min=1, requests=amounts)
        for name, replicas in {"a": 12, "b": 4}.items()
    ]
    gpus: dict[str, Any] = {"nvidia.com/gpu": "6"}
    nodes = [msgspec.convert(node("n", "100", **gpus), Node)]
    queues = [
        msgspec.convert(queue(name, weight=each), Queue) for name, each in (("a", 2), ("b", 5))
    ]
    sampled = ran(jobs, ClusterObjects(nodes=nodes, queues=queues)).samples.queues
    assert sampled["a"].deserved["nvidia.com/gpu"][0] == 2000
    assert sampled["b"].deserved["nvidia.com/gpu"][0] == 4000
