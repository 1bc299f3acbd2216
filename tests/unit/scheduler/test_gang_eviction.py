"""Evictions for gangs as a whole, row by row; then evicted pods are gone, and five more cycles evict nothing.

The same rows are simulated by `tests/unit/cli/test_simulate_gang_eviction.py`.
"""

from collections import Counter
from typing import Any

import msgspec
import pytest
import yaml

from pumice.api.budgets import PodDisruptionBudget
from pumice.scheduler import CycleResult
from pumice.scheduler.eviction.attempt import FoundRoom
from pumice.scheduler.eviction.domains import DomainPlaces
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.session.victims import judge
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    case_id,
    config_text,
    load_document,
    pod_group,
)

Raw = dict[str, Any]

MORE_CYCLES = 5
TABLE = load_document("gang_eviction.yaml")
RACKS = {"s0": {"tier": 1, "nodes": ["a", "b"]}, "s1": {"tier": 1, "nodes": ["c", "d"]}}
PLUGINS = [["priority", "gang", "conformance"], ["predicates"]]


def configuration(case: Raw) -> str:
    """The configuration of a row."""
    action = case.get("action", "gangpreempt")
    plugins = [*case.get("plugins", PLUGINS)]
    if "racks" in case:
        given = case["racks"] if isinstance(case["racks"], dict) else {}
        plugins.append([{"network-topology-aware": None, "args": given}])
    document = yaml.safe_load(config_text(plugins, ["allocate", action]))
    document["configurations"] = [{"name": action, "arguments": case.get("arguments", {})}]
    return yaml.safe_dump(document)


def cluster(case: Raw) -> Raw:
    """Rows of the nodes, queues, gangs and pods of a row."""
    groups, pods = [], []
    for number, (name, gang) in enumerate(case["gangs"].items()):
        queue, size, minimum, priority, *rest = gang
        nodes = rest[0] if rest else ""
        options = dict(rest[1]) if len(rest) > 1 else {}
        policy = {"policy": options.pop("policy")} if "policy" in options else {}
        of = options.pop("of", "")
        cpu, memory = options.pop("cpu", 1), options.pop("memory", 0)
        policy |= {"ports": options.pop("ports")} if "ports" in options else {}
        kept = options.pop("kept", 0)
        if "hard" in options:
            tier = options.pop("hard")
            options["topology"] = {"mode": "hard", "highestTierAllowed": tier}
        if options.pop("soft", False):
            options["topology"] = {"mode": "soft"}
        phase = "Running" if nodes else "Inqueue"
        created = f"2023-01-01T00:00:{number:02}Z"
        options |= {"prio": priority, "created": created}
        groups.append(["ns", name, queue, minimum, phase, options])
        for index in range(size):
            node, status = (nodes[index], "Running") if nodes[index:] else ("", "Pending")
            of_pod = {"prio": TABLE["classes"][priority]} | policy
            of_pod |= {"labels": {"of": of[index]}} if of else {}
            of_pod |= {"preemptable": False} if index < kept else {}
            pods.append(["ns", f"{name}-{index}", node, status, cpu, memory, name, of_pod])
    return {
        "classes": TABLE["classes"],
        "nodes": case.get("nodes", [[name, 1, "11Gi"] for name in "abcd"]),
        "queues": case.get("queues", [["q"]]),
        "hyper_nodes": RACKS if "racks" in case else {},
        "podgroups": groups,
        "pods": pods,
    }


def scenario_of(case: Raw) -> Scenario:
    """The cluster of a row."""
    scenario = Scenario(cluster(case), configuration(case))
    for name, allowed in case.get("budgets", {}).items():
        budget = {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {}},
            "status": {"disruptionsAllowed": allowed},
        }
        scenario.state.set_budget(msgspec.convert(budget, PodDisruptionBudget))
    return scenario


def _told(result: CycleResult) -> dict[str, str]:
    return {each.name: each.message for each in result.events if each.reason == "GangPreempted"}


def _row(number: str) -> Raw:
    return next(case for case in TABLE["cases"] if case["id"] == number)


def _runs(scenario: Scenario) -> dict[str, int]:
    """Pods that have a node, by gang."""
    tasks = scenario.state.tasks.values()
    return dict(Counter(task.job.removeprefix("ns/") for task in tasks if task.node))


def _settle(scenario: Scenario, result: CycleResult, moment: float = NOW) -> list[list[str]]:
    """What further cycles evict, while evicted pods go."""
    evicted = []
    for number in range(MORE_CYCLES):
        scenario.start(result)
        result = scenario.cycle(moment + 2 * (1 + number))
        evicted.append(result.evicted)
    return evicted


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: f"{case['id']}-{case_id(case)}")
def test_gangs_are_evicted_for_gangs(case: Raw) -> None:
    scenario, expect = scenario_of(case), case["expect"]
    result = scenario.cycle()
    assert sorted(result.evicted) == sorted(f"ns/{name}" for name in expect.get("evicted", []))
    assert not (result.evicted and result.binds)  # no pod of a gang starts before the others
    assert result.transactions == ({case.get("action", "gangpreempt"): 1} if result.evicted else {})
    told = _told(result)
    assert sorted(told) == sorted(expect.get("broken", {}))
    for name, message in expect.get("broken", {}).items():
        assert message in told[name]
    if "why" in expect:
        assert expect["why"] in result.pending["ns/p"].summary
    if "why_not" in expect:
        assert expect["why_not"] not in result.pending["ns/p"].summary
    assert not any(_settle(scenario, result))
    assert _runs(scenario) == expect["runs"]
    for name, nodes in expect.get("on", {}).items():
        tasks = scenario.state.jobs[f"ns/{name}"].tasks.values()
        assert "".join(sorted(task.node for task in tasks)) == nodes


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("number", ["GP-01", "GP-21"])
def test_a_scheduler_that_is_killed_between_two_evictions_ends_as_if_it_had_not_been(
    number: str, *, written: bool
) -> None:
    """GP-28, with and without the nominations that it wrote, also where room is made in one rack."""
    result = scenario_of(_row(number)).cycle()
    first, second = result.evicted
    scenario = scenario_of(_row(number))
    for key, manifest in list(scenario.pods.items()):
        if key == first:
            manifest["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
        if written and key in result.nominations:
            manifest["status"]["nominatedNodeName"] = result.nominations[key]
        scenario.show(manifest)
    again = scenario.cycle(NOW + 2)
    assert again.evicted == [second]
    assert not any(_settle(scenario, again, NOW + 2))
    assert _runs(scenario) == {"v": 2, "p": 2}
    assert sorted(result.nominations.values()) == sorted(
        scenario.state.tasks[f"ns/p-{index}"].node for index in range(2)
    )


@pytest.mark.parametrize(("minimum", "instead"), [(2, ["ns/v-1"]), (3, [])])
def test_an_eviction_that_the_api_server_refuses_leads_to_another_one_if_there_is_one(
    minimum: int, instead: list[str]
) -> None:
    """GP-29."""
    gangs = {"v": ["q", 4, 2, "low", "abcd"], "p": ["q", 2, 2, "high"]}
    arguments = {"allowWholeBundle": False}
    scenario = scenario_of({"gangs": gangs, "arguments": arguments})
    assert scenario.cycle().evicted == ["ns/v-3", "ns/v-2"]
    scenario.state.set_pod_group(pod_group(["ns", "v", "q", minimum, "Running", {"prio": "low"}]))
    scenario.state.remove_pod("ns", "v-2")
    del scenario.pods["ns/v-2"]
    scenario.state.pods.forget("ns/v-3", "")
    scenario.state.pods.spare("ns/v-3", "", NOW + 1000)
    result = scenario.cycle(NOW + 2)
    assert result.evicted == instead
    assert not any(_settle(scenario, result, NOW + 2))
    runs = {"v": 2, "p": 2} if instead else {"v": 3}
    assert _runs(scenario) == runs


@pytest.mark.parametrize(("breaks", "then"), [(False, []), (True, ["ns/v-1", "ns/v-0"])])
def test_a_more_important_gang_takes_the_room_of_pods_that_are_leaving(
    *, breaks: bool, then: list[str]
) -> None:
    """GP-31; the gang that has lost the room evicts again, if it may break the other one."""
    scenario = scenario_of(_row("GP-01") | {"arguments": {"allowWholeBundle": breaks}})
    assert scenario.cycle().evicted == ["ns/v-3", "ns/v-2"]
    group = ["ns", "p2", "q", 2, "Inqueue", {"prio": "highest"}]
    scenario.state.set_pod_group(pod_group(group))
    for index in range(2):
        scenario.add_pod(["ns", f"p2-{index}", "", "Pending", 1, 0, "p2", {"prio": 200}])
    for name in ("v-2", "v-3"):
        scenario.state.remove_pod("ns", name)
        del scenario.pods[f"ns/{name}"]
    result = scenario.cycle(NOW + 2)
    assert sorted(result.binds) == ["ns/p2-0", "ns/p2-1"]
    assert result.evicted == then
    assert not any(_settle(scenario, result, NOW + 2))
    assert _runs(scenario) == {"p2": 2, "p" if then else "v": 2}


def test_gangs_that_find_too_little_are_looked_at_once_for_all_of_their_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sought = []
    find = Search.find

    def finding(
        search: Search, domains: DomainPlaces, *others: Any, **how: Any
    ) -> FoundRoom | None:
        sought.append(domains.preemptor.job.name)
        return find(search, domains, *others, **how)

    monkeypatch.setattr(Search, "find", finding)
    running = {"v": ["q", 3, 3, "low", "abc"], "o": ["q", 2, 2, "high", "de"]}
    waiting = {name: ["q", 4, 4, "high"] for name in ("p", "p2", "p3")}
    nodes = [[name, 1, "11Gi"] for name in "abcde"]
    gangs = running | waiting | {"larger": ["q", 5, 5, "high"]}
    scenario = scenario_of({"nodes": nodes, "gangs": gangs})
    result = scenario.cycle()
    assert (sorted(sought), result.evicted) == (["larger", "p"], [])
    why = "even without the 3 pods that may go, nodes would hold 3 of 4 pods"
    for name in waiting:
        assert why in result.pending[f"ns/{name}"].summary


def test_all_gangs_of_a_queue_share_one_look_at_running_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = []

    def judging(checks: Any, preemptor: Preemptor, candidates: Candidates, **how: Any) -> Any:
        looked.append(preemptor.job.name)
        return judge(checks, preemptor, candidates, **how)

    monkeypatch.setattr("pumice.scheduler.eviction.survey.judge", judging)
    waiting = {f"p{size}": ["q1", size, size, "low"] for size in (1, 2, 3)}
    case = _row("GR-08-guarantee") | {"gangs": {"v": ["q2", 4, 4, "low", "abcd"]} | waiting}
    assert scenario_of(case).cycle().evicted == []
    assert looked[:2] == ["p1", "p1"]  # of all running pods, and of the gang that might go
    assert Counter(looked) == {"p1": 2, "p2": 1}


def test_a_queue_takes_back_for_no_pod_that_it_may_not_whichever_pods_find_places() -> None:
    """The first pod, which alone counts for the minimum, fits on no node; for the second one the queue deserves too little."""
    cluster = {
        "nodes": [["a", 4, "8Gi"]],
        "queues": [["q1", {"deserved": {"cpu": 1}}], ["q2", {"deserved": {"cpu": 1}}]],
        "podgroups": [
            ["ns", "v", "q2", 0, "Running"],
            ["ns", "p", "q1", 1, "Inqueue"],
        ],
        "pods": [
            *(["ns", f"v-{index}", "a", "Running", 1, 0, "v"] for index in range(4)),
            ["ns", "p-0", "", "Pending", 1, 0, "p", {"selector": {"no": "node"}}],
            ["ns", "p-1", "", "Pending", 2, 0, "p"],
        ],
    }
    plugins = [["priority", "gang", "conformance", "capacity"], ["predicates"]]
    scenario = Scenario(cluster, config_text(plugins, ["allocate", "gangreclaim"]))
    assert scenario.cycle().evicted == []


def test_a_gang_that_loses_pods_evicts_no_others_in_the_same_cycle() -> None:
    cluster = {
        "classes": TABLE["classes"],
        "nodes": [["a", 1, "8Gi"], ["b", 1, "8Gi"]],
        "queues": [["q1", {"deserved": {"cpu": 1}}], ["q2", {"deserved": {"cpu": 1}}]],
        "podgroups": [
            ["ns", "bound", "q2", 0, "Running", {"prio": "low"}],
            ["ns", "v", "q2", 1, "Running", {"prio": "mid"}],
            ["ns", "p", "q1", 1, "Inqueue", {"prio": "mid"}],
        ],
        "pods": [
            ["ns", "bound-0", "a", "Pending", 1, 0, "bound", {"prio": 10}],
            ["ns", "v-0", "b", "Running", 1, 0, "v", {"prio": 50}],
            ["ns", "v-1", "", "Pending", 1, 0, "v", {"prio": 50}],
            ["ns", "p-0", "", "Pending", 1, 0, "p", {"prio": 50}],
        ],
    }
    plugins = [["priority", "gang", "conformance", "capacity"], ["predicates"]]
    actions = ["allocate", "gangreclaim", "gangpreempt"]
    scenario = Scenario(cluster, config_text(plugins, actions))
    assert scenario.cycle().evicted == ["ns/v-0"]


# -- what plugins refuse ---------------------------------------------------------------------


def _of(gang: str, minimum: int, priority: int, nodes: str, labelled: str = "") -> Raw:
    """A gang of one pod on each of some nodes, those of some nodes with a label that budgets select."""
    classes = {5: "lower", 10: "low", 100: "high"}
    options = {"prio": classes[priority], "created": "2023-01-01T00:00:00Z"}
    pods = []
    for index, node in enumerate(nodes):
        labels = {"app": "x"} if node in labelled else {}
        place = ("", "Pending") if node == "-" else (node, "Running")
        pods.append(
            ["ns", f"{gang}-{index}", *place, 1, 0, gang, {"prio": priority, "labels": labels}]
        )
    phase = "Inqueue" if "-" in nodes else "Running"
    return {"podgroups": [["ns", gang, "q", minimum, phase, options]], "pods": pods}


def _budgeted(allowed: int, nodes: list[Any], *gangs: Raw) -> Scenario:
    """Gangs on nodes, and a budget for all pods with the label."""
    case = {"nodes": nodes, "queues": [["q"]], "classes": {"lower": 5, "low": 10, "high": 100}}
    joined = {key: [row for gang in gangs for row in gang[key]] for key in ("podgroups", "pods")}
    plugins = [["priority", "gang", "conformance", "pdb"], ["predicates"]]
    scenario = Scenario(case | joined, config_text(plugins, ["allocate", "gangpreempt"]))
    budget = {
        "metadata": {"name": "some", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    scenario.state.set_budget(msgspec.convert(budget, PodDisruptionBudget))
    return scenario


FIVE = [[name, 1, "11Gi"] for name in "abcde"]


def test_a_pod_that_may_not_go_alone_does_not_go_with_its_gang() -> None:
    gangs = (_of("x", 1, 10, "ab", "be"), _of("v", 2, 10, "cde", "be"), _of("p", 4, 100, "----"))
    scenario = _budgeted(1, FIVE, *gangs)
    assert scenario.cycle().evicted == []


def test_a_gang_that_may_not_go_takes_no_budget_from_the_next_one() -> None:
    gangs = (
        _of("big", 3, 5, "abc", "abcde"),
        _of("small", 2, 10, "de", "abcde"),
        _of("p", 2, 100, "--"),
    )
    scenario = _budgeted(2, FIVE, *gangs)
    assert sorted(scenario.cycle().evicted) == ["ns/small-0", "ns/small-1"]


def test_more_bundles_are_looked_at_after_a_placement_that_failed() -> None:
    """The placement fails because the pods must not stand beside others, which arithmetic does not know."""
    size, needed = 40, 35
    names = [f"n{index:02}" for index in range(size)]
    nodes = [[name, 10, "11Gi", {"labels": {"host": name}}] for name in names]
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    options = {"prio": "low", "created": "2023-01-01T00:00:00Z"}
    low: Raw = {"podgroups": [["ns", "v", "q", 1, "Running", options]], "pods": []}
    high: Raw = {
        "podgroups": [["ns", "p", "q", needed, "Inqueue", options | {"prio": "high"}]],
        "pods": [],
    }
    for index, name in enumerate(names):
        of_pod = {"prio": 10, "labels": {"app": "x"}}
        low["pods"].append(["ns", f"v-{index:02}", name, "Running", 1, 0, "v", of_pod])
    for index in range(needed):
        high["pods"].append(
            ["ns", f"p-{index:02}", "", "Pending", 6, 0, "p", {"prio": 100, "affinity": apart}]
        )
    scenario = _budgeted(size, nodes, low, high)
    assert len(scenario.cycle().evicted) == needed


def test_a_cluster_without_nodes_is_no_mistake_of_the_gang() -> None:
    case = {"nodes": [], "queues": [["q", {"dequeueStrategy": "fifo"}]], "classes": {"high": 100}}
    plugins = [["priority", "gang", "capacity"], ["predicates"]]
    scenario = Scenario(case | _of("p", 1, 100, "-"), config_text(plugins, ["gangreclaim"]))
    assert scenario.cycle().evicted == []
    assert not scenario.state.gangs.quarantined
