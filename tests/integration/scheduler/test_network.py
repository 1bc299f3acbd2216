"""HyperNodes that come, change and go while the scheduler runs, and clusters that do not have the kind."""

import asyncio

import pytest

from pumice.api.crds import all_crds
from pumice.api.kinds import HYPER_NODE
from pumice.cluster.client import Client
from pumice.cluster.reflector import Reflector
from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.integration.scheduler.hooked import leaderships
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.quick_loop import wall
from tests.unit.scheduler.network_trees import hyper_node


async def test_the_tree_follows_the_cluster(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.store.create(hyper_node("s0", nodes=["node1", "node2"]))
    async with leaderships(monkeypatch) as begun, stage.scheduler():
        await stage.until(lambda: begun and begun[0].lack is None)
        network = begun[0]._context.state.network
        assert list(network.domains) == ["s0"]
        stage.store.create(hyper_node("s1", tier=2, below=["s0"]))
        stage.cluster.add_node("node2", cpu="8")
        await stage.until(lambda: len(network.domains) == 2)
        await stage.until(lambda: network.mask(network.domains["s1"]).sum() == 2)
        stage.store.delete(HYPER_NODE, "s0")
        await stage.until(lambda: list(network.domains) == ["s1"])
        assert not network.mask(network.domains["s1"]).any(), "s1 has no nodes any more"


async def test_the_owner_of_a_broken_hyper_node_is_told(stage: SchedulerStage) -> None:
    stage.store.create(hyper_node("s0", below=["s0"]))
    async with stage.scheduler():
        await stage.until(lambda: stage.events("InvalidTopology"))
        stage.cluster.add_node("node1", cpu="8")
        stage.gang("g", 2)
        await stage.until(lambda: all(stage.nodes_of("g")))
        await stage.calm()
    (event,) = stage.events("InvalidTopology")
    assert event["involvedObject"]["name"] == "s0"
    assert event["message"] == "s0 is a member of itself"


async def test_a_cluster_without_the_kind_is_scheduled_and_may_get_it() -> None:
    crds = {each["spec"]["names"]["kind"]: each for each in all_crds()}
    of_hyper_nodes = crds.pop(HYPER_NODE.kind)
    timings = NodeTimings(start=0.0, stop=0.0)
    async with (
        EmbeddedCluster(list(crds.values()), timings=timings, clock=wall) as cluster,
        Client.connect(server=cluster.url) as client,
    ):
        stage = SchedulerStage(cluster, client)
        cluster.add_node("node1", cpu="8")
        async with stage.scheduler() as worker:
            stage.gang("g", 2)
            await stage.until(lambda: all(stage.nodes_of("g")))
            assert worker.ready
            stage.store.create(of_hyper_nodes)
            stage.store.create(hyper_node("s0", below=["s0"]))
            await stage.until(lambda: stage.events("InvalidTopology"))


async def test_no_cycle_runs_before_the_hyper_nodes_are_known(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_told = asyncio.Event()
    works = Reflector._list

    async def slow(reflector: Reflector) -> None:
        if reflector._kind == HYPER_NODE:
            await is_told.wait()
        await works(reflector)

    monkeypatch.setattr(Reflector, "_list", slow)
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("g", 2)
    async with stage.scheduler() as worker:
        state = "it is not known yet which HyperNodes there are"
        await stage.until(lambda: worker.checks["state"]() == state)
        assert await stage.still()
        assert not worker.ready
        is_told.set()
        await stage.until(lambda: all(stage.nodes_of("g")))
