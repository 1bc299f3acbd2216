"""The scheduler's process against an API server: what it writes, and what it leaves alone."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import LEASE, NODE, POD, POD_GROUP, QUEUE
from pumice.cluster.client import Client, Object
from pumice.cluster.lifecycle import run_until_stopped
from pumice.embedded import EmbeddedCluster
from pumice.scheduler import CycleResult, load_config, run_cycle
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings, loop
from pumice.scheduler.worker.configuration import DELAYS
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import pod_group, queue


async def test_a_gang_is_bound_and_its_group_follows(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 3)
    async with stage.scheduler() as worker:
        await stage.until(lambda: stage.phase("train") == "Running")
        assert stage.nodes_of("train") == ["node1"] * 3
        assert stage.conditions("train")["Scheduled"]["status"] == "True"
        bound = worker.metrics.registry.get_sample_value(
            "pumice_scheduler_binds_total", {"result": "bound"}
        )
        assert bound == 3


async def test_a_gang_that_does_not_fit_waits_whole_and_says_why(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("train", 3)
    async with stage.scheduler():
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        await stage.until(lambda: stage.pod_condition("train-2"))
        assert stage.nodes_of("train") == ["", "", ""]
        assert "Insufficient cpu" in stage.conditions("train")["Unschedulable"]["message"]
        condition = stage.pod_condition("train-2")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        # The others would have had a place: they wait because their gang does, which its PodGroup says.
        assert [stage.pod_condition(f"train-{number}") for number in range(2)] == [{}, {}]
        await stage.until(lambda: stage.events("FailedScheduling"))
        stage.cluster.add_node("node2", cpu="2")
        await stage.until(lambda: stage.phase("train") == "Running")
        assert "" not in stage.nodes_of("train")
        assert stage.pod_condition("train-0")["status"] == "True"


async def test_nothing_is_written_where_nothing_changes(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("runs", 1)
    stage.gang("waits", 3)
    async with stage.scheduler():
        await stage.until(lambda: stage.phase("runs") == "Running")
        await stage.until(lambda: "Unschedulable" in stage.conditions("waits"))
        await stage.calm()
        assert await stage.still()


async def test_a_new_process_goes_on_without_a_word(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("runs", 1)
    stage.gang("waits", 3)
    async with stage.scheduler():
        await stage.until(lambda: stage.phase("runs") == "Running")
        await stage.calm()
    before = stage.conditions("waits")
    async with stage.scheduler() as worker:
        await stage.until(worker.started.is_set)
        assert await stage.still()
        assert stage.conditions("waits") == before


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
async def test_it_can_be_stopped_at_any_moment(stage: SchedulerStage, delay: float) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("train", 8)
    async with stage.scheduler(concurrent_binds=1) as worker:
        await stage.until(worker.started.is_set)
        await asyncio.sleep(delay)
    async with stage.scheduler():
        await stage.until(lambda: stage.phase("train") == "Running")
        assert stage.nodes_of("train") == ["node1"] * 8


async def test_a_later_pod_of_the_same_name_is_another_pod(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("train", 1)
    async with stage.scheduler():
        for _ in range(3):
            await stage.until(lambda: stage.nodes_of("train") == ["node1"])
            stage.store.delete(POD, "train-0", "default")
            stage.store.create(stage.pod("train-0", group="train", cpu="1"))
        await stage.until(lambda: stage.nodes_of("train") == ["node1"])


async def test_pods_of_others_take_room_and_are_left_alone(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.store.create(stage.pod("other", node="node1", cpu="2", schedulerName="default-scheduler"))
    stage.store.create(stage.pod("alone", cpu="1", schedulerName="default-scheduler"))
    stage.gang("train", 1)
    async with stage.scheduler():
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        await stage.calm()
        assert stage.nodes_of("train") == [""]
        alone = stage.store.get(POD, "alone", "default")
        assert alone is not None
        assert "nodeName" not in alone["spec"]
        stage.store.delete(POD, "other", "default")
        await stage.until(lambda: stage.nodes_of("train") == ["node1"])


async def test_conditions_of_others_on_a_waiting_pod_stay(stage: SchedulerStage) -> None:
    stage.gang("train", 1)
    waiting = stage.store.get(POD, "train-0", "default")
    assert waiting is not None
    gate = {"type": "example.com/gate", "status": "True", "message": "mine"}
    waiting["status"]["conditions"] = [gate]
    stage.store.update_status(waiting)
    async with stage.scheduler():
        await stage.until(lambda: stage.pod_condition("train-0"))
    found = stage.store.get(POD, "train-0", "default")
    assert found is not None
    types = {each["type"] for each in found["status"]["conditions"]}
    assert types == {"example.com/gate", "PodScheduled"}


async def test_a_group_that_is_made_anew_is_judged_anew(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("train", 2)
    async with stage.scheduler():
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        stage.store.delete(POD_GROUP, "train", "default")
        stage.store.create(pod_group("train", 1))
        await stage.until(lambda: sorted(stage.nodes_of("train")) == ["", "node1"])


async def test_a_node_that_goes_takes_no_pod_any_more(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    async with stage.scheduler() as worker:
        await stage.until(worker.started.is_set)
        stage.store.delete(NODE, "node1")
        stage.gang("train", 1)
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        assert stage.nodes_of("train") == [""]


async def test_one_of_two_leads_and_the_other_takes_over(
    stage: SchedulerStage, cluster: EmbeddedCluster
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    second = Client((stage.client).connection)
    async with stage.scheduler(leader_elect=True, identity="one") as one:
        await stage.until(one.started.is_set)
        async with stage.scheduler(second, leader_elect=True, identity="two") as two:
            await stage.until(lambda: two.ready)
            assert not two.started.is_set()
            stage.gang("first", 1)
            await stage.until(lambda: stage.phase("first") == "Running")
            lease = cluster.store.get(LEASE, "pumice-scheduler", "default")
            assert lease is not None
            assert lease["spec"]["holderIdentity"] == "one"
    async with stage.scheduler(second, leader_elect=True, identity="two") as two:
        await stage.until(two.started.is_set)
        stage.gang("second", 1)
        await stage.until(lambda: stage.phase("second") == "Running")
    await second.close()


async def test_evictions_are_carried_out(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("victim", 1)
    async with stage.scheduler() as worker:
        await stage.until(lambda: stage.phase("victim") == "Running")

        def evicting(*arguments: Any) -> CycleResult:
            result = run_cycle(*arguments)
            if stage.nodes_of("victim"):
                result.evicted.append("default/victim-0")
            return result

        monkeypatch.setattr(loop, "run_cycle", evicting)
        await stage.until(lambda: stage.nodes_of("victim") == [])
        sample = worker.metrics.registry.get_sample_value
        evicted = {"result": "evicted"}  # counted when the answer has arrived
        await stage.until(lambda: sample("pumice_scheduler_evictions_total", evicted))


async def test_it_ends_on_a_signal(stage: SchedulerStage) -> None:
    stop = asyncio.Event()
    worker = SchedulerWorker(stage.client, load_config(None), WorkerSettings(period=0.05))
    running = asyncio.create_task(run_until_stopped(worker.tasks(), stop=stop, signals=()))
    await stage.until(lambda: len(stage.store.list(QUEUE)) == 2)
    stop.set()
    await asyncio.wait_for(running, 60)


async def test_a_queue_hears_that_nothing_enforces_its_share(stage: SchedulerStage) -> None:
    made = queue("team")
    made["spec"]["deserved"] = {"cpu": "4"}
    stage.store.create(made)
    async with stage.scheduler():
        await stage.until(lambda: stage.events("NotEnforced"))
        (event,) = stage.events("NotEnforced")
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (
            "Queue",
            "team",
        )
        assert "spec.deserved" in event["message"]


async def test_what_the_configuration_names_and_this_version_lacks_is_said_where_people_look(
    stage: SchedulerStage, caplog: pytest.LogCaptureFixture
) -> None:
    text = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: extender}, {name: numa-aware}]}]'
    worker = SchedulerWorker(stage.client, load_config(text))
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR"]
    assert "plugin extender is not part of this version" in caplog.text
    note = worker.notes["configuration"]()
    assert note == "not part of this version, does nothing: plugin extender, plugin numa-aware"
    value = worker.metrics.registry.get_sample_value(
        "pumice_scheduler_config_missing", {"what": "plugin numa-aware"}
    )
    assert value == 1


async def test_a_pod_waits_for_its_claim_and_goes_where_the_volume_is(
    stage: SchedulerStage,
) -> None:
    for name in ("node1", "node2"):
        stage.cluster.add_node(name, cpu="2")
    stage.store.create(pod_group("train", 1))
    pod = stage.pod("train-0", group="train")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    stage.store.create(pod)
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    async with stage.scheduler():
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        message = stage.conditions("train")["Unschedulable"]["message"]
        assert 'persistentvolumeclaim "data" not found' in message
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node2"]}]}]
        stage.store.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "disk"},
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
            }
        )
        claim["spec"]["volumeName"] = "disk"
        stage.store.create(claim)
        await stage.until(lambda: stage.nodes_of("train") == ["node2"])


async def test_at_its_usual_pace_a_gang_that_is_placed_at_once_costs_a_bind_a_pod_and_two_statuses(
    stage: SchedulerStage,
) -> None:
    """No condition on a pod, no reason that passes by itself: entered, then scheduled and running."""
    stage.cluster.add_node("node1", cpu="8")
    async with stage.scheduler(delays=DELAYS) as worker:
        stage.gang("train", 6)
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm()
        sample = worker.metrics.registry.get_sample_value
        writes = "pumice_scheduler_status_writes_total"
        assert sample(writes, {"kind": "pod", "result": "written"}) in (None, 0)
        assert sample("pumice_scheduler_binds_total", {"result": "bound"}) == 6
        statuses = sample(writes, {"kind": "podgroup", "result": "written"})
        assert statuses is not None
        assert statuses <= 4
