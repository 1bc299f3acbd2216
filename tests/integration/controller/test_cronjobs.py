"""CronJobs on the embedded API server."""

import asyncio
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import CRON_JOB, EVENT, JOB, POD, Kind
from pumice.api.meta import parse_time
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden
from pumice.controller.worker.cronjobs import local_time_zone
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
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
    await played.until(lambda: "SuccessfulCreate" in reasons(played))


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


async def test_replace_waits_until_the_pods_are_gone(played: ControllerStage) -> None:
    manifest = cron_job("@every 10s", concurrencyPolicy="Replace")
    manifest["metadata"]["annotations"] = {keys.REPLACE_WHEN_GONE: "true"}
    await submit(played, manifest)
    await played.until(lambda: played.names(POD), "a pod")
    [first], [pod] = played.names(JOB), played.names(POD)
    for held in (["example.com/held"], None):
        await played.client.patch(POD, pod, "default", {"metadata": {"finalizers": held}})
        if held:
            await played.until(lambda: "deletionTimestamp" in str(played.job(first)), "its end")
            await asyncio.sleep(3.0)
            assert played.names(JOB) == [first]
    await played.until(lambda: first not in played.names(JOB), "it to be gone")
    await played.until(lambda: played.names(JOB), "the next Job")
    await played.until(lambda: "ReplaceConcurrent" in reasons(played))


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
    await stage.calm()  # other objects of the namespace may be written still
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
