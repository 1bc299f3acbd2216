"""A client that calls a webhook as kube-apiserver does, behind a Service.

It speaks HTTP/1.1 over TLS, keeps up to 25 idle connections and takes the one used last first, drops a
connection that it is told will close or that it sees closed, and tries nothing a second time. Which
replica a connection leads to is decided when it is opened, as kube-proxy does it.
"""

import asyncio
import itertools
import json
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from tests.integration.webhook.raw_http import post
from tests.kit.builders import job
from tests.unit.webhook.reviewing import request, review

IDLE = 25
"""Connections that kube-apiserver keeps for a host."""

BURSTS = (1, 1, 2, 1, 1, 12, 1, 3, 1, 20)
"""How many reviews come at once, in turn; a Deployment or a queue of Jobs sends many."""

MOST_AT_ONCE = IDLE
"""Reviews that wait for their answer; kube-apiserver bounds the requests that it works on, too. With
more of them than idle connections, a machine that is too busy would open one for each review."""

TIMEOUT_SECONDS = 10.0
PATH = "/jobs/validate"


class Service:
    """Addresses that are used in turn."""

    def __init__(self) -> None:
        """Begin with none."""
        self.endpoints: list[str] = []
        self._turns = itertools.count()

    def pick(self) -> str:
        """The next one."""
        return self.endpoints[next(self._turns) % len(self.endpoints)]


@dataclass(frozen=True)
class _Link:
    address: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, body: bytes) -> tuple[bytes, bytes]:
        """Head and body of the response."""
        self.writer.write(post(f"{PATH}?timeout={TIMEOUT_SECONDS:g}s", body))
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        (length,) = [line for line in lines if line.startswith(b"content-length:")]
        return head, await self.reader.readexactly(int(length.partition(b":")[2]))

    async def close(self) -> None:
        """End it."""
        self.writer.transport.abort()
        with suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()


class Caller:
    """Calls a webhook.

    Attributes:
        answered: How many reviews each address answered.
        closing: How many of these answers asked for the end of the connection.
        opened: How many connections were opened.
        lost: Why reviews got no proper answer.
        slowest: Seconds of the slowest answer.
    """

    def __init__(self, service: Service, trusting: ssl.SSLContext, *, idle: int = IDLE) -> None:
        """Call a service.

        Args:
            service: Where replicas are.
            trusting: What to trust.
            idle: How many idle connections to keep.
        """
        self.answered = Counter[str]()
        self.closing = Counter[str]()
        self.opened = 0
        self.lost: list[str] = []
        self.slowest = 0.0
        self._service = service
        self._trusting = trusting
        self._idle: list[_Link] = []
        self._most_idle = idle
        self._numbers = itertools.count()
        self._asking: set[asyncio.Task[None]] = set()

    async def load(self, rate: float, stop: asyncio.Event) -> None:
        """Ask so many reviews a second, whether or not earlier ones are answered, until told to."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        for burst in itertools.cycle(BURSTS):
            if stop.is_set():
                break
            for _ in range(min(burst, MOST_AT_ONCE - len(self._asking))):
                self.start()
            # On a machine that is too busy there are fewer reviews, instead of ever more that wait.
            due = max(due, loop.time() - 0.1) + burst / rate
            if (early := due - loop.time()) > 0:
                await asyncio.sleep(early)
        await self.finish()

    def start(self) -> None:
        """Ask for one review."""
        task = asyncio.create_task(self._ask(f"review-{next(self._numbers)}"))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def finish(self) -> None:
        """Wait for all answers."""
        while self._asking:
            await asyncio.gather(*self._asking)

    async def close(self) -> None:
        """Drop all connections."""
        while self._idle:
            await self._idle.pop().close()

    async def _ask(self, uid: str) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        address = "nowhere"
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                link = self._from_pool() or await self._open()
                address = link.address
                await self._answer(link, uid)
        except Exception as error:
            self.lost.append(f"{uid} to {address}: {error!r}")
        self.slowest = max(self.slowest, loop.time() - started)

    async def _answer(self, link: _Link, uid: str) -> None:
        reusable = False
        try:
            head, answer = await link.ask(review(request(PATH, job()) | {"uid": uid}))
            assert head.startswith(b"HTTP/1.1 200 "), head
            assert json.loads(answer)["response"] == {"uid": uid, "allowed": True}, answer
            self.answered[link.address] += 1
            reusable = b"\r\nconnection: close\r\n" not in head.lower()
            self.closing[link.address] += not reusable
        finally:
            if reusable and len(self._idle) < self._most_idle:
                self._idle.append(link)
            else:
                await link.close()

    def _from_pool(self) -> _Link | None:
        while self._idle:
            link = self._idle.pop()
            if not link.reader.at_eof():
                return link
            link.writer.transport.abort()
        return None

    async def _open(self) -> _Link:
        address = self._service.pick()
        host, port = address.split(":")
        self.opened += 1
        return _Link(address, *await asyncio.open_connection(host, int(port), ssl=self._trusting))
