"""The server of the page: a path is a view, as HTML or with `?format=json` as data; `/events` says when to read it again."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from aiohttp import web

from pumice.api.meta import format_time
from pumice.serving.connections import HttpLimits
from pumice.serving.http_server import JSON, SERVER, HttpError, HttpServer
from pumice.web.access import HEADERS, PageAccess
from pumice.web.pages import Commands, Pages, filtered, taken

Data = dict[str, Any]

_HOST = "127.0.0.1"
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HTML = {"Content-Type": "text/html; charset=utf-8"}
_STREAM = {"Content-Type": "text/event-stream", "Server": SERVER}

_FIRST_SECONDS = 60.0
"""How long a program waits for data while the cluster is read."""
_PROGRESS_SECONDS = 1.0
"""How long a person waits before the progress is shown."""
_BEAT_SECONDS = 10.0
"""How often a stream of events without news gets a comment, so that both sides find out that the other one is gone."""
_LINES = 1000
"""The most lines of a log."""
_CLOSE_SECONDS = 2.0


class ViewSource(Protocol):
    """Where the data of the views comes from; the keys are those of `pumice explain` and `pumice job`."""

    @property
    def version(self) -> int:
        """Grows whenever a view may have changed."""

    @property
    def loading(self) -> list[str]:
        """What is not read yet."""

    @property
    def lost(self) -> float | None:
        """Since when the API server does not answer, UNIX seconds; None while it does."""

    @property
    def namespace(self) -> str | None:
        """The only namespace that is shown; None for all."""

    async def newer(self, version: int) -> int:
        """Wait for a later version."""

    def waiting(self) -> Data:
        """The gangs that wait."""

    def queues(self) -> Data:
        """The queues."""

    def nodes(self) -> Data:
        """The nodes."""

    def jobs(self) -> Data:
        """The Jobs."""

    async def gang(
        self, namespace: str, name: str, *, pod: str = "", lines: int = 0, wait: bool = False
    ) -> Data | None:
        """One gang; None if there is none of that name."""


class WebServer:
    """Serves the views of a source to the user who knows the secret.

    Attributes:
        address: Where the page is, with the secret, once the server is open.
    """

    def __init__(self, source: ViewSource, commands: Commands) -> None:
        """Describe a server.

        Args:
            source: Where the data comes from.
            commands: How the user's commands name the cluster.
        """
        self.address = ""
        self._source = source
        self._access = PageAccess()
        self._pages = Pages(commands)
        self._closing = asyncio.Event()
        self._server = HttpServer(self._answer, HttpLimits(connections=200))

    async def open(self, port: int) -> None:
        """Listen on loopback, on a free port if it is 0.

        Raises:
            OSError: The port is taken.
        """
        await self._server.open(_HOST, port)
        self.address = self._access.address(self._server.port)

    async def close(self) -> None:
        """End all streams of events, and all connections."""
        self._closing.set()
        await self._server.close(_CLOSE_SECONDS)

    # -- answers -------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = self._access.check(request, self._server.port)
            if answer is None:
                if request.path == "/events":
                    return await self._stream(request)
                answer = await self._view(request)
        except HttpError as error:
            answer = error.response()
            if "text/html" in request.headers.get("Accept", ""):
                body = self._pages.error(error.code, error.message)
                answer = web.Response(
                    status=error.code, body=body, headers={**error.headers, **_HTML}
                )
        answer.headers.update(HEADERS)
        return answer

    async def _view(self, request: web.BaseRequest) -> web.Response:
        parts = [unquote(each) for each in request.rel_url.raw_path.split("/")[1:]]
        query = {key: value for key, value in request.query.items() if value}
        match parts:
            case [""]:
                return web.Response(status=303, headers={"Location": "/waiting"})
            case ["static", name]:
                return _file(name)
            case ["favicon.ico"]:
                return web.Response(status=204)
            case [("waiting" | "queues" | "nodes" | "jobs") as name]:
                pass
            case ["gangs", _, _]:
                name = "gang"
            case _:
                raise HttpError(404, f"{request.path}: there is no such page")
        form = query.pop("format", "html")
        if form not in ("html", "json"):
            raise HttpError(400, f"format={form}: expected html or json")
        if wrong := next((key for key in query if key not in taken(name)), None):
            known = ", ".join(taken(name))
            raise HttpError(400, f"{wrong}=: {request.path} takes {known}, and format")
        with suppress(TimeoutError):
            patience = _FIRST_SECONDS if form == "json" else _PROGRESS_SECONDS
            await asyncio.wait_for(self._loaded(), patience)
        lost = self._source.lost
        state: Data = {"unreachableSince": None if lost is None else format_time(lost)}
        if loading := self._source.loading:
            if form == "json":
                raise HttpError(503, f"not read yet: {', '.join(loading)}", {"Retry-After": "1"})
            return _html(self._pages.loading(name, loading, state))
        data = await self._data(name, parts, query, wait=form == "json")
        if form == "json":
            body = msgspec.json.encode(data | state, enc_hook=str)
            return web.Response(body=body, headers=JSON)
        version, namespace = self._source.version, self._source.namespace
        shown = state | {"version": version, "namespace": namespace, "now": time.time()}
        return _html(self._pages.view(name, data, query, shown))

    async def _data(
        self, name: str, parts: list[str], query: dict[str, str], *, wait: bool
    ) -> Data:
        source = self._source
        if name != "gang":
            views = {
                "waiting": source.waiting,
                "queues": source.queues,
                "nodes": source.nodes,
                "jobs": source.jobs,
            }
            return filtered(name, views[name](), query)
        _, namespace, gang = parts
        lines = query.get("logs", "0")
        is_short = len(lines) <= len(str(_LINES)) and lines.isascii() and lines.isdigit()
        if not is_short or int(lines) > _LINES:
            raise HttpError(400, f"logs={lines[:20]}: expected a number of lines, at most {_LINES}")
        pod = query.get("pod", "")
        found = await source.gang(namespace, gang, pod=pod, lines=int(lines), wait=wait)
        if found is None:
            raise HttpError(
                404, f"there is no gang or Job {gang} in namespace {namespace} that you may read"
            )
        return found

    async def _loaded(self) -> None:
        version = -1
        while self._source.loading:
            version = await self._source.newer(version)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Say that there is something new, until the browser or the server closes."""
        answer = web.StreamResponse(headers={**_STREAM, **HEADERS})
        source, closing = self._source, asyncio.ensure_future(self._closing.wait())
        newer: asyncio.Future[int] | None = None
        version = source.version
        with suppress(ConnectionError):
            await answer.prepare(request)
            await answer.write(b"retry: 2000\n\n")
            while not closing.done():
                newer = newer or asyncio.ensure_future(source.newer(version))
                waited: list[asyncio.Future[Any]] = [newer, closing]
                await asyncio.wait(
                    waited, timeout=_BEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if newer.done():
                    version, newer = newer.result(), None
                    await answer.write(f"event: change\ndata: {version}\n\n".encode())
                else:
                    await answer.write(b": still here\n\n")
        for each in (closing, newer):
            if each is not None:
                each.cancel()
        return answer


def _html(body: bytes) -> web.Response:
    return web.Response(body=body, headers=_HTML)


def _file(name: str) -> web.Response:
    known = {each.name: each for each in _STATIC.iterdir()}
    file = known.get(name)
    if file is None or file.suffix not in _TYPES:
        raise HttpError(404, f"/static/{name}: there is no such file")
    return web.Response(body=file.read_bytes(), headers={"Content-Type": _TYPES[file.suffix]})
