"""The balancer of the tests leaves no connection behind."""

import asyncio
from contextlib import suppress

from tests.integration.certs.balancer import balancing


async def test_an_idle_connection_is_closed_at_the_end() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while part := await reader.read(100):
                writer.write(part)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as backend:
        async with balancing([backend.sockets[0].getsockname()[1]]) as address:
            reader, writer = await asyncio.open_connection("127.0.0.1", address)
            writer.write(b"ping")
            assert await reader.read(100) == b"ping"
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                assert await reader.read(100) == b""
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
