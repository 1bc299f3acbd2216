"""The server over HTTP: faults, watches that fall behind, starting and stopping, speed."""

import asyncio
import base64
import io
import json
from typing import Any

import aiohttp
import pytest
import yaml

from pumice.api.crds import all_crds
from pumice.api.kinds import CRD, POD, QUEUE, Kind
from pumice.embedded import EmbeddedCluster
from tests.kit.backups import compact
from tests.kit.builders import queue
from tests.kit.counting import counting
from tests.kit.waiting import until

PODS = "/api/v1/namespaces/default/pods"
QUEUES = QUEUE.collection()


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "env": [{"name": "A", "value": "x" * 200}] * 10}]
    metadata = {"name": name, "labels": {"app": "load"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


class Reviewer:
    """Admission that defaults a weight, warns, and refuses one name."""

    def review(self, path: str, body: bytes) -> bytes:
        request = json.loads(body)["request"]
        response: dict[str, Any] = {
            "uid": request["uid"],
            "allowed": True,
            "warnings": [f'"{path}" asked'],
        }
        if path == "/mutate":
            patch = [{"op": "add", "path": "/spec/weight", "value": 7}]
            response |= {
                "patchType": "JSONPatch",
                "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
            }
        elif request["name"] == "refused":
            status = {"code": 422, "reason": "Invalid", "message": "no such queue"}
            response |= {"allowed": False, "status": status}
        elif request["name"] == "crash":
            raise RuntimeError("a fault of the webhook")
        return json.dumps({"response": response}).encode()


class Endpoint:
    """A registration for queues."""

    kind: Kind = QUEUE
    operations = ("CREATE", "UPDATE")

    def __init__(self, path: str, *, mutating: bool) -> None:
        self.path = path
        self.name = f"{path.strip('/')}.volcano.sh"
        self.mutating = mutating


async def test_admission_is_asked_and_its_words_arrive() -> None:
    endpoints = (Endpoint("/mutate", mutating=True), Endpoint("/validate", mutating=False))
    async with (
        EmbeddedCluster(_crds(), admission=Reviewer(), registrations=endpoints) as cluster,
        aiohttp.ClientSession(cluster.url) as http,
    ):
        async with http.post(QUEUES, json=queue("fine")) as response:
            made = await response.json()
            assert response.status == 201
            assert made["spec"]["weight"] == 7
            assert response.headers.getall("Warning") == [
                '299 - "\\"/mutate\\" asked"',
                '299 - "\\"/validate\\" asked"',
            ]
        async with http.post(QUEUES, json=queue("refused")) as response:
            status = await response.json()
            assert response.status == 422
            assert status["message"] == (
                'admission webhook "validate.volcano.sh" denied the request: no such queue'
            )
            assert len(response.headers.getall("Warning")) == 2
        async with http.post(QUEUES, params={"dryRun": "All"}, json=queue("dry")) as response:
            assert (await response.json())["spec"]["weight"] == 7
        assert [each["metadata"]["name"] for each in cluster.store.list(QUEUE)] == ["fine"]


async def test_a_fault_inside_is_answered_too(caplog: pytest.LogCaptureFixture) -> None:
    endpoints = (Endpoint("/validate", mutating=False),)
    async with (
        EmbeddedCluster(_crds(), admission=Reviewer(), registrations=endpoints) as cluster,
        aiohttp.ClientSession(cluster.url) as http,
    ):
        async with http.post(QUEUES, json=queue("crash")) as response:
            status = await response.json()
        assert (response.status, status["reason"]) == (500, "InternalError")
        assert "a fault of the webhook" in status["message"]
        async with http.get("/readyz") as response:
            assert await response.text() == "ok"


def _crds() -> list[dict[str, Any]]:
    return [each for each in all_crds() if each["spec"]["names"]["kind"] == "Queue"]


async def test_kubeconfig_and_url(cluster: EmbeddedCluster) -> None:
    config = yaml.safe_load(cluster.kubeconfig("somewhere"))

    assert config["clusters"][0]["cluster"]["server"] == cluster.url
    assert config["contexts"][0]["context"]["namespace"] == "somewhere"
    assert cluster.url.startswith("http://127.0.0.1:")


async def test_stopping_ends_watches_and_frees_the_port() -> None:
    async with EmbeddedCluster() as first:
        session = aiohttp.ClientSession(first.url)
        response = await session.get("/api/v1/pods", params={"watch": "true"})
        port = int(first.url.rpartition(":")[2])
    async with asyncio.timeout(60):
        assert await response.content.read() == b""
    await session.close()

    async with EmbeddedCluster(port=port) as second:
        assert second.url.endswith(f":{port}")


async def test_a_watcher_that_falls_behind_must_begin_anew() -> None:
    async with (
        EmbeddedCluster(history=10) as cluster,
        aiohttp.ClientSession(cluster.url) as http,
        http.get(PODS, params={"watch": "true"}) as response,
    ):
        # All in one go: the watch cannot send in between.
        for number in range(50):
            cluster.store.create(pod(f"p{number}"))
        async with asyncio.timeout(60):
            events = [json.loads(line) async for line in response.content]

    assert events[-1]["type"] == "ERROR"
    assert events[-1]["object"]["code"] == 410


async def test_a_watch_ends_with_its_connection(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession
) -> None:
    table = cluster.store.storage.table(("", "pods"))
    async with http.get(PODS, params={"watch": "true"}):
        assert len(table.watchers) == 1

    await until(lambda: not table.watchers)


async def test_a_page_can_be_too_old(cluster: EmbeddedCluster, http: aiohttp.ClientSession) -> None:
    for number in range(3):
        cluster.store.create(pod(f"p{number}"))
    async with http.get(PODS, params={"limit": "1"}) as response:
        token = (await response.json())["metadata"]["continue"]
    cluster.store.create(pod("new"))
    compact(cluster.store.storage.table(("", "pods")))

    async with http.get(PODS, params={"limit": "1", "continue": token}) as response:
        status = await response.json()

    assert (response.status, status["reason"]) == (410, "Expired")
    assert "continue parameter is too old" in status["message"]


async def test_a_watch_ends_when_its_kind_goes(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession
) -> None:
    cluster.store.create(queue("q"))
    async with http.get(QUEUES, params={"watch": "true"}) as response:
        first = json.loads(await response.content.readline())
        cluster.store.delete(CRD, "queues.scheduling.volcano.sh")
        async with asyncio.timeout(60):
            rest = [json.loads(line) async for line in response.content]

    assert first["type"] == "ADDED"
    assert [each["type"] for each in rest] == ["DELETED"]
    async with http.get(QUEUES) as response:
        assert response.status == 404


async def test_the_old_form_of_watching(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession
) -> None:
    cluster.store.create(pod("p"))
    cluster.store.create(pod("q"))

    path = "/api/v1/watch/namespaces/default/pods/q"
    async with http.get(path, params={"timeoutSeconds": "1"}) as response:
        event = json.loads(await response.content.readline())

    assert event["object"]["metadata"]["name"] == "q"


@pytest.mark.parametrize(("size", "code"), [(3_000_000, 201), (3_200_000, 413)])
async def test_bodies_have_kubernetes_limit(
    http: aiohttp.ClientSession, size: int, code: int
) -> None:
    big = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "big"},
        "data": {"a": "x" * size},
    }
    collection = "/api/v1/namespaces/default/configmaps"

    async with http.post(
        collection,
        data=io.BytesIO(json.dumps(big).encode()),
        headers={"Content-Type": "application/json"},
    ) as response:
        body = await response.json()

    assert response.status == code
    assert body["kind"] == ("ConfigMap" if code == 201 else "Status")


@pytest.mark.parametrize(
    ("below", "body"),
    [
        ("binding", {"target": []}),
        ("binding", {"target": {"name": 1}}),
        ("binding", {"metadata": "x", "target": {"name": "n"}}),
        ("binding", []),
        ("eviction", {"deleteOptions": []}),
        ("eviction", {"deleteOptions": {"preconditions": "x"}}),
        ("eviction", {"deleteOptions": {"gracePeriodSeconds": "x"}}),
    ],
)
async def test_nonsense_below_a_pod_is_refused(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession, below: str, body: Any
) -> None:
    cluster.store.create(pod("p"))

    async with http.post(f"{PODS}/p/{below}", json=body) as response:
        status = await response.json()

    assert (response.status, status["reason"]) == (400, "BadRequest")
    async with http.delete(f"{PODS}/p", json={"preconditions": []}) as response:
        assert response.status == 400


async def test_logs_and_streams_of_pods_say_that_nodes_are_simulated(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession
) -> None:
    cluster.store.create(pod("p"))
    why = "nodes of this cluster are simulated: no container is started, so "

    async with http.get(f"{PODS}/p/log") as response:
        assert (response.status, response.content_type) == (200, "text/plain")
        assert await response.text() == f"{why}pod default/p has no output\n"
    async with http.get(f"{PODS}/missing/log") as response:
        assert response.status == 404
    for below in ("attach", "exec", "portforward"):
        for ask in (http.get, http.post):
            async with ask(f"{PODS}/p/{below}") as response:
                status = await response.json()
            assert (response.status, status["message"]) == (400, f"{why}pods have no {below}")


async def test_kinds_that_no_controller_acts_on_and_bodies_that_are_not_read_say_so(
    http: aiohttp.ClientSession,
) -> None:
    made = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}}
    async with http.post("/apis/apps/v1/namespaces/default/statefulsets", json=made) as response:
        assert response.status == 201
        assert "makes no pods of a StatefulSet" in response.headers["Warning"]
    async with http.post(
        "/apis/apps/v1/namespaces/default/statefulsets",
        data=b"k8s\x00\x0a\x16\x0a\x07apps/v1\x12\x0bStatefulSet",
        headers={"Content-Type": "application/vnd.kubernetes.protobuf"},
    ) as response:
        status = await response.json()
    assert response.status == 415
    assert "add --dry-run=client -o yaml" in status["message"]


async def test_a_thousand_pods_are_written_and_watched_in_a_second_or_two(
    cluster: EmbeddedCluster, http: aiohttp.ClientSession
) -> None:
    """Nothing is timed: 900 calls a pod were counted, client and watcher included, which take 0.9 ms."""
    count = 1000

    async def watch() -> None:
        seen = 0
        async with http.get("/api/v1/pods", params={"watch": "true"}) as response:
            async for _ in response.content:
                seen += 1
                if seen == count:
                    return

    async def create(numbers: range) -> None:
        for number in numbers:
            async with http.post(PODS, json=pod(f"p{number}")) as response:
                assert response.status == 201

    with counting() as so_far:
        await asyncio.gather(watch(), *(create(range(start, count, 10)) for start in range(10)))
        assert so_far() < 2000 * count

    assert len(cluster.store.list(POD)) == count
