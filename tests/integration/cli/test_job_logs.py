"""`pumice job logs` and `explain --logs` against the embedded server, with a proxy that has the logs, as kubelets have."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from pumice.api import keys
from pumice.api.kinds import JOB, POD
from pumice.cluster.client import Client
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, pod, task

Raw = dict[str, Any]


class Kubelets:
    """A proxy before the embedded server that answers requests for logs itself.

    Attributes:
        url: Its address.
        logs: What is in a log by pod and container, or the code of a refusal.
        following: What is written to those who follow it, a line in 0.2 s; then the pod ends.
        asked: Pod, container and query of each request.
        forbidden: Endings of paths that may not be read.
    """

    url: str

    def __init__(self, server: Server) -> None:
        self.logs: dict[tuple[str, str], bytes | int] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.forbidden: tuple[str, ...] = ()
        self.following: dict[tuple[str, str], list[bytes]] = {}
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> "Kubelets":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            url = self.server.url
            self._session = await stack.enter_async_context(aiohttp.ClientSession(url))
            runner = web.ServerRunner(web.Server(self._answer, handler_cancellation=True))
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._ready.set()
            await self._end.wait()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith(self.forbidden or ("no such path",)):
            return _refusal(403, "Forbidden", "pods/log is forbidden")
        if request.path.endswith("/log"):
            return await self._log(request)
        async with self._session.get(request.path_qs, timeout=aiohttp.ClientTimeout(None)) as got:
            response = web.StreamResponse(status=got.status)
            response.content_type = "application/json"
            await response.prepare(request)
            async for chunk in got.content.iter_any():
                await response.write(chunk)
            return response

    async def _log(self, request: web.BaseRequest) -> web.StreamResponse:
        name, query = request.path.split("/")[-2], dict(request.query)
        key = name, query["container"]
        self.asked.append((*key, query))
        log = self.logs.get(key, b"")
        if isinstance(log, int):
            return _refusal(log, "BadRequest", f"container {key[1]} is waiting to start")
        response = web.StreamResponse()
        response.content_type = "text/plain"
        await response.prepare(request)
        await response.write(log)
        if query.get("follow"):
            for line in self.following.get(key, ()):
                await asyncio.sleep(0.2)
                await response.write(line)
            await self._end_pod(name)
        return response

    async def _end_pod(self, name: str) -> None:
        async with Client.connect(server=self.server.url) as client:
            await client.patch(POD, name, "default", {"status": ended(0)}, subresource="status")


def _refusal(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "status": "Failure", "reason": reason, "message": message}
    return web.json_response(status | {"code": code}, status=code)


def line(second: float, text: str) -> bytes:
    return f"2026-01-01T00:00:{second:06.3f}Z {text}\n".encode()


def ended(code: int) -> Raw:
    end = {"exitCode": code, "startedAt": "2026-01-01T00:00:00Z"}
    containers = [{"name": "main", "state": {"terminated": end}, "image": "", "imageID": ""}]
    phase = "Failed" if code else "Succeeded"
    return {"phase": phase, "containerStatuses": [each | READY for each in containers]}


READY = {"ready": False, "restartCount": 0}
RUNS: Raw = {
    "phase": "Running",
    "containerStatuses": [
        {"name": "main", "image": "", "imageID": "", "state": {"running": {}}, **READY}
    ],
}


async def fill(url: str, pods: dict[str, Raw], name: str = "train", phase: str = "Running") -> None:
    """A Job with pods that no scheduler places, in the given states."""
    async with Client.connect(server=url) as client:
        await client.create(JOB, job(name, [task("worker"), task("ps")]), "default")
        state = {"status": {"state": {"phase": phase}}}
        await client.patch(JOB, name, "default", state, subresource="status")
        for each, status in pods.items():
            raw = pod(each, labels={keys.JOB_NAME: name})
            raw["metadata"]["annotations"] = {keys.TASK_SPEC: each.split("-")[1]}
            raw["metadata"]["labels"][keys.JOB_NAME] = name
            raw["spec"]["schedulerName"] = "not-running"
            await client.create(POD, raw, "default")
            await client.patch(POD, each, "default", {"status": status}, subresource="status")


@pytest.fixture
def kubelets() -> Iterator[Kubelets]:
    with Server("4") as server, Kubelets(server) as found:
        yield found


def test_all_pods_in_the_order_of_the_lines(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS, "train-ps-0": ended(3)}
    waiting = {"phase": "Pending"}
    asyncio.run(fill(kubelets.server.url, pods | {"train-worker-2": waiting}))
    kubelets.logs = {
        ("train-worker-0", "main"): line(1, "begin") + line(4, "end\x1b[2J"),
        ("train-worker-1", "main"): line(2.5, "step"),
        ("train-ps-0", "main"): line(2, "serve") + line(3, "boom"),
    }
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "[train-worker-0] begin",
        "[train-ps-0] serve",
        "[train-worker-1] step",
        "[train-ps-0] boom",
        "[train-worker-0] end",
    ]
    told = ran("job", "logs", "job/train", "--failed", "--since", "90s", "--master", kubelets.url)
    assert told.out.splitlines() == ["[train-ps-0] serve", "[train-ps-0] boom"]
    assert kubelets.asked[-1][2]["sinceSeconds"] == "90"
    told = ran("job", "logs", "train", "--task", "worker", "--master", kubelets.url)
    assert "ps" not in told.out
    told = ran("job", "logs", "train", "--task", "wrker", "--master", kubelets.url)
    assert told.code == 2
    assert "has no pods" in told.err
    assert "ps, worker" in told.err


def test_what_cannot_be_read_is_said(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS}
    asyncio.run(fill(kubelets.server.url, pods))
    kubelets.logs = {("train-worker-0", "main"): line(1, "a"), ("train-worker-1", "main"): 400}
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert told.out == "[train-worker-0] a\n"
    assert told.err == "train-worker-1: container main is waiting to start\n"
    told = ran("job", "logs", "train", "--failed", "--master", kubelets.url)
    assert (told.code, told.out) == (0, "")
    assert told.err == "no container of job/train has failed\n"
    told = ran("job", "logs", "trian", "--master", kubelets.url)
    assert told.code == 2
    assert "job/trian: there is no such Job in namespace default" in told.err
    told = ran("job", "logs", "train", "--since", "soon", "--master", kubelets.url)
    assert told.code == 2
    assert "--since soon" in told.err


def test_the_rights_of_kubectl_logs_are_enough(kubelets: Kubelets) -> None:
    """Without any right on Jobs; and without that on logs one line says so."""
    asyncio.run(fill(kubelets.server.url, {"train-worker-0": ended(0)}))
    kubelets.logs = {("train-worker-0", "main"): line(1, "a")}
    kubelets.forbidden = ("/jobs/train", "/jobs")
    for further in ((), ("-f",)):
        told = ran("job", "logs", "train", *further, "--master", kubelets.url)
        assert (told.code, told.out) == (0, "[train-worker-0] a\n"), told.err
    kubelets.forbidden = ("/jobs/gone",)
    told = ran("job", "logs", "gone", "--master", kubelets.url)
    assert told.code == 2
    assert "job/gone: no pods of a Job of this name in namespace default" in told.err
    kubelets.forbidden = ("/log",)
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert told.code == 2
    assert "not allowed: pods/log is forbidden" in told.err


def test_a_job_without_pods_is_followed_with_a_note(kubelets: Kubelets) -> None:
    asyncio.run(fill(kubelets.server.url, {}, phase="Completed"))
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.out) == (0, "")
    assert told.err == "job/train has no pods; `pumice explain job train` says why\n"


def test_a_job_is_followed_to_its_end(kubelets: Kubelets) -> None:
    """Lines of a container that runs are not repeated; a pod that starts later is added."""
    asyncio.run(fill(kubelets.server.url, {"train-worker-0": RUNS}, phase="Completed"))
    kubelets.logs = {("train-worker-0", "main"): line(1, "old")}
    kubelets.following = {
        ("train-worker-0", "main"): [line(2, "new"), line(3, "newer"), line(7, "last")],
        ("train-worker-1", "main"): [line(5, "late")],
    }
    timer = threading.Timer(0.3, lambda: asyncio.run(_add(kubelets.server.url)))
    timer.start()
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    timer.join()
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert [each for each in lines if "worker-0" in each] == [
        f"[train-worker-0] {text}" for text in ("old", "new", "newer", "last")
    ]
    assert "[train-worker-1] late" in lines
    followed = [query for name, _, query in kubelets.asked if query.get("follow")]
    assert followed[0]["sinceTime"] == "2026-01-01T00:00:01Z"


async def _add(url: str) -> None:
    async with Client.connect(server=url) as client:
        raw = pod("train-worker-1", labels={keys.JOB_NAME: "train"})
        raw["metadata"]["annotations"] = {keys.TASK_SPEC: "worker"}
        await client.create(POD, raw, "default")
        await client.patch(POD, "train-worker-1", "default", {"status": RUNS}, subresource="status")


def test_too_many_logs_are_refused(kubelets: Kubelets, monkeypatch: pytest.MonkeyPatch) -> None:
    from pumice.cli.live import job_logs

    monkeypatch.setattr(job_logs, "MOST_FOLLOWED", 1)
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS}
    asyncio.run(fill(kubelets.server.url, pods))
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert told.code == 2
    assert "job/train has 2 logs, expected at most 1 to follow" in told.err


def test_explain_shows_last_lines(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(3), "train-worker-1": ended(3), "train-ps-0": ended(0)}
    asyncio.run(fill(kubelets.server.url, pods))
    kubelets.logs = {("train-worker-0", "main"): b"step 1\n  at line 3\nerror\x1b[2J\n"}
    told = ran("explain", "job/train", "--logs", "2", "--master", kubelets.url, "-o", "json")
    found = json.loads(told.out)
    assert [each["pods"] for each in found["failures"]] == [["train-worker-0", "train-worker-1"]]
    [log] = found["logs"]
    assert (log["pod"], log["lines"]) == ("train-worker-0", ["step 1", "  at line 3", "error"])
    assert kubelets.asked[-1][2]["tailLines"] == "2"
    kubelets.forbidden = ("/log",)
    told = ran("explain", "job/train", "--logs", "2", "--master", kubelets.url)
    assert told.code == 0
    assert "Not allowed to read: pods/log." in told.out
