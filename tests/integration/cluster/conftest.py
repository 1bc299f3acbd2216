from collections.abc import AsyncIterator

import pytest

from pumice.embedded import EmbeddedCluster
from tests.kit.quick_loop import pytest_asyncio_loop_factories, quick_clock, wall

__all__ = ["pytest_asyncio_loop_factories", "quick_clock"]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(history=20, bookmark_interval=0.1, clock=wall) as running:
        yield running
