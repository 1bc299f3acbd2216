"""CronJobs on the embedded API server, and a controller that is killed at each write for them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.kinds import CRON_JOB, EVENT, JOB, POD, Kind
from pumice.api.meta import parse_time
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden, NotFound
from pumice.controller.loop.cronjobs import local_time_zone
from pumice.embedded import ApiStatusError, EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_stopped import MortalClient
from tests.kit.builders import task

Raw = dict[str, Any]


def cron_job(schedule: str = "@every 3s", *, runs: str = "", **spec: Any) -> Raw:
    annotations = {keys.RUN_DURATION: runs} if runs else None
    tasks = [task("worker", 1, annotations=annotations)]
    template = {"spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": tasks}}
    return {
        "apiVersion": CRON_JOB.api_version,
        "kind": CRON_JOB.kind,
        "metadata": {"name": "c"},
        "spec": {"schedule": schedule, "jobTemplate": template} | spec,
    }


async def submit(stage: ControllerStage, manifest: Raw) -> Raw:
    return await stage.client.create(CRON_JOB, manifest, stage.namespace)


def stored(stage: ControllerStage) -> Raw:
    return stage.find(CRON_JOB, "c")


def status(stage: ControllerStage) -> Raw:
    return dict(stored(stage).get("status") or {})


def reasons(stage: ControllerStage) -> list[str]:
    return [each["reason"] for each in stage.all(EVENT) if each["involvedObject"]["name"] == "c"]


async def test_a_job_a_run(played: ControllerStage) -> None:
    made = await submit(played, cron_job(runs="1ms"))
    begun = parse_time(made["metadata"]["creationTimestamp"])
    assert begun is not None
    await played.until(lambda: "lastSuccessfulTime" in status(played), "a run that succeeded")
    await played.until(lambda: "active" not in status(played), "nothing to be active")
    job = played.job(f"c-{int(begun) + 3}")
    annotations = job["metadata"]["annotations"]
    assert parse_time(annotations[keys.CRON_JOB_SCHEDULED]) == begun + 3
    [owner] = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "CronJob",
        made["metadata"]["uid"],
        True,
    )
    await played.until(lambda: len(played.names(JOB)) >= 2, "another run")
    await played.until(lambda: "SawCompletedJob" in reasons(played), "an event")
    assert "SuccessfulCreate" in reasons(played)


async def test_forbid_waits_for_the_job_that_runs(played: ControllerStage) -> None:
    await submit(played, cron_job(concurrencyPolicy="Forbid"))
    await played.until(lambda: "ForbidConcurrent" in reasons(played), "a run to wait")
    [first] = played.names(JOB)
    await played.until(lambda: len(status(played).get("active", ())) == 1)
    await played.until(lambda: played.phase(first) == "Running", "the Job to run")
    for pod in played.names(POD):
        played.finish(pod)
    await played.until(lambda: len(played.names(JOB)) == 2, "the run that waited")
    assert played.phase(first) == "Completed"


async def test_replace_deletes_the_job_that_runs(played: ControllerStage) -> None:
    await submit(played, cron_job(concurrencyPolicy="Replace"))
    await played.until(lambda: played.names(JOB), "a Job")
    [first] = played.names(JOB)
    await played.until(lambda: first not in played.names(JOB), "it to be replaced")
    await played.until(lambda: "SuccessfulDelete" in reasons(played), "an event")
    await played.until(lambda: len(status(played).get("active", ())) == 1, "one to be active")
    assert "StaleReference" not in reasons(played)


async def test_suspended_and_resumed(played: ControllerStage) -> None:
    await submit(played, cron_job("@every 1s", runs="1ms", suspend=True))
    await asyncio.sleep(5)
    assert played.names(JOB) == []
    await played.client.patch(CRON_JOB, "c", "default", {"spec": {"suspend": False}})
    await played.until(lambda: "lastScheduleTime" in status(played), "a run")


async def test_a_schedule_that_is_edited(played: ControllerStage) -> None:
    await submit(played, cron_job("0 0 1 1 *"))
    await played.calm()
    await played.client.patch(CRON_JOB, "c", "default", {"spec": {"schedule": "@every 2s"}})
    await played.until(lambda: played.names(JOB), "a Job of the new schedule")


async def test_nothing_is_written_between_runs(stage: ControllerStage) -> None:
    await submit(stage, cron_job("0 0 1 1 *"))
    await stage.until(lambda: keys.SCHEDULE_SEEN in str(stored(stage)["metadata"]))
    await stage.calm()
    assert await stage.still(5.0)
    assert status(stage) == {}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "never"}, "UnParseableCronJobSchedule"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"timeZone": "No/Where"}, "InvalidTimeZone"),
    ],
)
async def test_what_can_never_run_is_reported_once(
    stage: ControllerStage, spec: Raw, reason: str
) -> None:
    await submit(stage, cron_job(**spec))
    await stage.until(lambda: reason in reasons(stage), "an event")
    assert await stage.still(5.0)
    [event] = [each for each in stage.all(EVENT) if each["reason"] == reason]
    assert (event["count"], event["type"]) == (1, "Warning")


class Refusing(Client):
    """Sees every Job refused until it is told otherwise."""

    refuses = True
    refused = 0

    async def create(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        if kind == JOB and self.refuses:
            self.refused += 1
            raise Forbidden(403, "Forbidden", "not today")
        return await super().create(kind, *args, **named)


async def test_a_job_that_is_refused_is_tried_again(cluster: EmbeddedCluster) -> None:
    """At the next instant at the latest, however often it was refused before."""
    async with (
        Client.connect(server=cluster.url) as client,
        Refusing.connect(server=cluster.url) as refusing,
    ):
        assert isinstance(refusing, Refusing)
        stage = ControllerStage(cluster, client)
        async with stage.controller(refusing):
            await submit(stage, cron_job("@every 5s"))
            await stage.until(lambda: "FailedCreate" in reasons(stage), "an event")
            await stage.until(lambda: refusing.refused >= 12, "attempts")
            refusing.refuses = False
            await stage.until(lambda: stage.names(JOB), "a Job")
            await stage.until(lambda: "SuccessfulCreate" in reasons(stage), "an event")


@pytest.mark.parametrize(
    ("name", "file", "zone"),
    [
        ("Europe/Oslo", "", "Europe/Oslo"),
        (":Europe/Oslo", "", "Europe/Oslo"),
        ("", "", "UTC"),
        ("No/Where", "", "UTC"),
        (None, "Asia/Tokyo", "+09:00"),
        (None, "", "UTC"),
    ],
)
def test_the_time_zone_of_the_process(
    name: str | None, file: str, zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    local = tmp_path / "localtime"
    if file:
        data = resources.files("tzdata").joinpath("zoneinfo", *file.split("/")).read_bytes()
        local.write_bytes(data)
    found = local_time_zone(name, local)
    shown = datetime(2026, 1, 1, tzinfo=found)
    assert zone in (str(found), shown.isoformat()[-6:])


POLICIES = ("Forbid", "Replace")
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
        watched = self._client.watch(JOB, self._namespace, resource_version=version)
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
        MortalForCronJobs.connect(server=cluster.url) as mortal,
    ):
        assert isinstance(mortal, MortalForCronJobs)
        mortal.last, mortal.after, mortal.dead = last, after, asyncio.Event()
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
                async with stage.controller(mortal):
                    await stage.until(lambda: mortal.dead.is_set() or over(), "two runs")
                async with stage.controller():
                    await stage.until(over, "two runs with the next controller")
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
        return creations.counts, begun, mortal


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("policy", POLICIES)
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
