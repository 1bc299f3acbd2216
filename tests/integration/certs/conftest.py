import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.kit import quick_loop
from tests.kit.clocks import ManualClock
from tests.support.controlplane.cluster import ControlPlane


@pytest.hookimpl
def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Idle time passes quickly where tests wait for much of it."""
    if item.path.name == "test_set_aside.py":
        return quick_loop.pytest_asyncio_loop_factories(item)
    return {"usual": asyncio.new_event_loop}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster() as cluster, Client.connect(server=cluster.url) as connected:
        yield connected


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def crds(controlplane: ControlPlane) -> None:
    """Our kinds, in place on the real control plane."""
    controlplane.establish()


@pytest.fixture
async def api(controlplane: ControlPlane) -> AsyncIterator[Client]:
    """An administrator's session with the real control plane."""
    async with Client.connect(controlplane.kubeconfig) as found:
        yield found
