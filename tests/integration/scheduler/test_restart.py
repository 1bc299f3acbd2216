"""A scheduler that starts in a cluster where everything was decided before."""

from typing import Any

import pytest

from pumice.scheduler.model.peers import PeerTable
from pumice.scheduler.model.tasks import TaskInfo
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.requests import recorded

GANGS, SIZE = 10, 10


async def test_of_what_is_unchanged_nothing_is_written(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="1000", memory="1000Gi", pods=1000)
    for number in range(GANGS):
        stage.gang(f"runs{number}", SIZE, cpu="1")
    stage.gang("waits", SIZE, cpu="900")
    async with stage.scheduler():
        await stage.until(
            lambda: all(stage.phase(f"runs{number}") == "Running" for number in range(GANGS))
        )
        await stage.until(lambda: "Unschedulable" in stage.conditions("waits"))
        await stage.until(lambda: stage.pod_condition("waits-1"))
        await stage.calm()
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client) as worker:
        cycles = worker.metrics.cycles
        await stage.until(lambda: cycles._value.get() >= 3)
        await stage.calm()
    assert len(worker.caches.pods) == (GANGS + 1) * SIZE
    assert requests.writes == {}


async def test_labels_of_all_pods_are_not_looked_at_in_one_go(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pod that says something about others is enough, and most clusters have one."""
    stage.cluster.add_node("node1", cpu="100")
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    stage.gang("others", SIZE)
    stage.gang("apart", 1, affinity={"podAntiAffinity": rule})
    join, settle = PeerTable.join, PeerTable.settle
    joined: list[str] = []
    at_once: list[str] = []

    def noted(table: PeerTable, task: TaskInfo) -> None:
        joined.append(task.key)
        join(table, task)

    def counted(table: PeerTable, *arguments: Any) -> None:
        before = len(joined)
        settle(table, *arguments)
        at_once.extend(joined[before:])

    monkeypatch.setattr(PeerTable, "join", noted)
    monkeypatch.setattr(PeerTable, "settle", counted)
    async with stage.scheduler():
        await stage.until(lambda: "" not in stage.nodes_of("apart"))
    assert len(set(joined)) == SIZE + 1
    assert at_once == []


async def test_no_cycle_runs_while_a_list_is_taken_in(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    async with stage.scheduler() as worker:
        cycles = worker.metrics.cycles
        await stage.until(lambda: cycles._value.get() >= 1)
        before = cycles._value.get()
        worker.caches.nodes.settled.clear()
        stage.gang("train", 3)
        await stage.until(lambda: len(worker.caches.pods) == 3)
        await stage.calm()
        assert cycles._value.get() == before
        assert stage.nodes_of("train") == ["", "", ""]
        worker.caches.nodes.settled.set()
        await stage.until(lambda: "" not in stage.nodes_of("train"))
