"""Jobs of many pods: a window at a time, and other things between the windows."""

import threading
from typing import Any

import pytest

from pumice.api.kinds import EVENT, JOB, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, Forbidden
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Observed
from pumice.controller.plan import Plan
from pumice.controller.worker import jobs
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task
from tests.kit.requests import Request, recorded

Raw = dict[str, Any]


@pytest.fixture
def empty(cluster: EmbeddedCluster, client: Client) -> ControllerStage:
    """A stage without a controller."""
    return ControllerStage(cluster, client)


async def _admitted(stage: ControllerStage, manifest: Raw) -> None:
    await stage.submit(manifest)
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    stage.admit(stage.all(POD_GROUP)[0])


@pytest.mark.parametrize("what", ["deletion", "command"])
async def test_what_happens_meanwhile_is_seen_after_one_window(
    empty: ControllerStage, what: str
) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        made = 0

        def interrupt(request: Request) -> ApiError | None:
            nonlocal made
            if (request.method, request.resource) == ("POST", "pods"):
                made += 1
                if made == 25:
                    if what == "deletion":
                        empty.store.delete(JOB, "train", "default")
                    else:
                        empty.store.create(_abort(empty.job()))
            return None

        requests.refuse = interrupt
        async with empty.controller(client, window=10):
            await _admitted(empty, job("train", [task("worker", 200)]))
            await empty.until(lambda: made >= 25)
            if what == "command":
                await empty.until(lambda: empty.phase() == "Aborted")
            await empty.calm()
    assert made <= 25 + 10
    assert empty.all(POD) == []


@pytest.mark.parametrize("what", ["deletion", "command"])
async def test_what_happens_while_pods_are_removed_is_seen_after_one_window(
    empty: ControllerStage, what: str
) -> None:
    async with recorded(empty.cluster.url) as (client, requests):
        removed = 0

        def interrupt(request: Request) -> ApiError | None:
            nonlocal removed
            if (request.method, request.resource) == ("DELETE", "pods"):
                removed += 1
                if removed == 25:
                    if what == "deletion":
                        empty.store.delete(JOB, "train", "default")
                    else:
                        empty.store.create(_abort(empty.job(), "TerminateJob"))
            return None

        async with empty.controller(client, window=10):
            await _admitted(empty, job("train", [task("worker", 80)]))
            await empty.until(lambda: empty.status("pending") == 80)
            requests.refuse = interrupt
            empty.store.create(_abort(empty.job()))
            await empty.until(lambda: removed >= 25)
            if what == "command":
                phases = ("Terminating", "Terminated")
                await empty.until(lambda: empty.phase() in phases)
                assert removed <= 25 + 10
                await empty.until(lambda: empty.phase() == "Terminated")
            await empty.calm()
    assert removed == 80 if what == "command" else removed <= 25 + 10
    assert empty.all(POD) == []


@pytest.mark.parametrize("aborted", [False, True])
async def test_evicted_pods_are_asked_for_a_window_at_a_time(
    empty: ControllerStage, client: Client, aborted: bool
) -> None:
    """All of them are restarted together, once it is known of each that it is gone."""
    policies = [{"event": "PodEvicted", "action": "RestartPod"}]
    async with empty.controller():
        await _admitted(empty, job("train", [task("worker", 80)], policies=policies))
        await empty.until(lambda: empty.status("pending") == 80)
        await empty.calm()
    for pod in empty.all(POD):
        await client.delete(POD, pod["metadata"]["name"], "default", grace=0)
    async with recorded(empty.cluster.url) as (recording, requests):
        asked: list[str] = []

        def interrupt(request: Request) -> ApiError | None:
            if request.method == "GET" and "/pods/train-worker-" in request.path:
                asked.append(request.path)
                if aborted and len(asked) == 25:
                    empty.store.create(_abort(empty.job()))
            return None

        requests.refuse = interrupt
        async with empty.controller(recording, window=10):
            if aborted:
                await empty.until(lambda: empty.phase() == "Aborted")
                assert len(asked) <= 25 + 10
                return
            await empty.until(lambda: "pumice.dev/retries" in str(empty.job()["status"]))
            await empty.until(lambda: empty.status("pending") == 80)
            await empty.calm()
    assert (len(asked), len(set(asked))) == (80, 80)
    assert empty.job()["status"]["controlledResources"]["pumice.dev/retries"] == (
        "pod/worker/0-79=1/0"
    )


def _abort(made: Raw, action: str = "AbortJob") -> Raw:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": action.lower(), "namespace": "default"},
        "action": action,
        "target": {
            "apiVersion": JOB.api_version,
            "kind": "Job",
            "name": "train",
            "uid": made["metadata"]["uid"],
        },
    }


async def test_all_pods_come_in_the_end_and_are_counted_between_the_windows(
    empty: ControllerStage,
) -> None:
    async with (
        recorded(empty.cluster.url) as (client, requests),
        empty.controller(client, window=16),
    ):
        await _admitted(empty, job("train", [task("ps", 3), task("worker", 60)]))
        await empty.until(lambda: len(empty.all(POD)) == 63)
        await empty.until(lambda: empty.job()["status"].get("pending") == 63)
    counted = [each.body["status"].get("pending") for each in requests.of("PATCH", "jobs/status")]
    assert [number for number in counted if number] == [16, 32, 48, 63]


async def test_the_event_loop_goes_on_while_many_pods_are_looked_at(
    empty: ControllerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made in a thread; the Job lives as any other."""
    in_loop: list[bool] = []

    def planned(observed: Observed, **options: Any) -> Plan:
        if len(observed.pods) >= 20:
            in_loop.append(threading.current_thread() is threading.main_thread())
        return reconcile(observed, **options)

    monkeypatch.setattr(jobs, "MANY_PODS", 20)
    monkeypatch.setattr(jobs, "reconcile", planned)
    async with empty.controller(window=16):
        await _admitted(empty, job("train", [task("worker", 60)]))
        await empty.until(lambda: empty.status("pending") == 60)
        empty.store.create(_abort(empty.job()))
        await empty.until(lambda: empty.phase() == "Aborted")
    assert empty.all(POD) == []
    assert in_loop
    assert not any(in_loop)


@pytest.mark.parametrize(
    "refusal",
    [
        "exceeded quota: team, requested: cpu=64, used: cpu=0, limited: cpu=32",
        "failed quota: team: must specify limits.cpu for: main",
    ],
)
async def test_a_pod_that_a_quota_refuses_does_not_block_those_behind_it(
    empty: ControllerStage, refusal: str
) -> None:
    """More pods are refused than a window holds."""
    async with recorded(empty.cluster.url) as (client, requests):

        def refuse(request: Request) -> ApiError | None:
            if (request.method, request.resource) != ("POST", "pods"):
                return None
            name = request.body["metadata"]["name"]
            if not name.startswith("train-greedy"):
                return None
            return Forbidden(403, "Forbidden", f'pods "{name}" is forbidden: {refusal}')

        requests.refuse = refuse
        async with empty.controller(client, window=8):
            await _admitted(empty, job("train", [task("greedy", 40), task("modest", 20)]))
            await empty.until(lambda: len(empty.all(POD)) == 20)
            await empty.until(lambda: empty.reason()[0] == "FailedCreate")
    assert refusal in empty.reason()[1]
    assert {name.rsplit("-", 1)[0] for name in empty.names(POD)} == {"train-modest"}
    tried = {each.body["metadata"]["name"] for each in requests.of("POST", "pods")}
    assert tried - set(empty.names(POD)) == {"train-greedy-0"}, "one refusal is enough for a task"


async def test_a_job_of_more_pods_than_the_controller_handles_is_refused(
    empty: ControllerStage,
) -> None:
    async with empty.controller(max_pods_per_job=1000):
        await empty.submit(job("train", [task("worker", 2_000_000_000)], plugins={"svc": []}))
        await empty.submit(job("other"))
        await empty.until(lambda: empty.reason()[0] == "InvalidJob")
        await empty.until(lambda: empty.reason("other")[0] == "PodGroupPending")
        await empty.until(lambda: ("Warning", "InvalidJob") in empty.events())
    assert empty.reason()[1] == (
        "spec.tasks: the tasks ask for 2000000000 pods, expected at most 1000 (max-pods-per-job); "
        "lower their replicas"
    )
    assert [group["metadata"]["ownerReferences"][0]["name"] for group in empty.all(POD_GROUP)] == [
        "other"
    ]
    assert len(empty.all(EVENT)) >= 1
