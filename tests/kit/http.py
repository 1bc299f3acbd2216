"""An HTTP server of a test, which leaves no connection behind.

aiohttp's own runners close connections and do not wait. A TLS connection closes when its client has answered, which a busy
client does late, or never: what is open when the event loop of a test ends is a warning, and so a failure, of a later test.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pumice.serving.connections import HttpLimits
from pumice.serving.http_server import Handler, HttpServer


@asynccontextmanager
async def serving(answer: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer all requests on a free port of loopback for as long as the block lasts.

    Yields:
        The port.
    """
    server = HttpServer(answer, HttpLimits())
    await server.open("127.0.0.1", 0, tls)
    try:
        yield server.port
    finally:
        await server.close(0.0)
