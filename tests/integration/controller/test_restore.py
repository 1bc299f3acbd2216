"""The API server goes back to an earlier state below running components, as after a restore of etcd from a backup."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD, POD_GROUP, QUEUE
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from pumice.webhook.server.lookup import CachedView
from tests.integration.controller.stage import ControllerStage
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.backups import Backup, restore
from tests.kit.builders import job, queue, task
from tests.kit.waiting import until


@pytest.mark.parametrize("elected", [False, True])
async def test_new_jobs_run_and_lost_ones_are_forgotten(
    cluster: EmbeddedCluster, client: Client, elected: bool
) -> None:
    stage, scheduling = ControllerStage(cluster, client), SchedulerStage(cluster, client)
    view = CachedView(client)
    following = [asyncio.create_task(each.run()) for each in view.caches]
    async with (
        stage.controller(leader_elect=elected, identity="a") as controller,
        scheduling.scheduler(leader_elect=elected, identity="a") as scheduler,
    ):
        await stage.submit(job("early", [task("w", replicas=2)]))
        await stage.until(lambda: stage.phase("early") == "Running")
        await stage.calm()
        backup = Backup.of(stage.store.storage)
        stage.store.create(queue("lost"))
        for number in range(3):
            await stage.submit(job(f"late-{number}", [task("w", replicas=2)]))
        await stage.until(lambda: stage.phase("late-2") == "Running")
        await until(lambda: view.get(QUEUE, "lost") is not None)
        stage.finish("early-w-0")
        await stage.until(lambda: stage.status("succeeded", "early") == 1)

        restore(stage.store.storage, backup)
        await stage.submit(job("new", [task("w", replicas=2)]))
        await stage.until(lambda: stage.phase("new") == "Running", "a new Job to run")
        await until(lambda: view.get(QUEUE, "lost") is None)
        caches: list[WatchCache[Any]] = [*controller.watches.required, *scheduler.caches.all]
        assert {each.kind for each in caches if each.reflector.restores} >= {JOB, POD, POD_GROUP}
        for kind in (JOB, POD, POD_GROUP):
            for cache in (each for each in caches if each.kind == kind):
                assert {name for _, name in cache.identities()} <= {*stage.names(kind)}

        # Nothing that was concluded from the lost versions stands in the way of the Job that was restored.
        stage.finish("early-w-0")
        stage.finish("early-w-1")
        await stage.until(lambda: stage.phase("early") == "Completed", "the restored Job to end")
        assert controller.ready
        assert scheduler.ready
    for each in following:
        each.cancel()
    await asyncio.gather(*following, return_exceptions=True)
