"""Pods without requests: their order, and gangs of which they are a part."""

from typing import Any

from tests.unit.scheduler.scenarios import Scenario, config_text


def test_order() -> None:
    """BF-1: by priority of the gangs, then of the pods."""
    classes = {"job-priority-1": 1, "job-priority-2": 2}
    groups = [
        ["default", f"pg{n}", "q1", 1, "Inqueue", {"minTask": {"": 3}, "prio": f"job-priority-{n}"}]
        for n in (1, 2)
    ]
    pods = [
        ["default", f"pg{n}-{kind}-task-{m}", "", "Pending", cpu, 0, f"pg{n}", {"prio": m}]
        for n in (1, 2)
        for kind, cpu in (("besteffort", 0), ("unbesteffort", "500m"))
        for m in (1, 2, 3, 4)
    ]
    plugins: list[Any] = [
        {"priority": ["Preemptable", "TaskOrder", "JobOrder"], "args": {"strict-upstream": True}},
        {"drf": ["QueueOrder"]},
    ]
    scenario = Scenario(
        {
            "nodes": [["n1", 8, "8Gi"]],
            "queues": [["q1"]],
            "classes": classes,
            "podgroups": groups,
            "pods": pods,
        },
        config_text([plugins], ("allocate", "backfill")),
    )
    order = [key for key in scenario.cycle().binds if "unbesteffort" not in key]
    assert order == [f"default/pg{n}-besteffort-task-{m}" for n in (2, 1) for m in (4, 3, 2, 1)]


def test_a_gang_whose_pod_without_requests_finds_no_slot_waits_until_there_is_one() -> None:
    """The others do not run without it."""
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi", {"pods": 3}]],
            "podgroups": [
                ["ns", "g", "default", 3, "Inqueue"],
                ["ns", "r", "default", 1, "Running"],
            ],
            "pods": [
                ["ns", "r-0", "n1", "Running", 1, 0, "r"],
                ["ns", "g-2", "", "Pending", 0, 0, "g"],
            ],
            "pod_sets": [{"pg": "g", "count": 2}],
        },
        config_text([["gang"], ["predicates"]], ("allocate", "backfill")),
    )
    result = scenario.cycle()
    assert result.binds == {}
    assert scenario.conditions("ns/g") == {"Unschedulable": "True"}
    scenario.state.remove_pod("ns", "r-0")
    assert sorted(scenario.cycle().binds) == ["ns/g-0", "ns/g-1", "ns/g-2"]
    assert scenario.conditions("ns/g")["Scheduled"] == "True"
