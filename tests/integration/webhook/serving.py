"""A webhook server on real sockets, and what an API server would send it."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from pumice.certs.authority import Authority, generate_key
from pumice.cluster.lifecycle import run_until_stopped
from pumice.plugins import builtin
from pumice.webhook.server import ServerSettings, StateSource, WebhookWorker
from pumice.webhook.view import AdmissionView, Snapshot
from tests.kit.builders import queue

Raw = dict[str, Any]

QUICK = ServerSettings(
    drain_seconds=0.0, shutdown_seconds=2.0, idle_seconds=0.0, lookup_seconds=30.0
)
STATE = Snapshot.of([queue("default"), queue("closed", state="Closed")])
HOUR = 3600.0


class Pair:
    """A certificate and its key in files, and clients that trust their authority."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        now = time.time()
        self._authority = Authority.create(generate_key(), now - HOUR, now + 24 * HOUR)
        self.renew()

    def renew(self, seconds: float = HOUR) -> None:
        """Write another certificate of the same authority."""
        now = time.time()
        names, addresses = ["localhost"], ["127.0.0.1"]
        leaf = self._authority.issue(generate_key(), names, addresses, now - HOUR, now + seconds)
        self.certificate.write_bytes(leaf.certificate_pem)
        self.key.write_bytes(leaf.key_pem)

    @property
    def authority(self) -> bytes:
        """The authority's certificate as PEM."""
        return self._authority.certificate_pem

    def trusting(self) -> ssl.SSLContext:
        """What a client that trusts the authority connects with."""
        return ssl.create_default_context(cadata=self._authority.certificate_pem.decode())


def offline(view: AdmissionView = STATE, **options: Any) -> WebhookWorker:
    """A worker over a view."""
    return WebhookWorker(
        StateSource(view), builtin(), settings=options.pop("settings", QUICK), **options
    )


@asynccontextmanager
async def running(worker: WebhookWorker, *, only_ports: bool = False) -> AsyncIterator[str]:
    """Run a worker for as long as the block lasts.

    Args:
        worker: What to run.
        only_ports: Leave out caches and certificates.

    Yields:
        The URL at which it answers.
    """
    stop = asyncio.Event()
    tasks = worker.tasks()[-1:] if only_ports else worker.tasks()
    running = asyncio.create_task(run_until_stopped(tasks, stop=stop, signals=()))
    started = asyncio.create_task(worker.listener.started.wait())
    await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        started.cancel()
        running.result()
    try:
        yield f"127.0.0.1:{worker.listener.port}"
    finally:
        stop.set()
        await running


@asynccontextmanager
async def session(trusting: ssl.SSLContext | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client; without a context it trusts nobody and is for plain HTTP."""
    connector = aiohttp.TCPConnector(ssl=trusting if trusting is not None else True)
    async with aiohttp.ClientSession(connector=connector) as found:
        yield found
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # aiohttp closes TLS connections in the next round of the loop
