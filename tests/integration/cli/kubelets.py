"""Logs of pods as kubelets give them, in front of an embedded server, which has none."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from pumice.api import keys
from pumice.api.kinds import JOB, POD
from pumice.cluster.client import Client
from tests.integration.cli.servers import InThread, Server, serving
from tests.kit.builders import job, pod, task

Raw = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer to one request.

    Attributes:
        chunks: Its body, in the parts in which it comes.
        status: Its HTTP status.
        broken: Whether the connection breaks behind them.
        then: What happens in the cluster before the answer ends.
    """

    chunks: tuple[bytes, ...]
    status: int = 200
    broken: bool = False
    then: Callable[[Client], Awaitable[object]] | None = None

    async def send(self, request: web.BaseRequest, url: str) -> web.StreamResponse:
        """Answer a request before the server of an address."""
        response = web.StreamResponse(status=self.status)
        response.content_type = "text/plain" if self.status == 200 else "application/json"
        await response.prepare(request)
        for chunk in self.chunks:
            await response.write(chunk)
            await asyncio.sleep(0.02)
        if self.then is not None:
            async with Client.connect(server=url) as client:
                await self.then(client)
        if self.broken and request.transport is not None:
            request.transport.abort()
        return response


class Kubelets(InThread):
    """A proxy before the embedded server that answers requests for logs itself.

    Attributes:
        url: Its address.
        logs: What is in a log by pod and container, or the code of a refusal.
        answers: Answers of a kubelet to the next requests for the log of a pod, before `logs`.
        following: What is written to those who follow it, a line in 0.2 s; then the pod ends.
        watches: Answers to the next watches of pods, before those of the server.
        asked: Pod, container and query of each request.
        forbidden: Endings of paths that may not be read.
    """

    url: str

    def __init__(self, server: Server) -> None:
        self.logs: dict[tuple[str, str], bytes | int] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.watches: list[Answer] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.forbidden: tuple[str, ...] = ()
        self.following: dict[tuple[str, str], list[bytes]] = {}
        self.server = server
        super().__init__()

    async def _begin(self, stack: contextlib.AsyncExitStack) -> None:
        self._session = await stack.enter_async_context(aiohttp.ClientSession(self.server.url))
        self.url = await serving(stack, web.Server(self._answer, handler_cancellation=True))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith(self.forbidden or ("no such path",)):
            return _refusal(403, "Forbidden", "pods/log is forbidden")
        if request.path.endswith("/log"):
            return await self._log(request)
        if "watch" in request.query and request.path.endswith("/pods") and self.watches:
            return await self.watches.pop(0).send(request, self.server.url)
        async with self._session.get(request.path_qs, timeout=aiohttp.ClientTimeout(None)) as got:
            response = web.StreamResponse(status=got.status)
            response.content_type = "application/json"
            await response.prepare(request)
            async for chunk in got.content.iter_any():
                await response.write(chunk)
            return response

    async def _log(self, request: web.BaseRequest) -> web.StreamResponse:
        name, query = request.path.split("/")[-2], dict(request.query)
        key = name, query.get("container", "")
        self.asked.append((*key, query))
        if answers := self.answers.get(name):
            return await answers.pop(0).send(request, self.server.url)
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
            await set_status(client, name, ended(0))


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


def restarted(times: int, *, waits: bool = False) -> Raw:
    """The status of a pod whose container failed and was restarted, or waits for its next start."""
    end = {"exitCode": 1, "startedAt": "2026-01-01T00:00:00Z"}
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if waits else {"running": {}}
    [status] = RUNS["containerStatuses"]
    changed = {"restartCount": times, "state": state, "lastState": {"terminated": end}}
    return RUNS | {"containerStatuses": [status | changed]}


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
            await made(client, each, status, name)


async def made(client: Client, name: str, status: Raw, of: str = "train") -> None:
    """Make a pod of a Job that no scheduler places."""
    raw = pod(name, labels={keys.JOB_NAME: of})
    raw["metadata"]["annotations"] = {keys.TASK_SPEC: name.split("-")[1]}
    raw["spec"]["schedulerName"] = "not-running"
    await client.create(POD, raw, "default")
    await set_status(client, name, status)


async def set_status(client: Client, name: str, status: Raw) -> None:
    """Write the status of a pod, as its kubelet does."""
    await client.patch(POD, name, "default", {"status": status}, subresource="status")
