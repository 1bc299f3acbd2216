"""A client of the embedded API server; which server that is, each folder says."""

from collections.abc import AsyncIterator

import pytest

from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with Client.connect(server=cluster.url) as found:
        yield found
