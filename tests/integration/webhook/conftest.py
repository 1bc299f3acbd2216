import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from pumice.api.crds import all_crds
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.webhook.serving import Pair, offline, running, session
from tests.kit import quick_loop
from tests.kit.quick_loop import quick_clock
from tests.support.controlplane.cluster import ControlPlane

__all__ = ["quick_clock"]

WAITING = (
    "test_broken_off.py",
    "test_cached_view.py",
    "test_cluster.py",
    "test_connections.py",
    "test_crowds.py",
    "test_pods_of_other_owners.py",
    "test_set_aside.py",
)
"""Files of tests that wait for timers of the loop, and for no other process."""


@pytest.hookimpl
def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Idle time passes quickly where tests wait for much of it."""
    if item.path.name in WAITING:
        return quick_loop.pytest_asyncio_loop_factories(item)
    return {"usual": asyncio.new_event_loop}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(all_crds()) as found:
        yield found


@pytest.fixture
async def api(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with Client.connect(server=cluster.url) as found:
        yield found


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One certificate for all tests that do not renew it."""
    return Pair(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def own_pair(tmp_path: Path) -> Pair:
    """A certificate for a test that renews it."""
    return Pair(tmp_path)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server over plain HTTP, with the queues `default` and `closed`."""
    async with running(offline()) as address:
        yield f"http://{address}"


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client for plain HTTP."""
    async with session() as found:
        yield found


@pytest.fixture
async def plane_api(controlplane: ControlPlane) -> AsyncIterator[Client]:
    """An administrator's session with the real control plane, our kinds in place."""
    controlplane.establish()
    async with Client.connect(controlplane.kubeconfig) as found:
        yield found


@pytest.fixture(scope="module")
def ensure_namespace(controlplane: ControlPlane) -> Iterator[Callable[[str], None]]:
    """Sees to it that a namespace is there until the last test of a module has run."""
    made: list[str] = []

    def ensure(name: str) -> None:
        if name not in ("default", *made):
            controlplane.add_namespace(name)
            made.append(name)

    yield ensure
    for name in made:
        controlplane.remove_namespace(name)
