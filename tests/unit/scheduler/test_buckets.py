"""Buckets and what happens to them while pods are placed."""

from collections import Counter
from typing import Any

from pumice.scheduler.buckets.buckets import Bucket, Buckets, weight_of
from pumice.scheduler.buckets.task_rules import TopologyRules
from pumice.scheduler.model.tasks import TaskInfo
from tests.unit.scheduler.placement_records import topology_job
from tests.unit.scheduler.scenarios import Scenario

RULES = TopologyRules(affinity=(("ps", "worker"),), anti_affinity=(("ps",),))


def _buckets(case: dict[str, Any]) -> tuple[Buckets, dict[str, TaskInfo]]:
    tasks = {task.name.removeprefix("job-"): task for task in Scenario(case).state.tasks.values()}
    return Buckets(RULES, tasks.values(), lambda task: task.role), tasks


def _on_node(bucket: Bucket) -> Counter[str]:
    """Pods of a bucket with a place, by node."""
    return Counter({node: roles.total() for node, roles in bucket.placed.items()})


def _look(buckets: Buckets) -> list[Any]:
    return [
        (sorted(bucket.pending), +_on_node(bucket), bucket.weight, bucket.members)
        for bucket in buckets.all
    ] + [{node: +counts for node, counts in buckets.placed.items() if +counts}]


def test_placing_and_taking_back_restores_everything() -> None:
    buckets, tasks = _buckets(topology_job({"ps": 2, "worker": 4}, {"n1": 8}))
    before = _look(buckets)
    others = buckets.others(tasks["ps-0"], buckets.all[0])
    for name in ("ps-0", "worker-0", "ps-1"):
        buckets.place(tasks[name], "n1")
    assert [sorted(bucket.pending) for bucket in buckets.all] == [
        ["ns/job-worker-2"],
        ["ns/job-worker-1", "ns/job-worker-3"],
    ]
    assert buckets.placed["n1"] == {"ps": 2, "worker": 1}
    for name in ("ps-1", "worker-0", "ps-0"):
        buckets.take_back(tasks[name], "n1")
    assert _look(buckets) == before
    assert buckets.others(tasks["ps-0"], buckets.all[0]) == others


def test_placed_pods_make_a_bucket_of_their_node() -> None:
    """Two of the job run on n1: one bucket, whatever they would have been in otherwise."""
    buckets, _ = _buckets(
        topology_job(
            {"ps": 2, "worker": 2},
            {"n1": 4, "n2": 4},
            bound={"ps-0": "n1", "ps-1": "n2", "worker-1": "n1"},
        )
    )
    first, second = buckets.all
    assert (dict(_on_node(first)), dict(_on_node(second))) == ({"n1": 2}, {"n2": 1})
    assert [task.name for task in first.members] == ["job-worker-0"]
    assert (first.size, buckets.largest) == (3, 3)


def test_the_lighter_of_two_equal_buckets_is_taken() -> None:
    """worker-0 asks for 3 cpus, so the next two go to the other bucket."""
    buckets, tasks = _buckets(
        {
            **topology_job({"ps": 2, "worker": 1}, {"n1": 9}, requests={"worker": [3, "1Gi"]}),
        }
    )
    assert weight_of(tasks["worker-0"]) == 3000 + 1024 + 1
    assert [bucket.weight for bucket in buckets.all] == [2025 + 4025, 2025]


def test_finished_and_terminating_pods_are_in_no_bucket() -> None:
    case = topology_job({"ps": 2, "worker": 1}, {"n1": 9}, bound={"ps-0": "n1", "ps-1": "n1"})
    case["pods"][0][3] = "Succeeded"
    case["pods"][1][7]["deleting"] = True
    buckets, _ = _buckets(case)
    assert [[task.name for task in bucket.members] for bucket in buckets.all] == [["job-worker-0"]]
    assert buckets.placed == {}
