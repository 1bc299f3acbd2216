"""A Job that names a claim waits for it, on a real API server."""

import asyncio

from pumice.api.crds import all_crds
from pumice.api.kinds import EVENT, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.controller.volumes import PERSISTENT_VOLUME_CLAIM
from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.builders import job, queue, task
from tests.integration.controller.stage import Stage

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "pvc1", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


async def test_a_job_goes_on_once_its_claim_is_there() -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "pvc1"}]
    timings = NodeTimings(start=0.0, stop=0.0)
    async with (
        EmbeddedCluster(all_crds(), timings=timings) as cluster,
        Client.connect(server=cluster.url) as client,
    ):
        cluster.add_node("node1", cpu="64")
        cluster.store.create(queue("default", state=""))
        stage = Stage(cluster, client)
        async with stage.controller():
            playing = asyncio.create_task(stage.schedule())
            await stage.submit(job("train", [task("worker", 2)], volumes=volumes))
            await stage.until(
                lambda: stage.phase() == "Pending" and stage.reason()[0] == "PVCError"
            )
            await stage.until(lambda: ("Warning", "PVCError") in stage.events())
            assert stage.names(POD_GROUP) == []
            await client.create(PERSISTENT_VOLUME_CLAIM, CLAIM)
            await stage.until(lambda: stage.phase() == "Running")
            assert stage.reason() == ("", "")
            assert len(stage.names(POD)) == 2
            (event,) = [each for each in stage.all(EVENT) if each["reason"] == "PVCError"]
            assert "claim pvc1" in event["message"]
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
