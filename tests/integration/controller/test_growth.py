"""What a controller keeps of Jobs that are gone: nothing, however long it runs."""

from collections import Counter

from pumice.api.kinds import COMMAND, JOB, POD
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task
from tests.kit.growth import sizes_of

PLUGINS: dict[str, list[str]] = {"svc": [], "env": [], "ssh": []}
RESTARTS = [{"event": "PodFailed", "action": "RestartPod"}, {"event": "PodEvicted", "action": "RestartJob"}]  # fmt: skip

JOBS = 12
BOUNDED = (
    ".recorder._series",
    ".recorder._objects",
    ".recorder._objects._full_at",
    ".queue._waiting",
)
"""Events of the last minutes, as many as the recorder remembers, the objects that they were about, and moments at which an object is looked at again."""


async def come_and_go(stage: ControllerStage, name: str) -> None:
    """A Job runs, has a failure and an eviction, is aborted and resumed, completes, and is deleted."""
    manifest = job(name, [task("worker", 2, cpu="1")], plugins=PLUGINS, policies=RESTARTS)
    await stage.submit(manifest)
    await stage.until(lambda: stage.phase(name) == "Running")
    stage.finish(f"{name}-worker-0", exit_code=3)
    await stage.until(
        lambda: stage.status("running", name) == 2 and stage.status("retryCount", name) >= 0
    )
    uid = stage.find(POD, f"{name}-worker-1")["metadata"]["uid"]
    await stage.client.delete(POD, f"{name}-worker-1", stage.namespace)
    await stage.until(
        lambda: stage.find(POD, f"{name}-worker-1").get("metadata", {}).get("uid", uid) != uid
    )
    await stage.until(lambda: stage.phase(name) == "Running")
    await stage.command("AbortJob", name)
    await stage.until(lambda: stage.phase(name) == "Aborted")
    await stage.until(lambda: not stage.all(COMMAND))
    await stage.command("ResumeJob", name)
    await stage.until(lambda: stage.phase(name) == "Running")
    for each in stage.names(POD):
        stage.finish(each)
    await stage.until(lambda: stage.phase(name) == "Completed")
    await stage.client.delete(JOB, name, stage.namespace)
    await stage.until(lambda: not stage.all(JOB) and not stage.all(POD))
    await stage.calm()


async def test_a_controller_does_not_grow_with_jobs_that_come_and_go(
    scheduled: ControllerStage,
) -> None:
    sizes: list[Counter[str]] = []
    async with scheduled.controller() as worker:
        for number in range(JOBS):
            await come_and_go(scheduled, f"train-{number}")
            if number in (JOBS // 3, JOBS - 1):
                sizes.append(sizes_of(worker))
    grown = sizes[1] - sizes[0]
    for name in [each for each in grown if each.endswith(BOUNDED)]:
        del grown[name]
    assert [name for name, count in grown.items() if count >= JOBS // 2] == [], "what grew"
