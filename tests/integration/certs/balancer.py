"""One address in front of several replicas, as a Service is: whole connections, one after the other."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

__all__ = ["balancing"]


@asynccontextmanager
async def balancing(backends: Sequence[int], port: int = 0) -> AsyncIterator[int]:
    """Forward connections to loopback ports in turn, for as long as the block lasts; they may change.

    Yields:
        The port at which it listens.
    """
    turn = itertools.count()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = backends[next(turn) % len(backends)]
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", backend)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pour(reader, up_writer), _pour(up_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await source.read(1 << 16):
            target.write(part)
            await target.drain()
    with suppress(ConnectionError):
        target.close()
        await target.wait_closed()
