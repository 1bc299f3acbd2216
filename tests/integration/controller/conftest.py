"""A controller on the embedded API server, with simulated nodes and a scheduler that says yes to all."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import queue
from tests.kit.quick_loop import pytest_asyncio_loop_factories, quick_clock
from tests.kit.stage import quick_cluster

__all__ = ["pytest_asyncio_loop_factories", "quick_clock"]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        found.add_node("node1", cpu="64")
        found.store.create(queue("default", state=""))
        yield found


@pytest.fixture
async def stage(cluster: EmbeddedCluster, client: Client) -> AsyncIterator[ControllerStage]:
    """A stage on which a controller runs already."""
    found = ControllerStage(cluster, client)
    async with found.controller():
        yield found


@pytest.fixture
async def played(stage: ControllerStage) -> AsyncIterator[ControllerStage]:
    """The same with a scheduler that admits every group and binds every pod."""
    playing = asyncio.create_task(stage.schedule())
    yield stage
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)


@pytest.fixture
async def scheduled(cluster: EmbeddedCluster, client: Client) -> AsyncIterator[ControllerStage]:
    """A stage without a controller, on which groups are admitted and pods bound."""
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    yield stage
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
