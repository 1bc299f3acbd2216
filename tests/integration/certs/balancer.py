"""One address in front of several replicas, as a Service is: whole connections, one after the other."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def balancing(backends: Sequence[int], port: int = 0) -> AsyncIterator[int]:
    """Forward connections to loopback ports in turn, for as long as the block lasts; they may change.

    At the end connections that are still open are aborted, so that none outlives the event loop of a test.

    Yields:
        The port at which it listens.
    """
    turn = itertools.count()
    forwarding: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = backends[next(turn) % len(backends)]
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", backend)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_pour(reader, up_writer), _pour(up_reader, writer))
        finally:
            up_writer.transport.abort()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(forward(reader, writer))
        forwarding.add(task)
        task.add_done_callback(forwarding.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(
            0
        )  # connections that are accepted already call `connected` in this step of the loop
        for task in tuple(forwarding):
            task.cancel()
        await asyncio.gather(*forwarding, return_exceptions=True)
        await asyncio.sleep(
            0
        )  # aborted transports close their sockets in the next step of the loop


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await source.read(1 << 16):
            target.write(part)
            await target.drain()
    with suppress(ConnectionError):
        target.close()
        await target.wait_closed()
