"""Replicas that start at the same moment, on the real kube-apiserver, end with the same authorities."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.api.kinds import SECRET
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.certs.verification import refusal
from pumice.cluster.client import Client
from tests.integration.certs.site import SECRET_NAME, Site
from tests.support.controlplane.cluster import ControlPlane


@pytest.fixture
def site(controlplane: ControlPlane, crds: None, namespace: str, tmp_path: Path) -> Iterator[Site]:
    found = Site(controlplane, namespace, tmp_path)
    found.apply(9)
    yield found
    found.clear()


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("there", [False, True], ids=["no Secret", "an empty Secret"])
async def test_replicas_that_start_at_once_agree(
    site: Site, api: Client, count: int, there: bool
) -> None:
    if there:
        meta = {"name": SECRET_NAME, "namespace": site.namespace}
        await api.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    settings = CertSettings(**site.certificates())
    async with Client.connect(site.kubeconfig) as client:
        keepers = [CertificateManager(client, settings) for _ in range(count)]
        await asyncio.gather(*(each.look() for each in keepers))
        # Whoever looked first may have injected before the last one did; a second look is the next poll.
        await asyncio.gather(*(each.look() for each in keepers))
    assert await site.whole(api)
    reading = await site.reading(api)
    assert reading.bundle is not None
    for each in keepers:
        assert each.bundle is not None
        assert each.bundle.trust == reading.bundle.trust
        assert each.problem is None
        assert refusal(each.serving.context, reading.bundle.trust, "127.0.0.1") is None
    assert len({each.serving.chain for each in keepers}) == count, "each has a leaf of its own"
