"""What a Job asks for at least."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job, Task
from pumice.controller.jobs.job_group import by_minimum, by_priority, min_resources, needed_pods
from pumice.controller.jobs.subject import UnusableError
from tests.kit.builders import job, task
from tests.kit.tables import table

CASES = table("controller/min-resources")
CPU = {"master": 50, "worker": 100}


def _tasks(case: dict[str, Any]) -> list[Task]:
    return [
        msgspec.convert(
            task(
                name,
                2,
                cpu=f"{cpu}m",
                spec={
                    "priorityClassName": name,
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}],
                },
                minAvailable=minimum,
            ),
            Task,
        )
        for (name, cpu), minimum in zip(CPU.items(), case["min"], strict=True)
    ]


def _priorities(case: dict[str, Any]) -> dict[str, int]:
    return dict(zip(CPU, case.get("priority", [0, 0]), strict=True))


@pytest.mark.parametrize("case", CASES["minimums_first"], ids=lambda case: case["id"])
def test_minimums_first(case: dict[str, Any]) -> None:
    taken = by_minimum(by_priority(_tasks(case), _priorities(case)), case["job"])
    assert sum(count for _, count in taken) == case["pods"]
    assert f"{sum(CPU[each.name] * count for each, count in taken)}m" == case["cpu"]


@pytest.mark.parametrize("case", CASES["whole"], ids=lambda case: case["id"])
def test_min_resources(case: dict[str, Any]) -> None:
    tasks = _tasks(case)
    found = min_resources(msgspec.convert(job(), Job), tasks, case["job"], _priorities(case))
    pods = str(case["pods"])
    cpu = case["cpu"]
    assert found == {"cpu": cpu, "requests.cpu": cpu, "pods": pods, "count/pods": pods}


def test_one_pod_counts_as_it_would_in_a_quota() -> None:
    """MR-20."""
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": 1, "hugepages-test": "2000"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    template = task("t", 1, spec={"containers": [container, {**container, "name": "d"}]})
    found = min_resources(msgspec.convert(job(), Job), [msgspec.convert(template, Task)], 1, {})
    assert found == {
        "cpu": "2",
        "memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "hugepages-test": "4000",
        "limits.cpu": "2",
        "limits.memory": "2000Mi",
        "requests.cpu": "2",
        "requests.memory": "2000Mi",
        "requests.nvidia.com/gpu": "2",
        "requests.hugepages-test": "4000",
        "pods": "1",
        "count/pods": "1",
    }


def test_the_overhead_of_a_runtime_class_counts_where_the_template_states_it() -> None:
    stated = {"runtimeClassName": "kata", "overhead": {"cpu": "250m"}}
    for spec, cpu in (({"runtimeClassName": "kata"}, "1"), (stated, "1250m")):
        tasks = [msgspec.convert(task("t", 1, cpu="1", spec=spec), Task)]
        assert min_resources(msgspec.convert(job(), Job), tasks, 1, {})["cpu"] == cpu


def test_tasks_of_one_priority_keep_their_order() -> None:
    tasks = [msgspec.convert(task(name), Task) for name in ("c", "a", "b")]
    assert [each.name for each in by_priority(tasks, {})] == ["c", "a", "b"]


def test_never_more_pods_than_there_are() -> None:
    tasks = _tasks({"min": [1, 1]})
    assert sum(count for _, count in needed_pods(tasks, 99)) == 4


@pytest.mark.parametrize(
    ("minimum", "own", "expect"),
    [
        (1, 1, {"master": 0, "worker": 4}),
        (3, 1, {"master": 1, "worker": 4}),
        (5, 2, {"master": 1, "worker": 4}),
        (6, 2, {"master": 2, "worker": 4}),
        (8, 4, {"master": 2, "worker": 6}),
    ],
)
def test_partitions_that_must_start_together_count(
    minimum: int, own: int, expect: dict[str, int]
) -> None:
    """The Job has a lower minimum, and two partitions of two must start; of the other task there are fewer then."""
    policy = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    tasks = [task("master", 2, minAvailable=1)]
    tasks.append(task("worker", 6, minAvailable=own, partitionPolicy=policy))
    found = needed_pods(msgspec.convert(tasks, list[Task]), minimum)
    assert {each.name: count for each, count in found} == expect


def test_a_bad_quantity_names_its_task() -> None:
    subject = msgspec.convert(job(tasks=[task("ok"), task("bad", cpu="much")]), Job)
    with pytest.raises(UnusableError, match=r'spec\.tasks\[1\]\.template\.spec.*"much"'):
        min_resources(subject, subject.tasks, 2, {})


def test_what_is_null_is_as_good_as_left_out() -> None:
    """A manifest with an empty `priorityClassName:` has it so, and an API server stores that of a Job."""
    null = dict.fromkeys(("nodeName", "hostNetwork", "priorityClassName", "schedulerName"))
    amounts = {"requests": {"cpu": "2", "memory": None}, "limits": None}
    containers = [{"name": "main", "restartPolicy": None, "resources": amounts}]
    subject = msgspec.convert(job(tasks=[task("a", spec={**null, "containers": containers})]), Job)
    assert min_resources(subject, subject.tasks, 1, {})["cpu"] == "2"


def test_a_template_that_is_nested_too_deeply_is_named() -> None:
    """API servers store templates that are nested up to 10,000 levels deep."""
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"a": deep}
    whole = msgspec.convert(job(tasks=[task("a")]), Job)
    nested = msgspec.structs.replace(whole.tasks[0], template={"spec": deep})
    subject = msgspec.structs.replace(
        whole, spec=msgspec.structs.replace(whole.spec, tasks=[nested])
    )
    with pytest.raises(UnusableError, match=r"spec\.tasks\[0\]\.template\.spec cannot be read"):
        min_resources(subject, subject.tasks, 1, {})


def test_what_jobs_with_many_resources_ask_for_is_not_kept() -> None:
    kept = []
    tracemalloc.start()
    try:
        for number in range(4):
            requests = {f"example.com/{number}-{each}": 1 for each in range(1000)}
            containers = [{"name": "main", "resources": {"requests": requests}}]
            tasks = [msgspec.convert(task("a", 1, spec={"containers": containers}), Task)]
            assert len(min_resources(msgspec.convert(job(), Job), tasks, 1, {})) == 2002
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert kept[-1] < kept[0] + 100_000
