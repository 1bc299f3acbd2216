from collections.abc import AsyncIterator

import pytest

from pumice.cluster.client import Client
from pumice.cluster.embedded import EmbeddedCluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(history=20, bookmark_interval=0.1) as running:
        yield running


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with Client.connect(server=cluster.url) as connected:
        yield connected
