"""What plugins say about candidates, and when gangs look for victims again."""

import numpy as np
import pytest

from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.plugins.gang import may_lose
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_document,
    pod_group,
)

CASES = load_document("victim_checks.yaml")


def _of_partition(number: object = "") -> Raw:
    return {"number": str(number)}


@pytest.mark.parametrize("case", CASES["gang"], ids=case_id)
def test_a_gang_loses_what_it_has_beyond_its_minimum(case: Raw) -> None:
    pods = [
        ["ns", name, "n1", "Running", 1, 0, "g", {"role": role, "labels": _of_partition(*number)}]
        for name, role, *number in case["pods"]
    ]
    options: Raw = {"minTask": case.get("minTask", {})}
    if "policy" in case:
        size, minimum = case["policy"]
        options["policies"] = [
            {"subGroupSize": size, "minSubGroups": minimum, "matchLabelKeys": ["number"]}
        ]
    group = ["ns", "g", "default", case["min"], "Running", options]
    scenario = Scenario({"nodes": [["n1", 100, "1Gi"]], "podgroups": [group], "pods": pods})
    scenario.state.settle()
    state = scenario.state
    tasks = [state.tasks[f"ns/{name}"] for name in case["candidates"]]
    rows = np.array([task.row for task in tasks])
    zeros = np.zeros(len(tasks), dtype=np.int64)
    candidates = Candidates(state.nodes.running, rows, [state.jobs["ns/g"]], zeros, zeros)
    preemptor = Preemptor(tasks[0], state.jobs["ns/g"], state.queues["default"])
    mask = may_lose(preemptor, candidates)
    assert [task.name for task, may in zip(tasks, mask, strict=True) if may] == case["expect"]


def test_a_gang_without_victims_looks_again_after_a_change() -> None:
    rows = [["ns", name, "default", 1, "Inqueue", {"prio": "high"}] for name in ("old", "new")]
    case = {
        "classes": {"low": 1, "high": 10},
        "nodes": [["n1", 2, "8Gi"]],
        "podgroups": rows,
        "pods": [
            ["ns", "old-0", "n1", "Running", 1, 0, "old"],
            ["ns", "old-1", "n1", "Running", 1, 0, "old"],
            ["ns", "new-0", "", "Pending", 1, 0, "new"],
        ],
    }
    scenario = Scenario(case, config_text([["priority", "gang"]], ["allocate", "preempt"]))
    for second in range(3):
        assert scenario.cycle(NOW + second).evicted == []
    cycles = scenario.state.cycles
    scenario.cycle(NOW + 3)
    assert scenario.state.cycles == cycles  # nothing has changed
    scenario.state.set_pod_group(
        pod_group(["ns", "old", "default", 0, "Inqueue", {"prio": "high"}])
    )
    assert scenario.cycle(NOW + 4).evicted == []
    scenario.state.set_pod_group(pod_group(["ns", "old", "default", 1, "Inqueue", {"prio": "low"}]))
    assert scenario.cycle(NOW + 4.5).evicted == ["ns/old-1"]
