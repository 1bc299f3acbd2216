"""A controller on the embedded API server, with simulated nodes and a scheduler that says yes to all."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pumice.api.crds import all_crds
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.builders import queue
from tests.integration.controller.stage import Stage


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    timings = NodeTimings(start=0.0, stop=0.0)
    async with EmbeddedCluster(all_crds(), timings=timings) as found:
        found.add_node("node1", cpu="64")
        found.store.create(queue("default", state=""))
        yield found


@pytest.fixture
async def stage(cluster: EmbeddedCluster, client: Client) -> AsyncIterator[Stage]:
    """A stage on which a controller runs already."""
    found = Stage(cluster, client)
    async with found.controller():
        yield found


@pytest.fixture
async def played(stage: Stage) -> AsyncIterator[Stage]:
    """The same with a scheduler that admits every group and binds every pod."""
    playing = asyncio.create_task(stage.schedule())
    yield stage
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
