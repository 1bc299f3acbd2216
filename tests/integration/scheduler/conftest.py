"""An embedded API server with simulated nodes, and a client for it."""

from collections.abc import AsyncIterator

import pytest

from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.scheduler.hooked import Hooked
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.quick_loop import pytest_asyncio_loop_factories, quick_clock
from tests.kit.stage import quick_cluster

__all__ = ["pytest_asyncio_loop_factories", "quick_clock"]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        yield found


@pytest.fixture
def stage(cluster: EmbeddedCluster, client: Client) -> SchedulerStage:
    return SchedulerStage(cluster, client)


@pytest.fixture
async def hooked(stage: SchedulerStage) -> AsyncIterator[Hooked]:
    client = Hooked(stage)
    yield client
    await client.close()
