"""A reservation outlives the scheduler that made it."""

from pumice.api.kinds import POD, POD_GROUP
from pumice.scheduler import load_config
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import node

CONFIG = load_config(
    "actions: enqueue, elect, allocate, reserve\n"
    "tiers: [{plugins: [{name: gang}, {name: reservation}, {name: predicates}]}]\n"
)


async def test_a_new_scheduler_keeps_target_and_nodes(stage: SchedulerStage) -> None:
    for name in ("n1", "n2"):
        stage.store.create(node(name, cpu="4"))
    stage.gang("busy", 1, cpu="3")
    async with stage.scheduler(config=CONFIG):
        await stage.until(lambda: stage.nodes_of("busy") == ["n1"])
        stage.gang("large", 2, cpu="3")
        await stage.until(lambda: "n1" in said(stage) and "n2" in said(stage))
    before = stage.find(POD_GROUP, "large")["status"]["conditions"]
    stage.gang("small", 1, cpu="1")
    async with stage.scheduler(config=CONFIG):
        await stage.until(lambda: "reserved for gang" in reason_of(stage, "small"))
        reserved = [each for each in before if each["type"] == "Reserved"]
        assert stage.conditions("large")["Reserved"] == reserved[0]
        stage.store.delete(POD, "busy-0", stage.namespace)
        await stage.until(lambda: sorted(stage.nodes_of("large")) == ["n1", "n2"])
        await stage.until(lambda: stage.conditions("large")["Reserved"]["status"] == "False")
        await stage.until(lambda: stage.nodes_of("small") != [""])


def said(stage: SchedulerStage) -> str:
    return str(stage.conditions("large").get("Reserved", {}).get("message", ""))


def reason_of(stage: SchedulerStage, name: str) -> str:
    return str(stage.conditions(name).get("Unschedulable", {}).get("message", ""))
