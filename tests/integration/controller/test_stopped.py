"""A controller that is killed at a write, before it is sent or before its answer arrives.

The same scenario is told once undisturbed and then, in namespaces of its own, once for each write. A second
controller takes over, and everything must end as it did undisturbed. More scenarios are told without a server in
`tests/unit/controller/test_stopped.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pumice.api.kinds import POD, POD_GROUP, SERVICE
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.mortal import MortalClient, mortal_stage, play
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]


ALIVE = frozenset({"job-controller", "gc-controller"})

JobScenario = Callable[[ControllerStage], Awaitable[None]]


async def _is_aborted(stage: ControllerStage) -> None:
    plugins: dict[str, list[str]] = {"svc": [], "ssh": ["--ssh-key-type=ed25519"]}
    await stage.submit(job("train", [task("worker", 2, cpu="1")], plugins=plugins))
    await stage.until(lambda: stage.phase() == "Running", "Running")
    await stage.command("AbortJob")
    await stage.until(lambda: stage.phase() == "Aborted", "Aborted")


async def _loses_a_pod(stage: ControllerStage) -> None:
    """Its task is restarted, once, and the Job runs as before until all pods end."""
    policies = [{"event": "PodEvicted", "action": "RestartTask"}]
    await stage.submit(job("train", [task("worker", 2)], plugins={"svc": []}, policies=policies))
    await stage.until(lambda: stage.phase() == "Running", "Running")
    await stage.until(lambda: stage.status("running") == 2, "two pods to be counted")
    first = {pod["metadata"]["uid"] for pod in stage.all(POD)}
    stage.store.delete(POD, "train-worker-1", stage.namespace)
    await stage.until(
        lambda: (
            stage.status("running") == 2
            and not first & {pod["metadata"]["uid"] for pod in stage.all(POD)}
        ),
        "two other pods",
    )
    noted = stage.job()["status"]["controlledResources"]["pumice.dev/retries"]
    assert noted.startswith("task/worker=1/"), noted
    await _finish(stage)


async def _finish(stage: ControllerStage) -> None:
    for name in stage.names(POD):
        stage.finish(name)
    await stage.until(lambda: stage.phase() == "Completed", "Completed")


async def _tell(
    cluster: EmbeddedCluster, namespace: str, scenario: JobScenario, last: int | None, after: bool
) -> tuple[dict[str, Raw], MortalClient]:
    """How a scenario ends, and the client of the controller that told it."""
    playing = mortal_stage(cluster, namespace, last, after=after, of=MortalClient)
    async with playing as (stage, mortal):
        await play(stage, mortal, _to_the_end(stage, scenario), ALIVE)
        return stage.end(), mortal


async def _to_the_end(stage: ControllerStage, scenario: JobScenario) -> None:
    await scenario(stage)
    await stage.until(lambda: not stage.all(POD_GROUP) and not stage.all(SERVICE), "the clean-up")
    await stage.until(lambda: "plugin-svc" not in str(stage.job()["status"]), "the last status")


# What is stored when a controller dies before a write is what is stored when it dies after the write before that one.
@pytest.mark.parametrize(
    ("scenario", "after"),
    [(_is_aborted, True), (_loses_a_pod, False)],
    ids=["is aborted", "loses a pod"],
)
async def test_the_end_is_the_same(
    cluster: EmbeddedCluster, scenario: JobScenario, after: bool
) -> None:
    expected, calm = await _tell(cluster, "undisturbed", scenario, None, after)
    assert calm.certain >= 10
    told = await asyncio.gather(
        *(
            _tell(cluster, f"killed-{number}", scenario, number, after)
            for number in range(calm.writes)
        )
    )
    assert all(mortal.dead.is_set() for _, mortal in told[: calm.certain])
    for number, (end, _) in enumerate(told):
        _forgive_command_note(end)
        assert end == _forgive_command_note(expected), f"killed at write {number}"


def _forgive_command_note(end: dict[str, Raw]) -> dict[str, Raw]:
    """Which Command was carried out last is noted by its uid, which differs."""
    noted = end["Job train"]["status"].get("controlledResources", {})
    if "pumice.dev/command" in noted:
        noted["pumice.dev/command"] = "uid"
    return end
