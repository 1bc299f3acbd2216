"""Pods of other controllers on their way in: how many there are is read from watches, or asked for."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from pumice.api.crds import all_crds
from pumice.api.kinds import INDEXED_JOB, JOB_SET, LEADER_WORKER_SET, Kind
from pumice.api.reviews import PatchOperation
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from pumice.plugins import builtin
from pumice.webhook.patches import applied
from pumice.webhook.server import StateSource, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.integration.controller.test_other_owners_wiring import crd, indexed_job, template
from tests.integration.webhook.serving import QUICK, Raw, running
from tests.kit.waiting import until
from tests.unit.plugins.test_other_owners import pod_of
from tests.unit.webhook.reviewing import operations, request, review

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    foreign = [crd(kind) for kind in (INDEXED_JOB, JOB_SET, LEADER_WORKER_SET)]
    async with EmbeddedCluster([*all_crds(), *foreign]) as found:
        yield found


@pytest.fixture
async def ask(client: aiohttp.ClientSession) -> Callable[..., Any]:
    async def asked(address: str, pod: Raw, query: str = "") -> Raw:
        pod["metadata"]["namespace"] = "default"
        url = f"http://{address}/pods/mutate{query}"
        body = review(request("/pods/mutate", pod))
        async with client.post(url, data=body, headers=JSON) as answer:
            response: Raw = (await answer.json())["response"]
        return response

    return asked


def stored(pod: Raw, response: Raw) -> Raw:
    found = [PatchOperation(**each) for each in operations(response)]
    return applied(pod, found)


def env(pod: Raw) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][0]["env"]}


def lookups(worker: WebhookWorker) -> dict[str, float]:
    name = "pumice_admission_owner_lookups_total"
    return {
        result: worker.metrics.registry.get_sample_value(name, {"result": result}) or 0
        for result in ("found", "missing", "failed")
    }


async def made(api: Client, kind: Kind, manifest: Raw) -> str:
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    found = await api.create(kind, head | manifest, "default")
    return str(found["metadata"]["uid"])


async def test_the_first_pods_of_a_job_need_not_wait_for_the_watch(
    api: Client, ask: Callable[..., Any]
) -> None:
    uid = await made(api, INDEXED_JOB, indexed_job("pytorch"))
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    pod = pod_of({"kind": "Job", "name": "train"}, {"index": 2, "uid": uid})
    async with running(worker, only_ports=True) as address:
        response = await ask(address, pod)
        assert env(stored(pod, response))["RANK"] == "2"
        assert lookups(worker) == {"found": 1, "missing": 0, "failed": 0}


async def test_where_an_unknown_owner_only_warns_its_first_pods_are_wired_all_the_same(
    api: Client, ask: Callable[..., Any]
) -> None:
    """A pod that goes without what plugins give it never gets it."""
    uid = await made(api, INDEXED_JOB, indexed_job("pytorch"))
    levels = AdmissionSettings.from_assignments(["rule.POD-PLUGINS-UNKNOWN=warn"])
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), levels, settings=QUICK)
    pod = pod_of({"kind": "Job", "name": "train"}, {"index": 2, "uid": uid})
    async with running(worker, only_ports=True) as address:
        response = await ask(address, pod)
        assert "warnings" not in response
        assert env(stored(pod, response))["RANK"] == "2"


async def test_a_watched_job_is_not_asked_for_unless_it_seems_to_have_changed(
    api: Client, ask: Callable[..., Any]
) -> None:
    uid = await made(api, INDEXED_JOB, indexed_job("pytorch"))
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    shape = {"kind": "Job", "name": "train"}
    async with running(worker) as address:
        await until(lambda: worker.source.view.owner((INDEXED_JOB, "default", "train")))
        pod = pod_of(shape, {"index": 0, "uid": uid})
        assert env(stored(pod, await ask(address, pod)))["WORLD_SIZE"] == "3"
        assert lookups(worker)["found"] == 0
        beyond = pod_of(shape, {"index": 3, "uid": uid})
        response = await ask(address, beyond)
        assert "has no pod 3" in response["status"]["message"]
        assert lookups(worker)["found"] == 1
        await api.patch(INDEXED_JOB, "train", "default", {"spec": {"completions": 4}})
        response = await ask(address, beyond)
        assert env(stored(beyond, response))["WORLD_SIZE"] == "4"


async def test_a_job_that_is_not_there_or_cannot_be_asked_for(
    api: Client, ask: Callable[..., Any]
) -> None:
    pod = pod_of({"kind": "Job", "name": "gone"}, {"index": 0})
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    async with running(worker, only_ports=True) as address:
        response = await ask(address, pod)
        assert "there is no Job" in response["status"]["message"]
        assert lookups(worker) == {"found": 0, "missing": 1, "failed": 0}
    async with Client.connect(server="http://127.0.0.1:1") as nowhere:
        worker = WebhookWorker(StateSource.of_cluster(nowhere), builtin(), settings=QUICK)
        async with running(worker, only_ports=True) as address:
            response = await ask(address, pod, "?timeout=500ms")
            assert not response["allowed"]
            assert lookups(worker)["failed"] == 1


async def test_pods_of_a_job_set_and_of_a_leader_worker_set(
    api: Client, ask: Callable[..., Any]
) -> None:
    spec = indexed_job("pytorch")["spec"]
    jobs = [{"name": "node", "replicas": 2, "template": {"spec": spec}}]
    meta = {"namespace": "default"}
    await made(api, JOB_SET, {"metadata": meta | {"name": "js"}, "spec": {"replicatedJobs": jobs}})
    groups = {
        "replicas": 2,
        "leaderWorkerTemplate": {"size": 2, "workerTemplate": template("pytorch")},
    }
    await made(api, LEADER_WORKER_SET, {"metadata": meta | {"name": "lws"}, "spec": groups})
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    async with running(worker) as address:
        await until(lambda: worker.source.view.owner((JOB_SET, "default", "js")))
        await until(lambda: worker.source.view.owner((LEADER_WORKER_SET, "default", "lws")))
        pod = pod_of({"kind": "JobSet", "name": "js"}, {"group": "node", "job": 1, "index": 1})
        found = env(stored(pod, await ask(address, pod)))
        assert (found["RANK"], found["MASTER_ADDR"]) == ("4", "js-node-0-0.js")
        pod = pod_of({"kind": "LeaderWorkerSet", "name": "lws"}, {"number": 1, "index": 1})
        found = env(stored(pod, await ask(address, pod)))
        assert (found["RANK"], found["MASTER_ADDR"]) == ("1", "lws-1.lws")
        assert lookups(worker) == {"found": 0, "missing": 0, "failed": 0}
