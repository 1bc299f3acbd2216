"""PodDisruptionBudgets: pods that they protect stay, others go."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from pumice.api.budgets import PodDisruptionBudget
from pumice.api.meta import LabelSelector
from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, load_document, with_plugins

CASES = load_document("budgets.yaml")
TIERS = [["priority", "gang", "conformance", "pdb"], ["predicates", "nodeorder"]]


def _budget(
    name: str, spec: dict[str, Any], allowed: int, namespace: str = "ns"
) -> PodDisruptionBudget:
    raw = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, PodDisruptionBudget)


@pytest.mark.parametrize("case", CASES["cases"], ids=[case["title"] for case in CASES["cases"]])
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_victims(case: dict[str, Any], action: str) -> None:
    cluster = CASES["cluster"]
    if action == "reclaim":
        cluster = cluster | {
            "podgroups": [[*row[:2], row[1], *row[3:]] for row in cluster["podgroups"]]
        }
    scenario = Scenario(cluster, config_text(TIERS, ["allocate", action]))
    for name, (spec, allowed) in case["budgets"].items():
        scenario.state.set_budget(_budget(name, spec, allowed))
    assert sorted(scenario.cycle().evicted) == case["evicted"]


def test_evictions_that_the_budget_does_not_know_yet_count() -> None:
    scenario = Scenario(CASES["cluster"], config_text(TIERS, ["allocate", "preempt"]))
    scenario.state.set_budget(_budget("all", {"selector": {}}, 2))
    assert sorted(scenario.cycle().evicted) == ["ns/old-1", "ns/old-2"]
    scenario.state.set_pod_group(_more(scenario))
    assert scenario.cycle(NOW + 1).evicted == []
    scenario.state.set_budget(_budget("all", {"selector": {}}, 3))
    assert scenario.cycle(NOW + 2).evicted == ["ns/old-0"]


def _more(scenario: Scenario) -> Any:
    """One more pod that wants a place."""
    from tests.unit.scheduler.scenarios import pod, pod_group

    scenario.state.set_pod(pod(["ns", "more-0", "", "Pending", 1, 0, "more"]))
    return pod_group(["ns", "more", "new", 1, "Inqueue", {"prio": "high"}])


def test_a_budget_that_is_removed_protects_no_pod() -> None:
    scenario = Scenario(CASES["cluster"], config_text(TIERS, ["allocate", "preempt"]))
    scenario.state.set_budget(_budget("all", {"selector": {}}, 0))
    assert scenario.cycle().evicted == []
    assert scenario.state.remove_budget("ns", "all")
    assert sorted(scenario.cycle(NOW + 2).evicted) == ["ns/old-1", "ns/old-2"]


def test_evictions_that_are_undone_do_not_count() -> None:
    """Three pods of the first gang would have to replace three, of which the budget lets two go."""
    cluster = CASES["cluster"] | {
        "podgroups": [
            ["ns", "old", "new", 0, "Running", {"prio": "low"}],
            ["ns", "big", "new", 3, "Inqueue", {"prio": "highest"}],
            ["ns", "new", "new", 2, "Inqueue", {"prio": "high"}],
        ],
        "classes": {"low": 1, "high": 10, "highest": 100},
        "pod_sets": [{"pg": "big", "count": 3, "memory": 0}],
    }
    scenario = Scenario(cluster, config_text(TIERS, ["allocate", "preempt"]))
    scenario.state.set_budget(_budget("all", {"selector": {}}, 2))
    assert sorted(scenario.cycle().evicted) == ["ns/old-1", "ns/old-2"]


class _Mover:
    """Names all pods of gang `old`."""

    def __init__(self, _: Arguments) -> None:
        pass

    def open(self, session: SessionView, register: Registrar) -> None:
        def choose() -> list[TaskInfo]:
            return [task for task in session.running.tasks if task and task.name.startswith("old")]

        register.victim_tasks(choose)


def test_shuffle_evicts_what_plugins_name_and_budgets_allow() -> None:
    registry = with_plugins(builtin_registry(), PluginSpec("mover", "A test's plugin.", _Mover))
    text = config_text([["gang", "mover", "pdb"]], ["shuffle"])
    scenario = Scenario(CASES["cluster"], load_config(text, registry))
    scenario.state.set_budget(_budget("two", {"selector": {"matchLabels": {"app": "a"}}}, 1))
    result = scenario.cycle()
    assert result.evicted == ["ns/old-0", "ns/old-2"]
    assert [event.message for event in result.events if event.kind == "Pod"] == [
        "evicted because plugin mover chose it (shuffle)"
    ] * 2


def test_shuffle_evicts_no_critical_pod() -> None:
    registry = with_plugins(builtin_registry(), PluginSpec("mover", "A test's plugin.", _Mover))
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [
            ["ns", "g", "default", 0, "Running"],
            ["kube-system", "g", "default", 0, "Running"],
        ],
        "pods": [
            ["ns", "old-0", "n1", "Running", 1, 0, "g"],
            ["kube-system", "old-1", "n1", "Running", 1, 0, "g"],
        ],
    }
    text = config_text([["gang", "mover", "conformance"]], ["shuffle"])
    assert Scenario(cluster, load_config(text, registry)).cycle().evicted == ["ns/old-0"]


def test_a_budget_whose_selector_is_too_long_is_not_compared_with_pods() -> None:
    cluster = {"nodes": [["n1", 1, "1Gi"]], "pods": [["ns", "p", "n1", "Running", 1, "1Gi", ""]]}
    scenario = Scenario(cluster, config_text(TIERS))
    absent = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(200)]
    task = scenario.state.tasks["ns/p"]
    for number, protects in ((10, True), (200, False)):
        scenario.state.set_budget(
            _budget("b", {"selector": {"matchExpressions": absent[:number]}}, 0)
        )
        assert bool(scenario.state.budgets.of(task)) is protects


def test_a_pod_is_compared_with_budgets_that_require_one_of_its_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods = [
        [
            space,
            f"p{index}",
            "n1",
            "Running",
            1,
            "1Gi",
            "",
            {"labels": {"app": f"a{index}", "x": "y"}},
        ]
        for space in ("ns", "other")
        for index in range(50)
    ]
    scenario = Scenario({"nodes": [["n1", 200, "200Gi"]], "pods": pods}, config_text(TIERS))
    for index in range(50):
        labels = {"app": f"a{index}"} | ({"x": "z"} if index % 5 == 0 else {})
        scenario.state.set_budget(_budget(f"b{index}", {"selector": {"matchLabels": labels}}, 1))
    several = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a1", "a2"]}]}
    scenario.state.set_budget(_budget("a-few", {"selector": several}, 1))
    scenario.state.set_budget(_budget("b3", {"selector": {"matchLabels": {"app": "a4"}}}, 1))
    asked: list[str] = []
    matches = LabelSelector.matches

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        asked.append(labels["app"])
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    found = {
        key: [each.metadata.name for each in scenario.state.budgets.of(task)]
        for key, task in scenario.state.tasks.items()
    }
    assert (found["ns/p0"], found["ns/p1"], found["ns/p3"]) == ([], ["a-few", "b1"], [])
    assert (found["ns/p4"], found["other/p1"]) == (["b3", "b4"], [])
    assert len(asked) <= 3 * 50
