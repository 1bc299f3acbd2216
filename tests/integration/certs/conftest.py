from collections.abc import AsyncIterator

import pytest

from pumice.cluster.client import Client
from pumice.cluster.embedded import EmbeddedCluster
from tests.unit.cluster.clocks import ManualClock


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster() as cluster, Client.connect(server=cluster.url) as connected:
        yield connected


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
