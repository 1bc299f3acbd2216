"""The gate that holds pods until their queue has room: who loses it, and when."""

from typing import Any

import pytest

from tests.unit.scheduler.scenarios import NOW, Scenario, case_id, config_text, load_cases

GATE = "scheduling.volcano.sh/queue-allocation-gate"
CONFIG = config_text([["priority", "gang"], ["predicates", "capacity"]])


def _scenario(case: dict[str, Any], *, opens_gates: bool) -> Scenario:
    options = {"annotations": {GATE: "true"}, "gates": [GATE]} | case.get("pod", {})
    return Scenario(
        {
            "nodes": case["nodes"],
            "queues": [["q", case.get("queue", {})]],
            "podgroups": [["ns", "pg", "q", case.get("minimum", 2), "Inqueue"]],
            "pods": [
                ["ns", f"p-{number}", "", "Pending", 1, "1Gi", "pg", options] for number in (0, 1)
            ],
        },
        CONFIG,
        opens_gates=opens_gates,
    )


@pytest.mark.parametrize("case", load_cases("scheduling_gates"), ids=case_id)
def test_gates(case: dict[str, Any]) -> None:
    scenario = _scenario(case, opens_gates=True)
    result = scenario.cycle()

    assert sorted(result.binds) == case.get("binds", [])
    assert result.opened == case.get("opened", [])
    if case.get("pod", {}).get("gates") != []:
        assert {verdict.reason for verdict in result.pods.values()} <= {"SchedulingGated"}


def test_nothing_is_taken_away_where_the_feature_is_off() -> None:
    result = _scenario({"nodes": [["n1", 2, "8Gi"]]}, opens_gates=False).cycle()
    assert result.binds == {}
    assert result.opened == []
    assert result.pending["ns/pg"].reason == "SchedulingGated"


def test_a_gate_is_named_until_it_is_gone_and_the_pod_is_unschedulable_then() -> None:
    scenario = _scenario({"nodes": [["n1", 1, "8Gi"]]}, opens_gates=True)
    for second in range(5):
        assert scenario.cycle(NOW + second).opened == ["ns/p-0", "ns/p-1"]

    for key, manifest in list(scenario.pods.items()):
        options = {"annotations": manifest["metadata"]["annotations"]}
        scenario.add_pod([*key.split("/"), "", "Pending", 1, "1Gi", "pg", options])
    result = scenario.cycle(NOW + 6)
    assert result.opened == []
    assert {verdict.reason for verdict in result.pods.values()} == {"Unschedulable"}


def test_a_queue_that_gets_room_later_lets_its_gang_be_seen() -> None:
    scenario = _scenario({"nodes": [["n1", 1, "8Gi"]], "queue": {"capability": {"cpu": 1}}}, opens_gates=True)  # fmt: skip
    assert scenario.cycle().opened == []
    scenario.state.set_queue(
        _scenario({"nodes": [], "queue": {"capability": {"cpu": 2}}}, opens_gates=True).state.queues["q"]
    )  # fmt: skip
    assert scenario.cycle(NOW + 1).opened == ["ns/p-0", "ns/p-1"]
