import asyncio
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task


async def test_what_is_evicted_while_no_controller_lives_is_found_by_the_next(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    policies = [{"event": "PodEvicted", "action": "RestartPod"}]
    async with stage.controller():
        await stage.submit(job("train", [task("worker", 3)], policies=policies))
        await stage.until(lambda: stage.job().get("status", {}).get("running") == 3)
        await stage.calm()
    await client.delete(POD, "train-worker-1", "default", grace=0)
    async with stage.controller():
        await stage.until(lambda: len(stage.all(POD)) == 3)
        await stage.until(lambda: stage.job().get("status", {}).get("running") == 3)
        await stage.calm()
    playing.cancel()
    noted = stage.job()["status"]["controlledResources"]
    assert noted["pumice.dev/retries"] == "pod/worker/1=1/0"
    assert noted["pumice.dev/pods"] == "worker/0-2"


async def test_a_pod_that_succeeds_and_is_removed_at_once_was_not_evicted(
    played: ControllerStage,
) -> None:
    policies = [{"event": "PodEvicted", "action": "AbortJob"}]
    await played.submit(job("train", [task("worker", 2)], policies=policies))
    await played.until(lambda: played.status("running") == 2)
    await played.calm()
    for name in ("train-worker-0", "train-worker-1"):
        played.finish(name)
        played.store.delete(POD, name, played.namespace, grace=0)
    await played.until(lambda: played.phase() != "Running")
    await played.calm()
    assert played.phase() == "Completed"
    assert played.status("succeeded") == 2


async def test_a_pod_that_fails_and_is_removed_at_once_has_failed(
    played: ControllerStage,
) -> None:
    """So it is with the pods of a node that is deleted."""
    policies = [{"event": "PodFailed", "action": "AbortJob"}]
    await played.submit(job("train", [task("worker", 2)], policies=policies))
    await played.until(lambda: played.status("running") == 2)
    await played.calm()
    played.finish("train-worker-0", exit_code=1)
    played.store.delete(POD, "train-worker-0", played.namespace, grace=0)
    await played.until(lambda: played.phase() == "Aborted")


async def test_a_pod_that_fails_and_is_removed_while_a_task_restarts_has_failed(
    played: ControllerStage,
) -> None:
    """No policy is asked during the restart, which waits for a pod that takes its time to go."""
    policies = [
        {"exitCode": 3, "action": "AbortJob"},
        {"event": "PodFailed", "action": "RestartTask"},
    ]
    await played.submit(job("train", [task("ps"), task("worker", 2)], policies=policies))
    await played.until(lambda: played.status("running") == 3)
    await played.calm()
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await played.client.patch(POD, "train-worker-1", played.namespace, held)
    played.finish("train-worker-0", exit_code=1)
    await played.until(lambda: played.names(POD) == ["train-ps-0", "train-worker-1"])
    await played.calm()
    played.finish("train-ps-0", exit_code=3)
    played.store.delete(POD, "train-ps-0", played.namespace, grace=0)
    await played.until(lambda: played.status("running") == 0)
    await played.calm()
    assert played.phase() == "Restarting"
    released: dict[str, Any] = {"metadata": {"finalizers": None}}
    await played.client.patch(POD, "train-worker-1", played.namespace, released)
    await played.until(lambda: played.phase() == "Aborted")


async def test_a_pod_that_fails_and_is_removed_when_a_restart_begins_has_failed(
    played: ControllerStage,
) -> None:
    """The policy about it waits, and the write that begins the restart does not note its time."""
    later = {"event": "PodFailed", "action": "AbortJob", "timeout": "5s"}
    again = {"event": "PodFailed", "action": "RestartPod"}
    tasks = [task("ps", policies=[again]), task("worker", 2, policies=[later])]
    await played.submit(job("train", tasks))
    await played.until(lambda: played.status("running") == 3)
    await played.calm()
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await played.client.patch(POD, "train-ps-0", played.namespace, held)
    await played.calm()
    played.finish("train-ps-0", exit_code=1)
    played.finish("train-worker-0", exit_code=1)
    played.store.delete(POD, "train-worker-0", played.namespace, grace=0)
    await played.until(lambda: played.phase() == "Restarting")
    await asyncio.sleep(5)
    released: dict[str, Any] = {"metadata": {"finalizers": None}}
    await played.client.patch(POD, "train-ps-0", played.namespace, released)
    await played.until(lambda: played.phase() == "Aborted")


async def test_a_command_without_effect_makes_no_removed_success_an_eviction(
    played: ControllerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = [{"event": "PodEvicted", "action": "AbortJob"}]
    await played.submit(job("train", [task("worker", 2)], policies=policies))
    await played.until(lambda: played.status("running") == 2)
    await played.calm()
    monkeypatch.setattr("pumice.controller.worker.jobs.TOGETHER_SECONDS", 3600.0)
    played.finish("train-worker-0")
    played.store.delete(POD, "train-worker-0", played.namespace, grace=0)
    await played.calm()
    await played.command("ResumeJob")
    await played.until(lambda: played.status("succeeded") == 1)
    await played.calm()
    assert (played.phase(), played.names(POD)) == ("Running", ["train-worker-1"])
