"""An embedded API server with simulated nodes, and a client for it."""

from collections.abc import AsyncIterator

import pytest

from pumice.api.crds import all_crds
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.integration.scheduler.stage import Stage


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(all_crds(), timings=NodeTimings(start=0.0, stop=0.0)) as found:
        yield found


@pytest.fixture
def stage(cluster: EmbeddedCluster, client: Client) -> Stage:
    return Stage(cluster, client)
