import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pumice.api.kinds import POD
from pumice.certs.authority import Authority, generate_key
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from tests.kit.clocks import FastClock
from tests.kit.quick_loop import pytest_asyncio_loop_factories, quick_clock
from tests.unit.cluster.things import Thing
from tests.unit.cluster.tiny import TinyApi, tiny_api

__all__ = ["pytest_asyncio_loop_factories", "quick_clock"]


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with tiny_api() as served:
        yield served


@pytest.fixture
def fast() -> FastClock:
    return FastClock()


@pytest.fixture
async def client(api: TinyApi, fast: FastClock) -> AsyncIterator[Client]:
    async with Client.connect(server=api.url, clock=fast) as connected:
        yield connected


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes a kubeconfig."""
    return tmp_path / "config"


@pytest.fixture
def ca_pem() -> bytes:
    now = time.time()
    return Authority.create(generate_key(), now - 60, now + 3600).certificate_pem


@pytest.fixture
def cache(client: Client, fast: FastClock) -> WatchCache[Thing]:
    return WatchCache(client, POD, Thing, clock=fast)
