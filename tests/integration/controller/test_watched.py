"""What a watcher of a Job sees of an action: the first status that shows it counts what it removes."""

from typing import Any

import pytest

from pumice.api.kinds import COMMAND, JOB, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from pumice.embedded.storage import StoredWrite
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task
from tests.kit.tables import table

Raw = dict[str, Any]

NUMBERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
ABOUT = {"id", "pods", "tasks", "fails", "ends", "succeeds", "command", "commands", "sees"}


class Watcher:
    """The statuses of a Job, as they are stored."""

    def __init__(self, stage: ControllerStage) -> None:
        self.seen: list[list[Any]] = []
        stage.store.storage.listen(self._note)

    def _note(self, change: StoredWrite) -> None:
        obj = change.new.obj
        if obj["kind"] != JOB.kind:
            return
        status = obj.get("status") or {}
        counts = {name: status[name] for name in NUMBERS if status.get(name)}
        entry = [(status.get("state") or {}).get("phase"), counts]
        if self.seen[-1:] != [entry]:
            self.seen.append(entry)


def _job(case: Raw) -> Raw:
    tasks = [
        task(name, **({"replicas": given} if isinstance(given, int) else given))
        for name, given in case.get("tasks", {"worker": 3}).items()
    ]
    return job("train", tasks, **{key: case[key] for key in case.keys() - ABOUT})


@pytest.mark.parametrize("case", table("controller/watched"), ids=lambda case: case["id"])
async def test_what_a_watcher_sees(case: Raw, cluster: EmbeddedCluster, client: Client) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller():
        await stage.submit(_job(case))
        await stage.until(lambda: bool(stage.all(POD_GROUP)))
        await stage.calm()
        stage.admit(stage.all(POD_GROUP)[0])
        total = sum(each["replicas"] for each in stage.job()["spec"]["tasks"])
        await stage.until(lambda: len(stage.all(POD)) == total)
        if case.get("pods") != "unscheduled":
            await _run(stage)
            await stage.until(lambda: stage.job()["status"].get("running") == total)
        for name in case.get("succeeds", ()):
            stage.finish(name)
        done = len(case.get("succeeds", ()))
        await stage.until(lambda: stage.job()["status"].get("succeeded", 0) == done)
        await stage.calm()

        watcher = Watcher(stage)
        watcher.seen.append([stage.phase(), _counts(stage)])
        for name in case.get("fails", ()):
            stage.finish(name, exit_code=1)
        for name in case.get("ends", ()):
            stage.finish(name)
        held = 0
        for action in case.get("commands", [case["command"]] if "command" in case else []):
            await stage.command(action)
            await stage.until(lambda: not stage.all(COMMAND), "the Command to be carried out")
            await stage.calm()
            held += await _end(stage)
            await stage.calm()
        if case.get("pods") != "unscheduled" and not held:
            await stage.until(lambda: bool(_leaving(stage)), "pods to be removed")
        await stage.calm()
        held += await _end(stage)
        assert bool(held) is (case.get("pods") != "unscheduled")
        await stage.until(lambda: len(watcher.seen) > len(case["sees"]), str(watcher.seen))
        await stage.calm()
    assert watcher.seen[1:] == case["sees"]


def _counts(stage: ControllerStage) -> dict[str, int]:
    status = stage.job()["status"]
    return {name: status[name] for name in NUMBERS if status.get(name)}


async def _run(stage: ControllerStage) -> None:
    """Pods run on a node, and are held when they are removed."""
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    for name in stage.names(POD):
        await stage.client.bind("default", name, "node1")
        await stage.client.patch(POD, name, "default", held)


async def _end(stage: ControllerStage) -> int:
    """Pods that are being removed go. Returns how many."""
    released: Raw = {"metadata": {"finalizers": None}}
    leaving = _leaving(stage)
    for pod in leaving:
        await stage.client.patch(POD, pod["metadata"]["name"], "default", released)
    return len(leaving)


def _leaving(stage: ControllerStage) -> list[Raw]:
    return [pod for pod in stage.all(POD) if pod["metadata"].get("deletionTimestamp")]
