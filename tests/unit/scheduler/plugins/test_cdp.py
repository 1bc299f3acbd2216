"""Pods within their cool-down are no victims."""

from typing import Any

import pytest

from pumice.api.meta import format_time
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    config_text,
    load_cases,
    pod_group,
)

Raw = dict[str, Any]

TIERS = [["priority", "gang", "conformance", "cdp"], ["predicates"]]
CASES = load_cases("cool_downs.yaml", "cases")
ROWS = [(case, action) for case in CASES for action in case.get("actions", ["preempt", "reclaim"])]


def _placed(pods: list[list[Any]]) -> list[list[Any]]:
    found = []
    for index, (minutes, said) in enumerate(pods):
        options: Raw = {"prio": 10}
        if "label" in said:
            options["labels"] = {"volcano.sh/cooldown-time": said["label"]}
        if "annotation" in said:
            options["annotations"] = {"volcano.sh/cooldown-time": said["annotation"]}
        if minutes is not None:
            options["placed"] = format_time(NOW - 60 * minutes)
        phase = said.get("phase", "Running")
        found.append(["ns", f"v-{index}", "n", phase, 1, 0, "v", options])
    return found


def _scenario(case: Raw, action: str) -> Scenario:
    needs = case.get("needs", 1)
    queue = "other" if "reclaim" in action else "q"
    group = ["ns", "v", queue, case.get("minimum", 0), "Running", {"prio": "low"}]
    cluster = {
        "classes": {"low": 10, "high": 100},
        "nodes": [["n", 2, "8Gi"]],
        "queues": [["q"], ["other"]],
        "podgroups": [group, ["ns", "p", "q", needs, "Inqueue", {"prio": "high"}]],
        "pods": _placed(case["pods"]),
        "pod_sets": [{"pg": "p", "count": needs, "memory": 0, "prio": 100}],
    }
    return Scenario(cluster, config_text(TIERS, ["allocate", action]))


def _names(keys: list[str]) -> list[str]:
    return sorted(key.removeprefix("ns/") for key in keys)


@pytest.mark.parametrize(
    ("case", "action"), ROWS, ids=[f"{case['id']}-{action}" for case, action in ROWS]
)
def test_cool_downs(case: Raw, action: str) -> None:
    scenario, expect = _scenario(case, action), case["expect"]
    result = scenario.cycle()
    assert _names(result.evicted) == expect["evicted"]
    if "why" in expect:
        assert expect["why"] in result.pending["ns/p"].summary
    told = [each for each in result.events if each.reason == "InvalidCoolDown"]
    assert len(told) == ("warned" in expect)
    for event in told:
        assert (event.kind, event.name) == ("PodGroup", "v")
        assert expect["warned"] in event.message
    if "then" in expect:
        end = NOW + 60 * expect["until"]
        assert scenario.cycle(end - 1).evicted == []
        assert scenario.state.is_settled(scenario.config, end - 0.5)
        assert not scenario.state.is_settled(scenario.config, end)
        assert _names(scenario.cycle(end).evicted) == expect["then"]


def test_a_warning_is_told_once() -> None:
    scenario = _scenario(next(case for case in CASES if case["id"] == "CD-3"), "preempt")
    scenario.cycle()
    scenario.state.set_pod_group(pod_group(["ns", "more", "q", 1, "Inqueue"]))
    assert [each for each in scenario.cycle(NOW + 2).events if each.kind == "PodGroup"] == []


def test_nothing_wakes_the_scheduler_while_no_gang_waits() -> None:
    scenario = _scenario(CASES[0] | {"needs": 0}, "preempt")
    scenario.cycle()
    assert scenario.state.wakes == []


def test_a_cool_down_that_is_changed_counts_at_once() -> None:
    scenario = _scenario(CASES[0], "preempt")
    assert scenario.cycle().evicted == []
    for key in ("ns/v-0", "ns/v-1"):
        manifest = scenario.pods[key]
        manifest["metadata"]["labels"] = {}
        scenario.show(manifest)
    assert scenario.cycle(NOW + 2).evicted == ["ns/v-1"]
