"""A Job that names a claim waits for it, on a real API server."""

from pumice.api.kinds import EVENT, PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "pvc1", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


async def test_a_job_goes_on_once_its_claim_is_there(played: ControllerStage) -> None:
    stage = played
    volumes = [{"mountPath": "/data", "volumeClaimName": "pvc1"}]
    await stage.submit(job("train", [task("worker", 2)], volumes=volumes))
    await stage.until(lambda: stage.phase() == "Pending" and stage.reason()[0] == "PVCError")
    await stage.until(lambda: ("Warning", "PVCError") in stage.events())
    assert stage.names(POD_GROUP) == []
    await stage.client.create(PERSISTENT_VOLUME_CLAIM, CLAIM)
    await stage.until(lambda: stage.phase() == "Running")
    assert stage.reason() == ("", "")
    assert len(stage.names(POD)) == 2
    (event,) = [each for each in stage.all(EVENT) if each["reason"] == "PVCError"]
    assert "claim pvc1" in event["message"]
