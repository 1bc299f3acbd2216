"""What the scheduler does when the API server refuses a write, does not answer, or knows better."""

from collections.abc import Mapping
from typing import Any

from pumice.api.kinds import POD, QUEUE, Kind
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import Conflict, Forbidden, Unavailable
from tests.integration.scheduler.hooked import Hooked
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import queue


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

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if self.failures:
            self.failures -= 1
            if self.reaches:
                await super().bind(namespace, pod, node, uid, annotations)
            raise Unavailable(0, "Timeout", "no answer")
        await super().bind(namespace, pod, node, uid, annotations)


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


async def test_a_pod_that_another_scheduler_bound_is_theirs(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.cluster.add_node("node2", cpu="4", taints=[{"key": "x", "effect": "NoSchedule"}])
    stage.gang("train", 1)
    client = Hooked(stage)
    client.before_bind = lambda pod, _: stage.client.bind("default", pod, "node2")
    async with stage.scheduler(client):
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm()
        assert stage.nodes_of("train") == ["node2"]
    await client.close()


async def test_a_pod_that_is_gone_is_no_failure(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)

    class Deleting(Client):
        async def bind(
            self,
            namespace: str,
            pod: str,
            node: str,
            uid: str | None = None,
            annotations: Mapping[str, str] | None = None,
        ) -> None:
            stage.store.delete(POD, pod, namespace)
            await super().bind(namespace, pod, node, uid, annotations)

    client = Deleting(stage.client.connection)
    async with stage.scheduler(client) as worker:
        sample = worker.metrics.registry.get_sample_value
        await stage.until(lambda: sample("pumice_scheduler_binds_total", {"result": "gone"}) == 1)
        await stage.calm()
    await client.close()
