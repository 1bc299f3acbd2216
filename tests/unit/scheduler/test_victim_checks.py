"""What plugins say about candidates, and when gangs look for victims again."""

from dataclasses import dataclass

import numpy as np
import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.plugins.gang import may_lose
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_document,
    pod_group,
    with_plugins,
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


@dataclass
class _OfGang:
    """A check that has no hash."""

    gang: str

    def __call__(self, _: Preemptor, candidates: Candidates) -> Bools:
        found: Bools = candidates.of_jobs(lambda job: job.name == self.gang) > 0
        return found


class _LosesOne:
    def __init__(self, _: Arguments) -> None: ...

    def open(self, _: SessionView, register: Registrar) -> None:
        register.preemptable(_OfGang("b"))
        register.reclaimable(_OfGang("c"))


@pytest.mark.parametrize(("action", "gang"), [("preempt", "b"), ("reclaim", "c")])
def test_a_check_needs_no_hash(action: str, gang: str) -> None:
    plugin = PluginSpec("loses-one", "A test's plugin.", _LosesOne)
    text = config_text([["gang", "loses-one", "proportion"], ["predicates"]], ["allocate", action])
    config = load_config(text, with_plugins(builtin_registry(), plugin))
    case = {
        "nodes": [["n1", 6, "8Gi"]],
        "queues": [["q1"], ["q2"]],
        "podgroups": [
            ["ns", "new", "q1", 1, "Inqueue"],
            *(
                ["ns", name, queue, 1, "Running"]
                for name, queue in zip("abc", ("q2", "q1", "q2"), strict=True)
            ),
        ],
        "pods": [
            ["ns", "new-0", "", "Pending", 1, 0, "new"],
            *(["ns", f"{name}-{n}", "n1", "Running", 1, 0, name] for name in "abc" for n in "01"),
        ],
    }
    result = Scenario(case, config).cycle()
    assert (result.evicted, result.errors) == ([f"ns/{gang}-1"], {})
