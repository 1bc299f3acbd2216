"""What the controller writes, and what it does not."""

import pytest

from pumice.api import keys
from pumice.api.kinds import JOB, POD
from pumice.controller.jobs.status import COUNT_SECONDS
from pumice.controller.worker.caches import JobCaches
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task
from tests.kit.requests import recorded


async def test_twenty_pods_from_submission_to_completed(scheduled: ControllerStage) -> None:
    ends = {keys.RUN_DURATION: "500ms"}
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train", [task("worker", 20, annotations=ends)]))
        await scheduled.until(lambda: scheduled.phase() == "Completed")
        await scheduled.calm()
    writes = requests.writes
    assert writes["POST pods"] == 20
    assert sum(writes.values()) <= 30, writes
    assert scheduled.job()["status"]["succeeded"] == 20


async def test_a_status_is_a_patch_of_what_changed_in_the_state_that_was_seen(
    scheduled: ControllerStage,
) -> None:
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train"))
        await scheduled.until(lambda: scheduled.phase() == "Running")
    first, *_, last = requests.of("PATCH", "jobs/status")
    assert set(first.body) == {"metadata", "status"}
    assert first.body["metadata"]["resourceVersion"]
    assert last.body["status"]["state"]["phase"] == "Running"
    assert "minAvailable" not in last.body["status"], "it did not change"
    assert not requests.of("PUT", "jobs/status")


async def test_answers_leave_out_what_is_not_read(scheduled: ControllerStage) -> None:
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train", plugins={"svc": []}))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.command("AbortJob")
        await scheduled.until(lambda: scheduled.phase() == "Aborted")
    writes = [each for each in requests.sent if each.method != "GET" and each.resource != "events"]
    assert {each.resource for each in writes} >= {"pods", "podgroups", "services", "jobs/status"}
    assert all("as=PartialObjectMetadata" in each.headers.get("Accept", "") for each in writes)


async def test_after_a_restart_nothing_is_written_about_pods_that_did_not_change(
    scheduled: ControllerStage,
) -> None:
    async with scheduled.controller():
        for name in ("first", "second", "third"):
            await scheduled.submit(job(name, [task("worker", 100)], plugins={"svc": []}))
        await scheduled.until(
            lambda: all(
                (scheduled.job(name).get("status") or {}).get("running") == 100
                for name in scheduled.names(JOB)
            )
        )
        await scheduled.calm()
    async with (
        recorded(scheduled.cluster.url) as (client, requests),
        scheduled.controller(client) as worker,
    ):
        await scheduled.until(lambda: worker.metrics.passes.labels("idle")._value.get() >= 3)
        await scheduled.calm()
    assert requests.writes == {}


async def test_counts_are_written_once_a_second_and_are_right_in_the_end(
    scheduled: ControllerStage,
) -> None:
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train", [task("worker", 60, minAvailable=1)]))
        await scheduled.until(lambda: scheduled.job().get("status", {}).get("running") == 60)
        await scheduled.calm()
    phases = [
        each.body["status"]["state"].get("phase")
        for each in requests.of("PATCH", "jobs/status")
        if "phase" in each.body["status"].get("state", {})
    ]
    assert phases == ["Pending", "Running"]
    assert len(requests.of("PATCH", "jobs/status")) <= 10, "60 pods started one after the other"


async def test_an_address_that_changes_starts_no_pass(scheduled: ControllerStage) -> None:
    async with scheduled.controller() as worker:
        await scheduled.submit(job("train"))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm(2 * COUNT_SECONDS)
        passes = worker.metrics.pass_seconds._sum.get()
        for number in range(3):
            pod = scheduled.all(POD)[0]
            pod["status"]["podIP"] = f"10.9.9.{number}"
            pod["status"]["podIPs"] = [{"ip": f"10.9.9.{number}"}]
            scheduled.store.update_status(pod)
        seen = scheduled.all(POD)[0]["metadata"]["resourceVersion"]
        await scheduled.until(
            lambda: int(JobCaches(worker.watches).pods.reflector.resource_version) >= int(seen)
        )
        await scheduled.still(0.2)
        assert worker.metrics.pass_seconds._sum.get() == passes


async def test_counts_that_wait_are_written_before_a_removal_is_judged(
    scheduled: ControllerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that succeeded and was then removed was not evicted."""
    monkeypatch.setattr("pumice.controller.worker.jobs.COUNT_SECONDS", 3600.0)
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    async with scheduled.controller() as worker:
        await scheduled.submit(job("train", [task("worker", 2)], policies=policies))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm()
        scheduled.finish("train-worker-0")

        def seen() -> bool:
            found = JobCaches(worker.watches).pods.get("train-worker-0", "default")
            return found is not None and found.status.phase == "Succeeded"

        await scheduled.until(seen)
        await scheduled.calm()
        assert "succeeded" not in scheduled.job()["status"], "it waits"
        scheduled.store.delete(POD, "train-worker-0", "default", grace=0)
        await scheduled.until(lambda: scheduled.job()["status"].get("succeeded") == 1)
        await scheduled.calm()
    assert scheduled.phase() == "Running"
    assert scheduled.names(POD) == ["train-worker-1"]
    assert "version" not in scheduled.job()["status"], "it was not restarted"
