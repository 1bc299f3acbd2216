"""Shares and quotas as the scheduler's process sees them: refused with a reason, and let in when there is room."""

from pumice.api.kinds import QUEUE, RESOURCE_QUOTA
from pumice.cluster.client import Object
from pumice.scheduler import load_config
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import pod_group, queue

TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: resourcequota}]
"""


async def test_a_gang_is_placed_when_the_limit_of_its_queue_is_raised(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="4")
    team = queue("team")
    team["spec"]["capability"] = {"cpu": "2"}
    stage.store.create(team)
    stage.gang("train", 3, queue="team")
    async with stage.scheduler(config=load_config(TEXT)):
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        message = stage.conditions("train")["Unschedulable"]["message"]
        assert "queue team: 0 of 2 cpu used, 2 more allowed, needs 3" in message
        assert not stage.events("NotEnforced")
        raised = stage.store.get(QUEUE, "team")
        assert raised is not None
        raised["spec"]["capability"] = {"cpu": "3"}
        stage.store.update(raised)
        await stage.until(lambda: stage.nodes_of("train") == ["node1"] * 3)


async def test_a_gang_enters_when_the_quota_of_its_namespace_has_room(
    stage: SchedulerStage,
) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": {"cpu": "2"}},
    }
    stage.cluster.add_node("node1", cpu="4")
    stage.store.create(quota)
    stage.store.create(pod_group("train", 3, minResources={"cpu": "3"}))
    async with stage.scheduler(config=load_config(TEXT)):
        await stage.until(lambda: "Unschedulable" in stage.conditions("train"))
        message = stage.conditions("train")["Unschedulable"]["message"]
        assert message.startswith("resource quota insufficient: cpu; quota small: 0 of 2 cpu used")
        stage.store.delete(RESOURCE_QUOTA, "small", "default")
        await stage.until(lambda: stage.phase("train") == "Inqueue")
