"""HTTP as bytes, for what no HTTP client would send."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

_STATUS = re.compile(rb"HTTP/\d\.\d (\d{3}) ")
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")


@dataclass(frozen=True)
class Reply:
    """A response.

    Attributes:
        status: HTTP status.
        head: Status line and headers.
        body: The rest; less than was announced where the connection ended.
    """

    status: int
    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        """Whether it is the last of its connection."""
        return b"connection: close" in self.head.lower() or self.head.startswith(b"HTTP/1.0")


def post(path: str, body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    """A POST of JSON, as bytes."""
    size = len(body) if length is None else length
    lines = (
        f"POST {path} HTTP/1.1".encode(),
        b"Host: webhook",
        b"Content-Type: application/json",
        *headers,
        b"Content-Length: %d" % size,
    )
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def talk(
    address: str,
    parts: Sequence[bytes],
    *,
    replies: int | None = None,
    half_close: bool = False,
    tls: ssl.SSLContext | None = None,
    seconds: float = 60.0,
) -> list[Reply]:
    """Send bytes as they are, and read what comes back.

    Args:
        address: Host and port.
        parts: Sent one after the other, with a moment between them.
        replies: How many to read; all until the connection ends when None.
        half_close: Whether to send no more after that and say so.
        tls: What to trust; plain HTTP when None.
        seconds: How long to wait for the end.

    Raises:
        TimeoutError: It did not come.
    """
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    received = b""
    try:
        async with asyncio.timeout(seconds):
            with suppress(OSError):  # an answer may end what is still being sent
                for number, part in enumerate(parts):
                    if number:
                        await asyncio.sleep(0.005)
                    if writer.is_closing():  # uvloop raises no OSError there
                        break
                    writer.write(part)
                    await writer.drain()
                if half_close and not writer.is_closing():
                    writer.write_eof()
            with suppress(ConnectionError):
                while replies is None or len(_replies(received)) < replies:
                    if not (part := await reader.read(1 << 16)):
                        break
                    received += part
    finally:
        writer.transport.abort()  # whatever the other side is still waiting for
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
    return _replies(received)


@asynccontextmanager
async def connected(
    address: str, sent: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[asyncio.StreamReader]:
    """A client that has sent something and stays."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(sent)
    await writer.drain()
    try:
        yield reader
    finally:
        writer.transport.abort()


def _replies(received: bytes) -> list[Reply]:
    """Whole responses among bytes, without interim ones."""
    found = []
    while (end := received.find(b"\r\n\r\n")) >= 0:
        head = received[: end + 2]
        status = _STATUS.match(head)
        assert status is not None, f"no response: {received[:200]!r}"
        length = _LENGTH.search(head)
        rest = end + 4 + (int(length[1]) if length is not None else 0)
        if len(received) < rest:
            break
        if int(status[1]) >= 200:
            found.append(Reply(int(status[1]), head, received[end + 4 : rest]))
        received = received[rest:]
    return found
