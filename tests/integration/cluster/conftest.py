from collections.abc import AsyncIterator

import pytest

from pumice.embedded import EmbeddedCluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(history=20, bookmark_interval=0.1) as running:
        yield running
