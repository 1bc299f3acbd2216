"""An embedded cluster with Pumice's kinds, served over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from pumice.api.crds import all_crds
from pumice.embedded import EmbeddedCluster, NodeTimings


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    timings = NodeTimings(start=0.0, stop=0.0)
    async with EmbeddedCluster(all_crds(), timings=timings, bookmark_interval=0.2) as found:
        found.add_node("node1")
        yield found


@pytest.fixture
async def http(cluster: EmbeddedCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cluster.url) as session:
        yield session


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.kubeconfig(), encoding="utf-8")
    return path
