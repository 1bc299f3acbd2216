"""drf: the order of jobs and of queues in a tree by dominant shares, and who may go for whom."""

from typing import Any

import pytest

from pumice.api import keys
from pumice.scheduler.session.victims import judge
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, case_id, conf, config_text, load_cases
from tests.unit.scheduler.victims import candidates, candidates_of, may_go, preemptor_of


def _queue(name: str, said: Any) -> list[Any]:
    if isinstance(said, dict):
        return [name, said]
    path, weights = said
    return [name, {"annotations": {keys.HIERARCHY: path, keys.HIERARCHY_WEIGHTS: weights}}]


@pytest.mark.parametrize("case", load_cases("drf.yaml", "order"), ids=case_id)
def test_jobs_go_by_their_dominant_shares(case: dict[str, Any]) -> None:
    scenario = Scenario(
        {
            "nodes": [["n", 10, "100G"]],
            "podgroups": [["ns", name, "default", 1, "Inqueue"] for name in case["held"]],
            "pods": [
                row
                for name, held in case["held"].items()
                for row in (
                    ["ns", f"{name}-0", "n", "Running", *held, name],
                    ["ns", f"{name}-1", "", "Pending", 1, "1G", name],
                )
                if row[3] == "Pending" or held[0]
            ],
        },
        config_text([["drf"]]),
    )
    session = open_session(scenario)
    assert [job.name for job in sorted(session.view.waiting, key=session.answers.job_key)] == case[
        "expect"
    ]


@pytest.mark.parametrize("case", load_cases("drf.yaml", "victims"), ids=case_id)
def test_pods_of_larger_jobs_may_go(case: dict[str, Any]) -> None:
    new = case["new"]
    pods = [["ns", "new-0", "n", "Running", *new["held"], "new"]]
    pods.append(["ns", "new-1", "", "Pending", *new["asks"], "new"])
    for name, held in case["held"].items():
        pods += [
            ["ns", f"{name}-{number}", "n", "Running", *each, name]
            for number, each in enumerate(held)
        ]
    names = ["new", *case["held"]]
    cluster = {
        "nodes": [["n", 10, "10G"]],
        "podgroups": [["ns", name, "default", 1, "Running"] for name in names],
        "pods": pods,
    }
    scenario = Scenario(cluster, config_text([["drf"]]))
    session = open_session(scenario)
    found = candidates(scenario, [scenario.state.tasks[f"ns/{name}"] for name in case["offered"]])
    mask = judge(session.extensions.preemptable, preemptor_of(scenario, "ns/new-1"), found).may
    assert may_go(found, mask) == case["may_go"]


@pytest.mark.parametrize("case", load_cases("drf.yaml", "hierarchy"), ids=case_id)
def test_queues_in_a_tree(case: dict[str, Any]) -> None:
    tiers: Any = [[{"drf": case["switches"]}]] if "switches" in case else conf("HDRF")
    scenario = Scenario(
        {
            "nodes": case["nodes"],
            "queues": [_queue(name, said) for name, said in case["queues"].items()],
            "podgroups": [
                ["ns", name, row[0], 0, "Inqueue"] for name, row in case["gangs"].items()
            ],
            "pod_sets": [
                {"pg": name, "count": count, "cpu": cpu, "memory": memory}
                for name, (_, count, cpu, memory) in case["gangs"].items()
            ],
        },
        config_text(tiers, ["allocate"]),
    )
    placed: dict[str, int] = {}
    for pod in scenario.cycle().binds:
        gang = pod.split("/")[1].rpartition("-")[0]
        placed[gang] = placed.get(gang, 0) + 1
    assert placed == case["placed"]


@pytest.mark.parametrize("case", load_cases("drf.yaml", "reclaim"), ids=case_id)
def test_pods_of_queues_with_larger_shares_may_go(case: dict[str, Any]) -> None:
    asking, cpu, memory = case["asks"]
    groups = [["ns", name, row[0], 1, "Running"] for name, row in case["running"].items()]
    pods = [
        ["ns", f"{name}-{number}", "n", "Running", each_cpu, each_memory, name]
        for name, (_, count, each_cpu, each_memory) in case["running"].items()
        for number in range(count)
    ]
    cluster = {
        "nodes": [["n", 10, "10G"]],
        "queues": [_queue(name, said) for name, said in case["queues"].items()],
        "podgroups": [*groups, ["ns", "new", asking, 1, "Inqueue"]],
        "pods": [*pods, ["ns", "new-0", "", "Pending", cpu, memory, "new"]],
    }
    scenario = Scenario(
        cluster, config_text([[{"drf": ["Hierarchy", "Reclaimable", "QueueOrder"]}]])
    )
    session = open_session(scenario)
    preemptor = preemptor_of(scenario, "ns/new-0")
    found = candidates_of(scenario, preemptor)
    before = session.answers.queue_key(preemptor.queue)
    assert (
        len(may_go(found, judge(session.extensions.reclaimable, preemptor, found).may))
        == case["may_go"]
    )
    assert session.answers.queue_key(preemptor.queue) == before


def test_a_queue_whose_share_became_smaller_by_a_placement_elsewhere_comes_first() -> None:
    """The first pod of y scales x down to it, so that both go before q, which waited in front of x."""
    queues = {"q": ["root/q", "1/1"], "x": ["root/p/x", "1/1/1"], "y": ["root/p/y", "1/1/1"]}
    pods = [["ns", f"x-{number}", "n", "Running", 1, "1G", "x"] for number in range(4)]
    pods += [["ns", f"q-{number}", "n", "Running", 1, "1G", "q"] for number in range(3)]
    pods += [["ns", f"{name}-new", "", "Pending", 1, "1G", name] for name in queues]
    pods.append(["ns", "y-more", "", "Pending", 1, "1G", "y"])
    cluster = {
        "nodes": [["n", 10, "10G"]],
        "queues": [_queue(name, said) for name, said in queues.items()],
        "podgroups": [["ns", name, name, 1, "Running"] for name in queues],
        "pods": pods,
    }
    scenario = Scenario(cluster, config_text([[{"drf": ["Hierarchy", "QueueOrder"]}]]))
    session = open_session(scenario)
    line = session.answers.ordered_queues(scenario.state.queues[name] for name in queues)
    session.statement().allocate(scenario.state.tasks["ns/y-new"], scenario.state.nodes.order[0])
    assert [line.pop().metadata.name for _ in queues] == ["y", "x", "q"]


def test_queues_stand_where_they_stood_after_a_placement_that_is_undone() -> None:
    cluster = {
        "nodes": [["n", 10, "10G"]],
        "queues": [_queue(name, [f"root/{name}", "1/1"]) for name in "ab"],
        "podgroups": [["ns", name, name, 1, "Inqueue"] for name in "ab"],
        "pods": [["ns", f"{name}-0", "", "Pending", 1, "1G", name] for name in "ab"],
    }
    scenario = Scenario(cluster, config_text([[{"drf": ["Hierarchy", "QueueOrder"]}]]))
    session = open_session(scenario)

    def keys_of_queues() -> list[Any]:
        return [session.answers.queue_key(scenario.state.queues[name]) for name in "ab"]

    before = keys_of_queues()
    statement = session.statement()
    statement.allocate(scenario.state.tasks["ns/a-0"], scenario.state.nodes.order[0])
    assert keys_of_queues() != before
    statement.discard()
    assert keys_of_queues() == before
