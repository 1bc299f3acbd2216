"""A more important gang takes the place of a less important one, through the API server."""

from typing import Any

from pumice.api.kinds import POD, POD_GROUP, PRIORITY_CLASS
from pumice.scheduler import load_config
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
