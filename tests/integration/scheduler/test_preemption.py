"""A more important gang takes the place of a less important one, through the API server."""

from typing import Any

from pumice.api.kinds import POD, POD_GROUP, PRIORITY_CLASS
from pumice.cluster.errors import TooManyRequests
from pumice.scheduler import load_config
from tests.integration.scheduler.hooked import Hooked
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import pod_group

CONFIG = """
actions: enqueue, allocate, preempt
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""

HOLD = "test/hold"
"""A finalizer that keeps a victim for a while, so that what is promised can be seen."""


def _gang(stage: SchedulerStage, name: str, priority: str, minimum: int, **labels: str) -> None:
    stage.store.create(pod_group(name, minimum, priorityClassName=priority))
    made = stage.pod(f"{name}-0", group=name, cpu="2")
    made["spec"]["priorityClassName"] = priority
    made["metadata"] |= {"labels": labels, "finalizers": [HOLD] if name == "old" else []}
    stage.store.create(made)


def _classes(stage: SchedulerStage) -> None:
    for name, value in (("low", 1), ("high", 100)):
        manifest: dict[str, Any] = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": PRIORITY_CLASS.kind,
            "metadata": {"name": name},
            "value": value,
        }
        stage.store.create(manifest)


async def test_the_victim_goes_and_has_an_event_for_whom(stage: SchedulerStage) -> None:
    _classes(stage)
    stage.cluster.add_node("node1", cpu="2")
    _gang(stage, "old", "low", 0)
    async with stage.scheduler(config=load_config(CONFIG)):
        await stage.until(lambda: stage.nodes_of("old") == ["node1"])
        await stage.until(lambda: stage.find(POD, "old-0")["status"]["phase"] == "Running")
        _gang(stage, "new", "high", 1)
        await stage.until(
            lambda: stage.find(POD, "new-0")["status"].get("nominatedNodeName") == "node1"
        )
        await stage.until(lambda: "deletionTimestamp" in stage.find(POD, "old-0")["metadata"])
        assert stage.conditions("new")["Unschedulable"]["reason"] == "Pipelined"
        held = stage.find(POD, "old-0")
        stage.store.update(held | {"metadata": held["metadata"] | {"finalizers": []}})
        await stage.until(lambda: stage.nodes_of("new") == ["node1"])
        await stage.until(lambda: stage.events("Preempted"))
        (told,) = stage.events("Preempted")
        assert told["involvedObject"]["name"] == "old-0"
        assert "PodGroup default/new of queue default" in told["message"]
        assert stage.events("Evict") == []
        await stage.until(lambda: stage.phase("new") == "Running")


async def test_a_budget_saves_the_pod(stage: SchedulerStage) -> None:
    _classes(stage)
    stage.cluster.add_node("node1", cpu="2")
    _gang(stage, "old", "low", 0, app="old")
    budget: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "old"}}},
        "status": {"disruptionsAllowed": 0},
    }
    stage.store.create(budget)
    async with stage.scheduler(config=load_config(CONFIG)):
        await stage.until(lambda: stage.nodes_of("old") == ["node1"])
        _gang(stage, "new", "high", 1)
        await stage.until(lambda: "Unschedulable" in stage.conditions("new"))
        await stage.calm()
        assert stage.nodes_of("old") == ["node1"]
        assert (stage.find(POD_GROUP, "new")["status"]["phase"]) == "Inqueue"


BY_GANG = CONFIG.replace("preempt", "gangpreempt").replace(", {name: pdb}", "")


def _members(stage: SchedulerStage, name: str, priority: str, count: int, minimum: int) -> None:
    """A gang of pods of 2 cpu."""
    stage.store.create(pod_group(name, minimum, priorityClassName=priority))
    for index in range(count):
        made = stage.pod(f"{name}-{index}", group=name, cpu="2")
        made["spec"]["priorityClassName"] = priority
        stage.store.create(made)


def _runs(stage: SchedulerStage, name: str, count: int) -> bool:
    return len(stage.nodes_of(name)) == count and stage.phase(name) == "Running"


async def test_a_gang_goes_as_a_whole_and_its_pod_group_has_an_event(stage: SchedulerStage) -> None:
    """GP-05."""
    _classes(stage)
    for index in range(4):
        stage.cluster.add_node(f"node{index}", cpu="2")
    _members(stage, "old", "low", 4, 4)
    async with stage.scheduler(config=load_config(BY_GANG)) as worker:
        await stage.until(lambda: _runs(stage, "old", 4))
        _members(stage, "new", "high", 2, 2)
        await stage.until(lambda: _runs(stage, "new", 2))
        await stage.until(lambda: len(stage.events("Preempted")) == 4)
        await stage.until(lambda: stage.events("GangPreempted"))
        (told,) = stage.events("GangPreempted")
        assert (told["involvedObject"]["kind"], told["involvedObject"]["name"]) == (
            POD_GROUP.kind,
            "old",
        )
        assert told["message"] == "evicted as a whole (4 pods) for default/new (priority 100)"
        assert stage.nodes_of("old") == []
        value = worker.metrics.registry.get_sample_value(
            "volcano_eviction_transactions_total", {"action": "gangpreempt"}
        )
        assert value == 1


async def test_another_pod_goes_for_one_that_the_api_server_keeps(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    """GP-29: without plugin pdb a budget is only met when the eviction is asked for."""

    async def refused(pod: str) -> None:
        if pod == "old-3":
            raise TooManyRequests(429, "TooManyRequests", "disruption budget")

    hooked.before_evict = refused
    _classes(stage)
    for index in range(4):
        stage.cluster.add_node(f"node{index}", cpu="2")
    _members(stage, "old", "low", 4, 2)
    async with stage.scheduler(hooked, config=load_config(BY_GANG)):
        await stage.until(lambda: _runs(stage, "old", 4))
        _members(stage, "new", "high", 2, 2)
        await stage.until(lambda: _runs(stage, "new", 2))
        left = [name for name in stage.names(POD) if name.startswith("old")]
        assert sorted(left) == ["old-0", "old-3"]
