"""A real HTTP server that speaks just enough of Kubernetes to test what talks to one.

It keeps any object at any path, counts resourceVersions, serves lists in pages and watches with
history, and fails on demand: `answer_next` puts answers before the real one, `forget_history` makes
every old resourceVersion 410, `cut_watches` breaks the open connections.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Object = dict[str, Any]


def status(code: int, reason: str, message: str = "", **details: Any) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or f"{reason} was asked for",
        "details": details,
    }


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class TinyApi:
    """The server's state, and the levers of a test."""

    url: str = ""
    requests: list[Seen] = field(default_factory=list)
    objects: dict[str, Object] = field(default_factory=dict)
    version: int = 100
    oldest: int = 0
    history: list[tuple[int, str, str, Object]] = field(default_factory=list)
    answers: list[web.Response | Exception] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _watches: set[web.StreamResponse] = field(default_factory=set)
    _muted: set[web.StreamResponse] = field(default_factory=set)
    _generation: int = 0

    def answer_next(
        self, code: int, body: Object | str, headers: dict[str, str] | None = None
    ) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.answers.append(web.Response(status=code, text=text, headers=headers))

    def drop_next(self) -> None:
        """Close the next connection without an answer."""
        self.answers.append(ConnectionResetError())

    async def put(self, collection: str, obj: Object) -> Object:
        """Create or replace an object, as if somebody else did."""
        path = f"{collection}/{obj['metadata']['name']}"
        event = "MODIFIED" if path in self.objects else "ADDED"
        return await self._record(event, collection, path, obj)

    async def remove(self, collection: str, name: str) -> None:
        path = f"{collection}/{name}"
        await self._record("DELETED", collection, path, self.objects[path])
        del self.objects[path]

    async def bookmark(self, collection: str) -> None:
        await self._record("BOOKMARK", collection, "", {"metadata": {}})

    async def garbage(self, collection: str, obj: Object) -> None:
        """Send an event whose object is what the test says."""
        await self._record("ADDED", collection, f"{collection}/{obj['metadata']['name']}", obj)

    def forget_history(self) -> None:
        self.history.clear()
        self.version += 1
        self.oldest = self.version

    async def cut_watches(self, *, hard: bool = True) -> None:
        for response in list(self._watches):
            if hard and response._req is not None and response._req.transport is not None:
                response._req.transport.abort()
        self._generation += 1
        async with self._changed:
            self._changed.notify_all()

    def mute_watches(self) -> None:
        """Send nothing more on the open watches, as behind a proxy that has lost its server."""
        self._muted |= self._watches

    @property
    def watching(self) -> int:
        return len(self._watches)

    async def _record(self, event: str, collection: str, path: str, obj: Object) -> Object:
        self.version += 1
        obj = {**obj, "metadata": {**obj.get("metadata", {}), "resourceVersion": str(self.version)}}
        if path and event != "DELETED":
            self.objects[path] = obj
        self.history.append((self.version, event, collection, obj))
        async with self._changed:
            self._changed.notify_all()
        return obj

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.requests.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(raw) if raw else None,
            )
        )
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                assert request.transport is not None
                request.transport.abort()
                raise answer
            return answer
        if request.query.get("watch"):
            return await self._watch(request)
        return await self._crud(request, json.loads(raw) if raw else None)

    async def _crud(self, request: web.Request, body: Any) -> web.Response:
        path = request.path
        if path == "/version":
            return web.json_response({"gitVersion": "v1.0.0-tiny"})
        match request.method:
            case "POST":
                if path.endswith(("/binding", "/eviction")):
                    return web.json_response(status(201, "Created"), status=201)
                if f"{path}/{body['metadata']['name']}" in self.objects:
                    return web.json_response(status(409, "AlreadyExists"), status=409)
                return web.json_response(await self.put(path, body), status=201)
            case "GET" if path in self.objects:
                return web.json_response(self.objects[path])
            case "GET" if path.rsplit("/", 1)[1] in ("leases", "pods", "queues", "nodes"):
                return self._list(request)
            case "PUT" if path in self.objects:
                given = body["metadata"].get("resourceVersion")
                if given and given != self.objects[path]["metadata"]["resourceVersion"]:
                    return web.json_response(status(409, "Conflict"), status=409)
                return web.json_response(await self.put(path.rsplit("/", 1)[0], body))
            case "DELETE" if path in self.objects:
                collection, name = path.rsplit("/", 1)
                await self.remove(collection, name)
                return web.json_response({"kind": "Status", "status": "Success"})
            case "PATCH":
                return web.json_response({"kind": "Patched", "metadata": {"name": "x"}})
        return web.json_response(status(404, "NotFound", f"{path} not found"), status=404)

    def _list(self, request: web.Request) -> web.Response:
        prefix = f"{request.path}/"
        items = [obj for path, obj in self.objects.items() if path.startswith(prefix)]
        start = int(request.query.get("continue", 0))
        end = start + int(request.query.get("limit", len(items) or 1))
        more = {"continue": str(end)} if end < len(items) else {}
        return web.json_response(
            {
                "kind": "List",
                "metadata": {"resourceVersion": str(self.version), **more},
                "items": items[start:end],
            }
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.oldest:
            event = {"type": "ERROR", "object": status(410, "Expired")}
            return web.Response(text=json.dumps(event) + "\n")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches.add(response)
        generation = self._generation
        try:
            while generation == self._generation:
                top, past = self.version, list(self.history)
                for version, event_type, collection, obj in past:
                    if response in self._muted:
                        break
                    if version > since and collection == request.path:
                        frame = json.dumps({"type": event_type, "object": obj}) + "\n"
                        await response.write(frame.encode())
                since = top
                async with self._changed:
                    if self.version == since and generation == self._generation:
                        await self._changed.wait()
        finally:
            self._watches.discard(response)
        return response


@asynccontextmanager
async def tiny_api() -> AsyncIterator[TinyApi]:
    """Serve on a free port for a `with` block."""
    api = TinyApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        await api.cut_watches()
        await runner.cleanup()
