"""The scheduler's process against an API server: what it writes, and what it leaves alone."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import LEASE, NODE, POD, POD_GROUP, QUEUE, Kind
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import Conflict, Forbidden, Unavailable
from pumice.cluster.lifecycle import run_until_stopped
from pumice.embedded import EmbeddedCluster
from pumice.scheduler import CycleResult, load_config, run_cycle
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings, loop
from pumice.scheduler.worker.settings import PACE
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


async def test_the_queues_that_every_cluster_has_are_made(stage: SchedulerStage) -> None:
    async with stage.scheduler(default_queue="main"):
        await stage.until(lambda: len(stage.store.list(QUEUE)) == 2)
    made = {each["metadata"]["name"]: each["spec"] for each in stage.store.list(QUEUE)}
    assert made["root"]["reclaimable"] is False
    assert made["main"]["reclaimable"] is True


class Refusing(Client):
    """A client whose first creations are refused, as by a webhook that is not up yet."""

    refusals = 2

    async def create(self, *arguments: Any, **named: Any) -> Object:
        if self.refusals:
            self.refusals -= 1
            raise Forbidden(403, "Forbidden", "the webhook does not answer")
        return await super().create(*arguments, **named)


async def test_queues_that_exist_are_left_alone(stage: SchedulerStage) -> None:
    stage.store.create(queue("root", state=""))
    stage.store.create(queue("default", state="", weight=7))
    before = stage.store.list(QUEUE)
    client = Refusing(stage.client.connection)
    async with stage.scheduler(client):
        await stage.calm()
    await client.close()
    assert client.refusals == Refusing.refusals
    assert stage.store.list(QUEUE) == before


async def test_queues_are_tried_again_until_they_are_there(stage: SchedulerStage) -> None:
    client = Refusing(stage.client.connection)
    stage.cluster.add_node("node1", cpu="1")
    stage.store.create(queue("mine", state=""))
    stage.gang("train", 1, queue="mine")
    async with stage.scheduler(client):
        await stage.until(lambda: stage.nodes_of("train") == ["node1"])
        assert client.refusals < Refusing.refusals
        await stage.until(lambda: len(stage.store.list(QUEUE)) == 3)
    await client.close()


class Unsteady(Client):
    """A client whose first patches of each kind fail."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.failed: dict[str, int] = {}

    async def patch(self, kind: Kind, *arguments: Any, **named: Any) -> Object:
        failed = self.failed[kind.kind] = self.failed.get(kind.kind, 0) + 1
        if failed == 1:
            raise Unavailable(0, "Timeout", "no answer")
        if failed == 2:
            raise Conflict(409, "Conflict", "the object has been modified")
        return await super().patch(kind, *arguments, **named)


async def test_what_could_not_be_written_is_written_later(stage: SchedulerStage) -> None:
    stage.gang("train", 1)
    client = Unsteady(stage.client.connection)
    async with stage.scheduler(client) as worker:
        await stage.until(lambda: stage.pod_condition("train-0"))
        assert client.failed["Pod"] == 3
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        sample = worker.metrics.registry.get_sample_value
        name = "pumice_scheduler_status_writes_total"
        assert sample(name, {"kind": "pod", "result": "failed"}) == 1
        # The server has what was written before the client knows of it.
        await stage.until(lambda: sample(name, {"kind": "pod", "result": "written"}) == 1)
        await stage.calm()
    await client.close()


class Failing(Client):
    """A client whose first bindings fail, before or after they reached the server."""

    failures = 2
    reaches = False

    async def bind(self, namespace: str, pod: str, node: str, uid: str | None = None) -> None:
        if self.failures:
            self.failures -= 1
            if self.reaches:
                await super().bind(namespace, pod, node, uid)
            raise Unavailable(0, "Timeout", "no answer")
        await super().bind(namespace, pod, node, uid)


async def test_a_binding_that_fails_is_undone_and_tried_again(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("train", 2)
    client = Failing(stage.client.connection)
    async with stage.scheduler(client) as worker:
        await stage.until(lambda: stage.phase("train") == "Running")
        assert stage.nodes_of("train") == ["node1", "node1"]
        failed = worker.metrics.registry.get_sample_value(
            "pumice_scheduler_binds_total", {"result": "failed"}
        )
        assert failed == 2
    await client.close()


async def test_a_lost_answer_is_looked_up(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("train", 2)
    client = Failing(stage.client.connection)
    client.reaches = True
    async with stage.scheduler(client) as worker:
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm()
        sample = worker.metrics.registry.get_sample_value
        assert sample("pumice_scheduler_binds_total", {"result": "bound"}) == 2
        assert sample("pumice_scheduler_binds_total", {"result": "failed"}) is None
    await client.close()


class Overtaken(Client):
    """A client that another scheduler is always faster than."""

    async def bind(self, namespace: str, pod: str, node: str, uid: str | None = None) -> None:
        await super().bind(namespace, pod, "node2", uid)
        await super().bind(namespace, pod, node, uid)


async def test_a_pod_that_somebody_else_bound_is_theirs(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.cluster.add_node("node2", cpu="4", taints=[{"key": "x", "effect": "NoSchedule"}])
    stage.gang("train", 1)
    client = Overtaken(stage.client.connection)
    async with stage.scheduler(client):
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm()
        assert stage.nodes_of("train") == ["node2"]
    await client.close()


async def test_a_pod_that_is_gone_is_no_failure(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)

    class Deleting(Client):
        async def bind(self, namespace: str, pod: str, node: str, uid: str | None = None) -> None:
            stage.store.delete(POD, pod, namespace)
            await super().bind(namespace, pod, node, uid)

    client = Deleting(stage.client.connection)
    async with stage.scheduler(client) as worker:
        sample = worker.metrics.registry.get_sample_value
        await stage.until(lambda: sample("pumice_scheduler_binds_total", {"result": "gone"}) == 1)
        await stage.calm()
    await client.close()


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


async def test_a_node_that_goes_takes_nobody_any_more(stage: SchedulerStage) -> None:
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
        assert (sample("pumice_scheduler_evictions_total", {"result": "evicted"}) or 0) >= 1


async def test_it_ends_when_it_is_told_to(stage: SchedulerStage) -> None:
    stop = asyncio.Event()
    worker = SchedulerWorker(stage.client, load_config(None), WorkerSettings(period=0.05))
    running = asyncio.create_task(run_until_stopped(worker.tasks(), stop=stop, signals=()))
    await stage.until(lambda: len(stage.store.list(QUEUE)) == 2)
    stop.set()
    await asyncio.wait_for(running, 60)


async def test_a_queue_hears_that_nothing_enforces_its_share(stage: SchedulerStage) -> None:
    made = queue("team")
    made["spec"]["capability"] = {"cpu": "4"}
    stage.store.create(made)
    async with stage.scheduler():
        await stage.until(lambda: stage.events("NotEnforced"))
        (event,) = stage.events("NotEnforced")
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (
            "Queue",
            "team",
        )
        assert "spec.capability" in event["message"]


async def test_what_the_configuration_names_and_this_version_lacks_is_said_where_people_look(
    stage: SchedulerStage, caplog: pytest.LogCaptureFixture
) -> None:
    text = (
        'actions: "enqueue, allocate, gangpreempt"\ntiers: [{plugins: [{name: gang}, {name: cdp}]}]'
    )
    worker = SchedulerWorker(stage.client, load_config(text))
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR"]
    assert "action gangpreempt is not part of this version" in caplog.text
    note = worker.notes["configuration"]()
    assert note == "not part of this version, does nothing: action gangpreempt, plugin cdp"
    value = worker.metrics.registry.get_sample_value(
        "pumice_scheduler_config_missing", {"what": "plugin cdp"}
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
    async with stage.scheduler(pace=PACE) as worker:
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
