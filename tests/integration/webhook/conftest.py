from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.integration.webhook.serving import Pair, offline, running, session


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One certificate for all tests that do not renew it."""
    return Pair(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def own_pair(tmp_path: Path) -> Pair:
    """A certificate for a test that renews it."""
    return Pair(tmp_path)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server over plain HTTP, with the queues `default` and `closed`."""
    async with running(offline()) as address:
        yield f"http://{address}"


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client for plain HTTP."""
    async with session() as found:
        yield found
