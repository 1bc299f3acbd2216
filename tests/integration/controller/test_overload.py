"""An API server that has too many requests, does not answer, or is ahead of the caches."""

import asyncio
import time
from typing import Any

import pytest

from pumice.api.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, NAMESPACE, POD, POD_GROUP
from pumice.api.meta import format_time
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, Forbidden, TooManyRequests, Unavailable
from pumice.cluster.events import EventRecorder
from pumice.controller.plan import CreateObject, DeleteObject, PatchStatus, Plan, Step, UpdateObject
from pumice.controller.worker.caches import JobCaches
from pumice.controller.worker.execution import Executor
from pumice.controller.worker.jobs import JobController, JobOwners
from pumice.controller.worker.memory import ObjectMemory
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.embedded import EmbeddedCluster
from pumice.plugins import builtin
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import bare_pod, job, pod, task
from tests.kit.requests import Request, Requests, recorded

Raw = dict[str, Any]


@pytest.fixture
def empty(cluster: EmbeddedCluster, client: Client) -> ControllerStage:
    """A stage without a controller."""
    return ControllerStage(cluster, client)


async def test_too_many_requests_are_no_trouble_of_the_job(empty: ControllerStage) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        refusals = 0

        def refuse(request: Request) -> ApiError | None:
            nonlocal refusals
            if request.resource == "podgroups" and request.method == "POST" and refusals < 3:
                refusals += 1
                return TooManyRequests(429, "TooManyRequests", "slow down", retry_after=0.2)
            return None

        requests.refuse = refuse
        async with empty.controller(client) as worker:
            await empty.submit(job("train"))
            await empty.until(lambda: refusals == 3)
            await empty.until(lambda: empty.reason()[0] == "PodGroupPending")
            await empty.calm()
            text = worker.metrics.writes.labels("create", "PodGroup", "busy")._value.get()
    assert text == 3
    assert [e for e in empty.all(EVENT) if e["type"] == "Warning"] == []
    reasons = {
        (each.body["status"].get("state") or {}).get("reason")
        for each in requests.of("PATCH", "jobs/status")
    }
    assert "FailedCreate" not in reasons


async def test_retry_after_is_waited_for_whatever_happens(empty: ControllerStage) -> None:
    """Nothing is sent for any Job of the namespace while the server wants no requests."""
    async with recorded(empty.cluster.url) as (client, requests):
        requests.refuse = lambda request: (
            TooManyRequests(429, "TooManyRequests", "slow down", retry_after=20.0)
            if request.resource == "podgroups" and request.method == "POST"
            else None
        )
        async with empty.controller(client) as worker:
            await empty.submit(job("first"))
            await empty.until(lambda: len(requests.of("POST", "podgroups")) == 1)
            await empty.until(lambda: worker.metrics.passes.labels("again")._value.get() == 1)
            await empty.submit(job("second"))
            await empty.client.patch(JOB, "first", "default", {"metadata": {"labels": {"a": "b"}}})
            await empty.still(0.3)
            assert len(requests.of("POST", "podgroups")) == 1
            assert empty.phase("second") == ""


async def test_too_many_requests_in_one_namespace_do_not_stop_another(
    empty: ControllerStage,
) -> None:
    """A webhook or a plugin of the API server may limit the requests of one namespace alone."""
    async with recorded(empty.cluster.url) as (client, requests):
        requests.refuse = lambda request: (
            TooManyRequests(429, "TooManyRequests", "slow down", retry_after=20.0)
            if request.method == "POST" and "/namespaces/default/podgroups" in request.path
            else None
        )
        async with empty.controller(client, namespace=None) as worker:
            await empty.submit(job("first"))
            await empty.until(lambda: worker.metrics.passes.labels("again")._value.get() == 1)
            await empty.client.create(NAMESPACE, {"metadata": {"name": "other"}})
            await empty.client.create(JOB, job("second", namespace="other"))
            await empty.until(lambda: empty.store.list(POD_GROUP, "other"))
    paths = [each.path.split("/")[5] for each in requests.of("POST", "podgroups")]
    assert paths == ["default", "other"]  # before the first is tried again


async def test_every_controller_waits_for_a_namespace_with_too_many_requests(
    empty: ControllerStage,
) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        requests.refuse = lambda request: (
            TooManyRequests(429, "TooManyRequests", "slow down", retry_after=20.0)
            if request.resource == "podgroups" and request.method == "POST"
            else None
        )
        async with empty.controller(client, controllers=frozenset({"pg-controller"})):
            await empty.client.create(POD, bare_pod("first", schedulerName="volcano"))
            await empty.until(lambda: len(requests.of("POST", "podgroups")) == 1)
            await empty.client.create(POD, bare_pod("second", schedulerName="volcano"))
            await empty.still(0.3)
            assert len(requests.of("POST", "podgroups")) == 1


async def test_waits_after_an_outage_end_soon(empty: ControllerStage) -> None:
    error = Unavailable(0, "ConnectionFailed", "no answer")
    async with recorded(empty.cluster.url) as (client, requests):
        requests.refuse = lambda request: error if request.method == "POST" else None
        async with empty.controller(client) as worker:
            watches = worker.watches
            controller = JobController(worker, builtin(), JobCaches(watches), JobOwners(watches))
            made = await empty.client.create(JOB, job("train"))
            memory = ObjectMemory(uid=made["metadata"]["uid"], failures=50)
            outcome = await Executor(client, worker.recorder, ControllerMetrics()).carry_out(
                Plan.of([_creation()]), made
            )
            assert outcome.broken
            delay = controller._after_failure(memory, outcome, None)
    assert 15.0 < delay <= 30.0


def _creation() -> Step:
    return CreateObject(
        CONFIG_MAP,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "map", "namespace": "default"},
        },
    )


def _removal(found: Raw) -> Step:
    return DeleteObject(POD, "default", found["metadata"]["name"], found["metadata"]["uid"])


def _mark(found: Raw) -> Step:
    meta = found["metadata"]
    patch = {"metadata": {"uid": meta["uid"], "annotations": {"volcano.sh/out-of-sync": "true"}}}
    return UpdateObject(POD, "default", meta["name"], patch)


async def _carried_out(client: Client, made: Raw, *stages: list[Step]) -> tuple[bool, Executor]:
    executor = Executor(client, EventRecorder(client, "test"), ControllerMetrics())
    outcome = await executor.carry_out(Plan.of(*stages), made)
    return outcome.complete, executor


@pytest.mark.parametrize("step", [_removal, _mark])
async def test_no_pod_is_removed_if_the_job_has_changed(empty: ControllerStage, step: Any) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        made = await empty.client.create(JOB, job("train"))
        found = empty.store.create(pod("train-worker-0"))
        await empty.client.patch(JOB, "train", "default", {"spec": {"minAvailable": 1}})
        await empty.client.patch(JOB, "train", "default", {"metadata": {"labels": {"a": "b"}}})
        complete, _ = await _carried_out(client, made, [step(found)])
        assert not complete
        assert not requests.writes
        current = await empty.client.get(JOB, "train", "default")
        complete, _ = await _carried_out(client, current, [step(found)])
        assert complete
        assert sum(requests.writes.values()) == 1


async def test_a_status_that_was_written_confirms_the_job(empty: ControllerStage) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        made = await empty.client.create(JOB, job("train"))
        found = empty.store.create(pod("train-worker-0"))
        status = PatchStatus({"state": {"phase": "Aborting"}})
        complete, _ = await _carried_out(client, made, [status], [_removal(found)])
    assert complete
    assert _reads(requests) == []


def _reads(requests: Requests) -> list[str]:
    return [each.path for each in requests.sent if each.method == "GET"]


async def test_a_command_without_a_job_is_removed_with_an_event(empty: ControllerStage) -> None:
    async with empty.controller():
        await empty.client.create(COMMAND, _command("ghost"))
        await empty.until(lambda: empty.all(COMMAND) == [])
        await empty.until(lambda: ("Warning", "CommandRefused") in empty.events())
    (event,) = empty.all(EVENT)
    assert event["involvedObject"]["kind"] == "Command"
    assert event["message"] == "Command stop is refused: there is no Job ghost"


async def test_retry_after_is_waited_for_before_a_command_without_a_job_is_removed(
    empty: ControllerStage,
) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        refused = False

        def refuse(request: Request) -> ApiError | None:
            nonlocal refused
            if refused or (request.method, request.resource) != ("DELETE", "commands"):
                return None
            refused = True
            return TooManyRequests(429, "TooManyRequests", "slow down", retry_after=20.0)

        requests.refuse = refuse
        async with empty.controller(client, controllers=frozenset({"job-controller"})):
            await empty.client.create(COMMAND, _command("ghost"))
            await empty.until(lambda: refused)
            assert await empty.still(15.0)
            await empty.until(lambda: empty.all(COMMAND) == [])


async def test_a_command_waits_for_a_job_that_the_caches_do_not_show(
    empty: ControllerStage,
) -> None:
    async with empty.controller() as worker:
        made = await empty.submit(job("train", [task()]))
        await empty.until(lambda: empty.phase() == "Pending")
        await empty.calm()
        hidden = JobCaches(worker.watches).jobs._objects.pop(("default", "train"))
        await empty.client.create(COMMAND, _command("train", made["metadata"]["uid"]))
        await empty.until(lambda: len(JobCaches(worker.watches).commands) == 1)
        await empty.still(0.2)
        assert len(empty.all(COMMAND)) == 1
        JobCaches(worker.watches).jobs._objects["default", "train"] = hidden
        await empty.client.patch(JOB, "train", "default", {"metadata": {"labels": {"a": "b"}}})
        await empty.until(lambda: empty.phase() == "Aborted")
        await empty.until(lambda: empty.all(COMMAND) == [])


def _command(target: str, uid: str = "") -> Raw:
    reference = {"apiVersion": JOB.api_version, "kind": "Job", "name": target}
    return {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {"name": "stop", "namespace": "default"},
        "action": "AbortJob",
        "target": reference | ({"uid": uid} if uid else {}),
    }


async def test_what_is_due_does_not_wait_for_what_is_refused(
    cluster: EmbeddedCluster,
) -> None:
    """A pod of one task is refused for good; a policy with a timeout of the other acts in time."""
    async with recorded(cluster.url) as (client, requests):
        stage = ControllerStage(cluster, client)
        tried = 0

        def refuse(request: Request) -> ApiError | None:
            nonlocal tried
            if request.method != "POST" or request.resource != "pods":
                return None
            if not request.body["metadata"]["name"].startswith("train-b"):
                return None
            tried += 1
            return Forbidden(403, "Forbidden", "the admission of pods says no")

        requests.refuse = refuse
        playing = asyncio.create_task(stage.schedule())
        async with stage.controller(client):
            policy = {"event": "PodFailed", "action": "RestartPod", "timeout": "2s"}
            await stage.submit(
                job("train", [task("a", 1), task("b", 1)], minAvailable=1, policies=[policy])
            )
            await stage.until(lambda: tried >= 6)
            failed = stage.find(POD, "train-a-0")
            ended = {"exitCode": 1, "reason": "Error", "finishedAt": format_time(time.time())}
            main = {"name": "main", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
            failed["status"] |= {
                "phase": "Failed",
                "containerStatuses": [main | {"state": {"terminated": ended}}],
            }
            stage.store.update_status(failed)
            async with asyncio.timeout(3):  # the next attempt for what is refused comes later
                await stage.until(lambda: ("Normal", "ExecuteAction") in stage.events())
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
