"""Work for one namespace does not hold up another: counted in writes of an API server that carries out one at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from pumice.api.kinds import JOB, NAMESPACE, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.controller.worker.execution import WINDOW
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task
from tests.kit.requests import Request, one_at_a_time

Raw = dict[str, Any]

JOBS, PODS, TINY = 9, 24, 120
"""Jobs of the large namespace and pods of each; Jobs of one pod. One more than a controller handles of a namespace at once."""

CONCURRENT = 8
"""Requests that the controller has under way at once."""

OWN = 8
"""Writes for a Job of two pods until both are created, at most: its status, PodGroup, pods; twice as many as there are."""

Large = Callable[[ControllerStage], Awaitable[None]]


@pytest.fixture
async def large(cluster: EmbeddedCluster, client: Client) -> AsyncIterator[ControllerStage]:
    """The namespace of many pods, in a cluster that admits all PodGroups."""
    for name in ("large", "small"):
        await client.create(NAMESPACE, {"metadata": {"name": name}})
    stage = ControllerStage(cluster, client, "large")

    async def admit() -> None:
        while True:
            for group in cluster.store.list(POD_GROUP):
                if (group.get("status") or {}).get("phase", "Pending") == "Pending":
                    stage.admit(group)
            await asyncio.sleep(0.003)

    admitting = asyncio.create_task(admit())
    yield stage
    admitting.cancel()
    await asyncio.gather(admitting, return_exceptions=True)


async def _create(stage: ControllerStage) -> None:
    for number in range(JOBS):
        await stage.submit(job(f"large-{number}", [task("worker", PODS)]))


async def _create_tiny(stage: ControllerStage) -> None:
    for number in range(TINY):
        await stage.submit(job(f"tiny-{number}", [task("worker", 1)]))


async def _scale_down(stage: ControllerStage) -> None:
    for name in stage.names(JOB):
        patch = {"spec": {"minAvailable": 1, "tasks": [task("worker", 1)]}}
        await stage.client.patch(JOB, name, stage.namespace, patch)


async def _abort(stage: ControllerStage) -> None:
    for name in stage.names(JOB):
        await stage.command("AbortJob", name)


async def _restart(stage: ControllerStage) -> None:
    for name in stage.names(JOB):
        await stage.command("RestartJob", name)


@pytest.mark.parametrize(
    ("before", "work"),
    [
        (None, _create),
        (None, _create_tiny),
        (_create, _scale_down),
        (_create, _abort),
        (_create, _restart),
    ],
    ids=["creation", "tiny-jobs", "scale-down", "removal", "restart"],
)
async def test_a_small_job_waits_for_a_bounded_number_of_writes(
    large: ControllerStage, before: Large | None, work: Large
) -> None:
    """Each of its writes waits for those that are under way, and for one of the others' at most."""
    if before is not None:
        async with large.controller(namespace=None):
            await before(large)
            await large.until(lambda: len(large.all(POD)) == JOBS * PODS)
            await large.calm()
    async with (
        one_at_a_time(large.cluster.url) as (client, done),
        large.controller(client, namespace=None, concurrent_writes=CONCURRENT),
    ):
        await work(large)
        await large.until(lambda: len(done) >= 6 * CONCURRENT)
        arrival = len(done)
        await large.client.create(JOB, job("small", [task("worker", 2)], namespace="small"))
        await large.until(lambda: len(large.store.list(POD, "small")) == 2)
        pods = [number for number, each in enumerate(done) if _creates_small_pod(each)]
        meanwhile = [each.namespace for each in done[arrival : pods[-1]]]
        assert meanwhile.count("small") <= OWN
        assert meanwhile.count("large") <= OWN * CONCURRENT // 2
        await large.until(lambda: len(done) > arrival + 2 * OWN * CONCURRENT)


async def test_namespaces_that_use_all_workers_give_them_up_after_a_window(
    large: ControllerStage,
) -> None:
    """Then the small Job waits for a worker, too, each time at most until the plans under way have carried out a window."""
    workers, jobs = 4, 6  # `ControllerSettings.passes`, and namespaces with a large Job each
    for number in range(jobs):
        await large.client.create(NAMESPACE, {"metadata": {"name": f"large-{number}"}})
        tasks = [task("worker", 200)]
        await large.client.create(JOB, job("train", tasks, namespace=f"large-{number}"))
    async with (
        one_at_a_time(large.cluster.url) as (client, done),
        large.controller(client, namespace=None, workers=1, concurrent_writes=CONCURRENT),
    ):
        await large.until(lambda: len(done) >= 100)
        arrival = len(done)
        await large.client.create(JOB, job("small", [task("worker", 2)], namespace="small"))
        await large.until(lambda: len(large.store.list(POD, "small")) == 2)
        pods = [number for number, each in enumerate(done) if _creates_small_pod(each)]
        meanwhile = [each.namespace for each in done[arrival : pods[-1]]]
        assert len(meanwhile) <= 3 * workers * WINDOW


def _creates_small_pod(request: Request) -> bool:
    return (request.method, request.resource, request.namespace) == ("POST", "pods", "small")
