"""A cluster that changes from Volcano's controller to Pumice's: Jobs that run go on, and their pods and keys stay."""

from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, JOB, POD, POD_GROUP, SECRET, SERVICE
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]


def _as_volcano_leaves_it(stage: ControllerStage) -> None:
    """Remove every mark that only Pumice makes, and the labels that it gives to the objects of plugins."""
    for kind in (POD, POD_GROUP, SERVICE, CONFIG_MAP, SECRET):
        for obj in stage.all(kind):
            meta = obj["metadata"]
            for field in ("labels", "annotations"):
                found = meta.get(field) or {}
                keep = kind == POD
                meta[field] = {
                    key: value
                    for key, value in found.items()
                    if not key.startswith("pumice.dev/") and (keep or field != "labels")
                }
            stage.store.update(obj)
    found = stage.job()
    resources = found["status"]["controlledResources"]
    found["status"]["controlledResources"] = {
        key: value for key, value in resources.items() if not key.startswith("pumice.dev/")
    }
    stage.store.update_status(found)


def _uids(stage: ControllerStage) -> dict[str, str]:
    kinds = (POD, POD_GROUP, SERVICE, CONFIG_MAP, SECRET)
    return {
        f"{kind.kind}/{obj['metadata']['name']}": obj["metadata"]["uid"]
        for kind in kinds
        for obj in stage.all(kind)
    }


@pytest.mark.parametrize("phase", ["Running", "Pending"])
async def test_a_job_goes_on(scheduled: ControllerStage, phase: str) -> None:
    plugins: Raw = {"svc": [], "env": [], "ssh": []}
    tasks = [task("master", 1), task("worker", 2)]
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    async with scheduled.controller():
        await scheduled.submit(job("train", tasks, plugins=plugins, policies=policies))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm()
    _as_volcano_leaves_it(scheduled)
    if phase == "Pending":  # Volcano's controller ended before it noted that the pods run
        found = scheduled.job()
        found["status"]["state"]["phase"] = phase
        scheduled.store.update_status(found)
    before = _uids(scheduled)
    keys = scheduled.all(SECRET)[0]["data"]
    async with scheduled.controller():
        await scheduled.until(lambda: "pumice.dev/pods" in str(scheduled.job()["status"]))
        await scheduled.calm()
        assert scheduled.phase() == "Running"
        assert _uids(scheduled) == before
        assert scheduled.all(SECRET)[0]["data"] == keys
        for pod in scheduled.all(POD):
            scheduled.finish(pod["metadata"]["name"])
        await scheduled.until(lambda: scheduled.phase() == "Completed")
        assert {name for name in _uids(scheduled) if name.startswith("Pod/")} == {
            name for name in before if name.startswith("Pod/")
        }


async def test_nothing_of_pumice_keeps_a_job_from_being_deleted(scheduled: ControllerStage) -> None:
    """Back to Volcano: what Pumice leaves has no finalizer, and goes with its owner."""
    async with scheduled.controller():
        await scheduled.submit(job("train", [task("worker", 2)], plugins={"svc": [], "ssh": []}))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm()
    objects = [
        obj
        for kind in (JOB, POD, POD_GROUP, SERVICE, CONFIG_MAP, SECRET)
        for obj in scheduled.all(kind)
    ]
    assert objects
    assert not any(obj["metadata"].get("finalizers") for obj in objects)
    await scheduled.client.delete(JOB, "train", "default", propagation="Background")
    await scheduled.until(lambda: not _uids(scheduled))
