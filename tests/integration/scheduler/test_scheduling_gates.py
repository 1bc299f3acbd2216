"""The gate that holds pods until their queue has room, taken away by the scheduler."""

from typing import Any

from pumice.api.kinds import POD
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import Unavailable
from tests.integration.scheduler.stage import SchedulerStage

GATE = "scheduling.volcano.sh/queue-allocation-gate"
OTHER = "example.com/other"


def _gang(stage: SchedulerStage, name: str, *gates: str) -> None:
    gated: dict[str, Any] = {
        "annotations": {GATE: "true"},
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    stage.gang(name, 2, **gated)


def _gates(stage: SchedulerStage, name: str) -> list[str]:
    spec = stage.find(POD, name)["spec"]
    return [gate["name"] for gate in spec.get("schedulingGates") or []]


class Unsteady(Client):
    """A client whose first patch of a pod's spec fails."""

    refusals = 1

    async def patch(self, *arguments: Any, **named: Any) -> Object:
        if "spec" in arguments[3] and self.refusals:
            self.refusals -= 1
            raise Unavailable(0, "Timeout", "no answer")
        return await super().patch(*arguments, **named)


async def test_a_gang_loses_its_gates_and_is_bound(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    _gang(stage, "train", GATE)
    _gang(stage, "held", GATE, OTHER)
    client = Unsteady(stage.client.connection)
    async with stage.scheduler(client, opens_gates=True):
        await stage.until(lambda: stage.nodes_of("train") == ["node1"] * 2)
        await stage.calm()
    await client.close()
    assert client.refusals == 0
    assert _gates(stage, "train-0") == []
    assert _gates(stage, "held-0") == [GATE, OTHER]
    assert stage.pod_condition("held-0")["reason"] == "SchedulingGated"


async def test_pods_that_lack_a_node_alone_are_unschedulable(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="1")
    _gang(stage, "train", GATE)
    client = Unsteady(stage.client.connection)
    async with stage.scheduler(client, opens_gates=True):
        await stage.until(lambda: not any(_gates(stage, f"train-{each}") for each in (0, 1)))
        await stage.until(lambda: stage.pod_condition("train-0")["reason"] == "Unschedulable")
        stage.cluster.add_node("node2", cpu="1")
        await stage.until(lambda: stage.nodes_of("train") == ["node1", "node2"])
    await client.close()


async def test_gates_stay_where_the_feature_is_off(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    _gang(stage, "train", GATE)
    async with stage.scheduler():
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        await stage.calm()
    assert _gates(stage, "train-0") == [GATE]
    assert stage.nodes_of("train") == ["", ""]
