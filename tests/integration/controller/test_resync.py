"""Controllers that no event reaches, and controllers that have nothing to do."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.controller.worker import controller
from pumice.controller.worker.caches import JobCaches
from pumice.controller.worker.cronjobs import CronJobController
from pumice.controller.worker.jobflows import JobFlowController, JobTemplateController
from pumice.controller.worker.podgroups import PodGroupController
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_cronjobs import cron_job, submit
from tests.integration.controller.test_job_flows import (
    DIAMOND,
    create,
    job_flow,
    made_from,
    phase,
    template,
)
from tests.integration.controller.test_other_owners import make, pod


def _deaf(*_: Any) -> tuple[()]:
    """Take the place of the sources of changes."""
    return ()


async def test_objects_are_acted_on_although_every_event_is_lost(
    cluster: EmbeddedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs, JobFlows, JobTemplates, CronJobs and pods of other owners."""
    monkeypatch.setattr(controller, "RESYNC_SECONDS", 0.5)
    for each in (
        JobCaches,
        CronJobController,
        JobFlowController,
        JobTemplateController,
        PodGroupController,
    ):
        monkeypatch.setattr(each, "sources", _deaf)
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    async with stage.controller():
        await create(stage, *(template(name) for name in DIAMOND), job_flow(DIAMOND))
        await submit(stage, cron_job("@every 1s"))
        await make(client, POD, pod("plain"))
        await stage.until(lambda: phase(stage) == "Succeed", "the JobFlow to succeed")
        await stage.until(lambda: made_from(stage, "d") == ["f-d"], "the list of a template")
        await stage.until(
            lambda: any(name.startswith("podgroup-") for name in stage.names(POD_GROUP)),
            "a PodGroup for the pod",
        )
        await stage.until(
            lambda: any(name.startswith("c-") for name in stage.names(JOB)), "a run of the CronJob"
        )
    playing.cancel()


async def test_nothing_is_written_when_nothing_changed(
    cluster: EmbeddedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "RESYNC_SECONDS", 0.2)
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    async with stage.controller():
        await create(stage, *(template(name) for name in DIAMOND), job_flow(DIAMOND))
        await submit(stage, cron_job("0 0 1 1 *"))
        await make(client, POD, pod("plain"))
        await stage.until(lambda: phase(stage) == "Succeed", "the JobFlow to succeed")
        await stage.until(
            lambda: all(made_from(stage, name) for name in DIAMOND), "the lists of the templates"
        )
        await stage.calm()
        assert await stage.still(2.0)
    playing.cancel()
