"""What a client sends, seen, refused and held by tests."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError

MOMENT = 0.01
"""Seconds in which nothing else happens before a write is carried out; they pass quickly on the loop of `quick_loop`."""


@dataclass(frozen=True)
class Request:
    """A request without what it answers.

    Attributes:
        method: HTTP method.
        path: Path, without the query.
        body: Content.
        headers: Headers of its own.
    """

    method: str
    path: str
    body: Any
    headers: dict[str, str]

    @property
    def namespace(self) -> str:
        """The namespace of its object; empty for none."""
        _, found, rest = self.path.partition("/namespaces/")
        return rest.partition("/")[0] if found else ""

    @property
    def resource(self) -> str:
        """What it is about: `pods`, or `jobs/status`."""
        parts = self.path.split("/")[1:]
        # api/v1 or apis/GROUP/VERSION, then namespaces/NAME where there is one.
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        parts = parts[2:] if parts[0] == "namespaces" and len(parts) > 2 else parts
        return "/".join([parts[0], *parts[2:]])


@dataclass
class Requests:
    """Requests in the order in which they were sent.

    Attributes:
        sent: All of them.
        refuse: Called before each is sent; raises what the server would answer.
    """

    sent: list[Request] = field(default_factory=list)
    refuse: Callable[[Request], ApiError | None] = lambda _: None

    @property
    def writes(self) -> Counter[str]:
        """Numbers of writes, as `POST pods`."""
        return Counter(f"{r.method} {r.resource}" for r in self.sent if r.method != "GET")

    def of(self, method: str, resource: str) -> list[Request]:
        """Requests of one sort."""
        return [each for each in self.sent if (each.method, each.resource) == (method, resource)]


@asynccontextmanager
async def recorded(server: str) -> AsyncIterator[tuple[Client, Requests]]:
    """A client of an API server, and what it sends; watches are not recorded."""
    requests = Requests()
    async with Client.connect(server=server) as client:
        send = client._transport.request

        async def request(method: str, path: str, body: Any = None, **options: Any) -> bytes:
            content = msgspec.to_builtins(body) if not isinstance(body, bytes) else body
            each = Request(method, path, content, dict(options.get("headers") or {}))
            requests.sent.append(each)
            if (error := requests.refuse(each)) is not None:
                raise error
            return await send(method, path, body, **options)

        client._transport.request = request  # type: ignore[method-assign]
        yield client, requests


@asynccontextmanager
async def one_at_a_time(server: str) -> AsyncIterator[tuple[Client, list[Request]]]:
    """A client of an API server that carries out one write after the other, as one that is overloaded.

    Writes are carried out in the order in which they are sent, each when nothing else has happened for a moment. So what a write
    waits for can be counted.

    Yields:
        The client, and the writes that were carried out so far.
    """
    done: list[Request] = []
    waiting: asyncio.Queue[tuple[Request, asyncio.Future[None]]] = asyncio.Queue()

    async def carry_out() -> None:
        while True:
            request, turn = await waiting.get()
            await asyncio.sleep(MOMENT)
            if not turn.done():  # otherwise it was cancelled
                done.append(request)
                turn.set_result(None)

    async with Client.connect(server=server) as client:
        send = client._transport.request

        async def request(method: str, path: str, body: Any = None, **options: Any) -> bytes:
            if method != "GET":
                turn = asyncio.get_running_loop().create_future()
                waiting.put_nowait((Request(method, path, None, {}), turn))
                await turn
            return await send(method, path, body, **options)

        client._transport.request = request  # type: ignore[method-assign]
        carrying = asyncio.create_task(carry_out())
        yield client, done
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)
