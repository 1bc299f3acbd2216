"""capacity: what queues may have, deserve and are guaranteed, flat and in a tree."""

from typing import Any

import pytest

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.session.victims import judge
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, case_id, conf, config_text, load_cases
from tests.unit.scheduler.victims import candidates_of, may_go, preemptor_of

ROWS = load_cases("capacity.yaml", "rows")
RECLAIMS = [case for case in ROWS if "may_go" in case or "takes_back" in case]


def _scenario(case: dict[str, Any]) -> Scenario:
    groups, pods = [], []
    for name, node, cpu, memory, queue, *rest in case["pods"]:
        options = rest[0] if rest else {}
        minimum = {"cpu": str(cpu), "memory": str(memory)}
        needs = {"minRes": minimum} if "CAP_ENQ" in case["conf"] else {}
        waiting = "Pending" if "enqueue" in case["actions"] else "Inqueue"
        groups.append(["ns1", name, queue, 1, "Running" if node else waiting, needs])
        phase = "Running" if node else "Pending"
        pods.append(["ns1", name, node, phase, cpu, memory, name, options])
    tiers = conf(case["conf"])
    tiers[0][0] = {**tiers[0][0], "args": case.get("args", {})}  # type: ignore[dict-item]
    cluster = {"nodes": case["nodes"], "queues": case["queues"], "podgroups": groups, "pods": pods}
    return Scenario(cluster, config_text(tiers, case["actions"]))


@pytest.mark.parametrize("case", ROWS, ids=case_id)
def test_a_cycle(case: dict[str, Any]) -> None:
    result = _scenario(case).cycle()
    keyed = {f"ns1/{pod}": node for pod, node in case.get("binds", {}).items()}
    promised = {f"ns1/{pod}": node for pod, node in case.get("pipelined", {}).items()}
    assert result.binds == keyed
    assert result.pipelined == promised
    assert sorted(result.evicted) == [f"ns1/{pod}" for pod in case.get("evicted", [])]
    for pod, sentence in case.get("says", {}).items():
        assert sentence in result.pending[f"ns1/{pod}"].message
    for pod, phase in case.get("phases", {}).items():
        assert result.all_pod_groups[f"ns1/{pod}"].phase == phase


def test_what_terminating_pods_of_a_tree_hold_is_added_up_once_for_all_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums: list[int] = []
    below = QueueTable.below

    def counted(table: QueueTable, amounts: Ints) -> Ints:
        sums.append(1)
        return below(table, amounts)

    monkeypatch.setattr(QueueTable, "below", counted)
    counts = []
    for waiting in (2, 20):
        queues = [["root"], ["a", {"parent": "root", "capability": {"cpu": 40}}]]
        old = ["old", "n", 1, "1Gi", "a", {"deleting": True}]
        pods = [old, *([f"p{number}", "", 1, "1Gi", "a"] for number in range(waiting))]
        nodes = [["n", 64, "64Gi"]]
        case = {"conf": "CAP_H", "actions": ["allocate"], "nodes": nodes, "queues": queues}
        assert len(_scenario(case | {"pods": pods}).cycle().binds) == waiting
        counts.append(len(sums))
        sums.clear()
    assert counts[0] == counts[1]


@pytest.mark.parametrize("case", RECLAIMS, ids=case_id)
def test_what_may_be_taken_back(case: dict[str, Any]) -> None:
    scenario = _scenario(case)
    session = open_session(scenario)
    (pod,) = (row[0] for row in case["pods"] if not row[1])
    preemptor = preemptor_of(scenario, f"ns1/{pod}")
    if case.get("takes_back") is not None:
        refusal = session.answers.why_not_preemptive(preemptor.queue, preemptor.task)
        assert (refusal is None) is case["takes_back"], refusal
    if "may_go" in case:
        found = candidates_of(scenario, preemptor)
        assert (
            may_go(found, judge(session.extensions.reclaimable, preemptor, found).may)
            == case["may_go"]
        )
    if "order" in case:
        queues = [scenario.state.queues[name] for name in sorted(case["order"], reverse=True)]
        queues.sort(key=lambda queue: session.answers.victim_queue_key(queue, preemptor.queue))
        assert [queue.metadata.name for queue in queues] == case["order"]


@pytest.mark.parametrize("case", load_cases("capacity.yaml", "shares"), ids=case_id)
def test_shares(case: dict[str, Any]) -> None:
    deserved = dict(zip(("cpu", "memory"), map(str, case["deserved"]), strict=False))
    held = case["held"] or [0, 0]
    scenario = Scenario(
        {
            "nodes": [["n", 8, "8Gi"]],
            "queues": [["q", {"deserved": deserved}]],
            "podgroups": [["ns", "g", "q", 1, "Running"]],
            "pods": [["ns", "g-0", "n", "Running", *held, "g"]],
        },
        config_text([["capacity"]]),
    )
    session = open_session(scenario)
    key = session.answers.queue_key(scenario.state.queues["q"])
    assert key[0] == (0, (case["share"],))


def test_a_gang_that_was_refused_is_tried_again_when_its_queue_has_room() -> None:
    """What its queue holds is neither room on a node nor a change of the gang."""
    scenario = Scenario(
        {
            "nodes": [["n", 8, "8Gi"]],
            "queues": [["q", {"capability": {"cpu": 2}}]],
            "podgroups": [["ns", name, "q", 1, "Inqueue"] for name in ("first", "second")],
            "pods": [
                ["ns", f"{name}-0", "", "Pending", 2, 0, name] for name in ("first", "second")
            ],
        },
        config_text([["gang", "capacity", "predicates"]]),
    )
    scenario.start(result := scenario.cycle())
    assert list(result.binds) == ["ns/first-0"]
    assert scenario.cycle().pending["ns/second"].details["shortages"][0]["used"] == 2000
    scenario.state.remove_pod("ns", "first-0")
    assert list(scenario.cycle().binds) == ["ns/second-0"]


def test_gangs_that_enter_count_for_those_after_them() -> None:
    """Each of them alone would fit below the capability of the department."""
    scenario = Scenario(
        {
            "nodes": [["n", 8, "8Gi"]],
            "queues": [["root"], ["d", {"capability": {"cpu": 3}}]]
            + [[name, {"parent": "d"}] for name in ("a", "b")],
            "podgroups": [
                ["ns", name, name, 1, "Pending", {"minRes": {"cpu": 2}}] for name in "ab"
            ],
        },
        config_text([[{"capacity": ["Hierarchy", "JobEnqueued"]}]]),
    )
    result = scenario.cycle()
    assert result.all_pod_groups["ns/a"].phase == "Inqueue"
    assert "queue b: queue d above it has 2 of 3 cpu used" in result.pending["ns/b"].message


def test_refusals_of_a_gang_say_what_the_gang_needs() -> None:
    """Not what its single pod lacks once the others have taken theirs tentatively."""
    scenario = Scenario(
        {
            "nodes": [["n", 20, "8Gi"]],
            "queues": [["research", {"capability": {"cpu": 8}}]],
            "podgroups": [
                ["ns", "runs", "research", 1, "Running"],
                ["ns", "waits", "research", 12, "Inqueue"],
            ],
            "pods": [["ns", "runs-0", "n", "Running", 6, 0, "runs"]],
            "pod_sets": [{"pg": "waits", "count": 12, "memory": 0}],
        },
        config_text([["gang", "capacity", "predicates"]]),
    )
    reason = scenario.cycle().pending["ns/waits"]
    assert reason.message.endswith("queue research: 6 of 8 cpu used, 2 more allowed, needs 12")
    shortage = {"resource": "cpu", "used": 6000, "limit": 8000, "needs": 12000, "kept": 0}
    assert reason.details["shortages"] == [shortage]
    assert (reason.details["queue"], reason.details["limitedBy"]) == ("research", "research")
