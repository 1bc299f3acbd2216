"""What a scheduler keeps of gangs, queues and nodes that are gone: nothing, however long it runs."""

import asyncio
from collections import Counter

from pumice.api.kinds import NODE, POD, POD_GROUP, QUEUE
from pumice.scheduler.worker.queue_writes import LATEST_SECONDS
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import queue
from tests.kit.growth import sizes_of

GANGS = 12
BOUNDED = (".recorder._series", ".recorder._objects", ".recorder._objects._full_at")
"""Events of the last minutes, as many as the recorder remembers, and the objects that they were about in the last seconds."""


async def come_and_go(stage: SchedulerStage, number: int) -> None:
    """A gang runs on a node of its own and in a queue of its own while another one waits; then all of them go."""
    name, runs, waits = f"n{number}", f"runs-{number}", f"waits-{number}"
    stage.cluster.add_node(name, cpu="4")
    stage.store.create(queue(name))
    stage.gang(runs, 3, queue=name)
    stage.gang(waits, 2, cpu="9", queue=name)
    await stage.until(lambda: stage.find_running(runs) == 3)
    await stage.until(lambda: "Unschedulable" in stage.conditions(waits))
    await stage.until(lambda: stage.pod_condition(f"{waits}-0"))
    for kind in (POD, POD_GROUP):
        for each in stage.names(kind):
            stage.store.delete(kind, each, stage.namespace)
    stage.store.delete(QUEUE, name, "")
    stage.store.delete(NODE, name, "")
    await stage.until(lambda: not stage.all(POD))
    await stage.calm()


async def test_a_scheduler_does_not_grow_with_what_comes_and_goes(stage: SchedulerStage) -> None:
    sizes: list[Counter[str]] = []
    async with stage.scheduler() as worker:
        for number in range(GANGS):
            await come_and_go(stage, number)
            if number in (GANGS // 3, GANGS - 1):
                await asyncio.sleep(LATEST_SECONDS)  # for the last statuses of queues
                sizes.append(sizes_of(worker))
    grown = sizes[1] - sizes[0]
    for name in [each for each in grown if each.endswith(BOUNDED)]:
        del grown[name]
    assert [name for name, count in grown.items() if count >= GANGS // 2] == [], "what grew"
