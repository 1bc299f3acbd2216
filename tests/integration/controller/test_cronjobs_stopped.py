"""A controller that is killed at each write for a CronJob, before it is sent or before its answer arrives."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from pumice.api.kinds import CRON_JOB, JOB, Kind
from pumice.api.meta import parse_time
from pumice.cluster.client import Client
from pumice.cluster.errors import NotFound
from pumice.embedded import ApiStatusError, EmbeddedCluster
from tests.integration.controller.mortal import MortalClient, mortal_client
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_cronjobs import cron_job, status, submit

Raw = dict[str, Any]

ALIVE = frozenset({"job-controller", "gc-controller", "cronjob-controller"})
PERIOD = 20
"""Seconds between runs: time that is idle passes quickly, and a busy machine is not that busy."""


class MortalForCronJobs(MortalClient):
    """Counts only what is written for CronJobs: to them, and Jobs that are created and deleted."""

    async def _mortal(self, kind: Kind, write: Callable[[], Awaitable[Raw]]) -> Raw:
        return await super()._mortal(kind, write) if kind in (CRON_JOB, JOB) else await write()

    async def patch(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        if kind == JOB:  # its status, by the controller of Jobs
            return await Client.patch(self, kind, *args, **named)
        return await super().patch(kind, *args, **named)


@asynccontextmanager
async def playing(stage: ControllerStage) -> AsyncIterator[None]:
    """Admit every group and bind every pod, also while Jobs are deleted."""

    async def play() -> None:
        while True:
            with suppress(NotFound, ApiStatusError):
                await stage.schedule_once()
            await asyncio.sleep(0.2)

    player = asyncio.create_task(play())
    try:
        yield
    finally:
        player.cancel()
        await asyncio.gather(player, return_exceptions=True)


class Creations:
    """How often Jobs of a namespace were created, by name."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.counts: dict[str, int] = {}
        self._client, self._namespace = client, namespace

    async def follow(self, version: str) -> None:
        watched = self._client.collection(JOB, self._namespace).watch(version)
        async for event, job in watched:
            if event == "ADDED":
                name = msgspec.json.decode(job)["metadata"]["name"]
                self.counts[name] = self.counts.get(name, 0) + 1


async def tell(
    cluster: EmbeddedCluster, namespace: str, policy: str, last: int | None, after: bool
) -> tuple[dict[str, int], float, MortalClient]:
    """Two runs of a CronJob; how often each Job was created, when counting began, and the client that may die."""
    head = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    cluster.store.create(head)
    runs = "" if policy == "Replace" else "1ms"
    manifest = cron_job(f"@every {PERIOD}s", runs=runs, concurrencyPolicy=policy)
    manifest["spec"]["successfulJobsHistoryLimit"] = 0
    manifest["spec"]["jobTemplate"]["spec"]["ttlSecondsAfterFinished"] = 1
    async with (
        Client.connect(server=cluster.url) as client,
        mortal_client(cluster, MortalForCronJobs, last, after=after) as mortal,
    ):
        stage = ControllerStage(cluster, client, namespace)
        made = await submit(stage, manifest)
        begun = parse_time(made["metadata"]["creationTimestamp"])
        assert begun is not None
        creations = Creations(client, namespace)
        counting = asyncio.create_task(creations.follow(made["metadata"]["resourceVersion"]))

        def over() -> bool:
            """Two runs were made and noted, and what they left was removed."""
            noted = parse_time(status(stage).get("lastScheduleTime"))
            left = 1 if policy == "Replace" else 0
            return (
                noted == begun + 2 * PERIOD
                and len(status(stage).get("active", ())) == left
                and len(stage.names(JOB)) == left
            )

        try:
            async with playing(stage):
                async with stage.controller(mortal, controllers=ALIVE):
                    await stage.until(lambda: mortal.dead.is_set() or over(), "two runs")
                async with stage.controller(controllers=ALIVE):
                    await stage.until(over, "two runs with the next controller")
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
        return creations.counts, begun, mortal


@pytest.mark.parametrize(("policy", "after"), [("Forbid", False), ("Replace", True)])
async def test_no_run_is_lost_or_doubled(
    cluster: EmbeddedCluster, policy: str, after: bool
) -> None:
    """Whenever the controller dies, each run has one Job, also if Jobs are deleted as soon as they have ended."""
    _, _, calm = await tell(cluster, "undisturbed", policy, None, after)
    assert calm.writes >= 5
    told = await asyncio.gather(
        *(tell(cluster, f"killed-{number}", policy, number, after) for number in range(calm.writes))
    )
    for number, (created, begun, _) in enumerate(told):
        wanted = {f"c-{int(begun) + PERIOD * run}": 1 for run in (1, 2)}
        assert created == wanted, f"killed at write {number}"


async def test_a_job_stays_until_its_run_is_noted(cluster: EmbeddedCluster, client: Client) -> None:
    """Where the controller of CronJobs is a process of its own that dies after creating a Job; the other one removes ended Jobs."""
    cron_jobs = frozenset({"cronjob-controller"})
    jobs = frozenset({"job-controller", "gc-controller"})
    stage = ControllerStage(cluster, client)
    # The first write is a note.
    async with mortal_client(cluster, MortalForCronJobs, 1, after=True) as mortal:
        manifest = cron_job(f"@every {PERIOD}s", runs="1ms")
        manifest["spec"]["jobTemplate"]["spec"]["ttlSecondsAfterFinished"] = 0
        made = await submit(stage, manifest)
        creations = Creations(client, stage.namespace)
        counting = asyncio.create_task(creations.follow(made["metadata"]["resourceVersion"]))
        try:
            async with playing(stage), stage.controller(controllers=jobs):
                async with stage.controller(mortal, controllers=cron_jobs):
                    await stage.until(lambda: mortal.dead.is_set(), "a Job")
                [name] = stage.names(JOB)
                await stage.until(lambda: stage.phase(name) == "Completed", "its end")
                await asyncio.sleep(3.0)
                assert stage.names(JOB) == [name]
                async with stage.controller(controllers=cron_jobs):
                    await stage.until(lambda: not stage.names(JOB), "it to go")
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
    begun = parse_time(made["metadata"]["creationTimestamp"])
    assert begun is not None
    assert creations.counts == {name: 1}
    assert parse_time(status(stage)["lastScheduleTime"]) == begun + PERIOD
