"""Two replicas behind one address on the real kube-apiserver, whose reviews must not fail.

Each review is two handshakes (mutate, validate) of a Job that waits for them. The certificates last
seconds, and kube-apiserver checks them against the machine's clock: nothing about them is pretended.
"""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.cluster.client import Client
from tests.integration.certs.balancer import balancing
from tests.integration.certs.probing import expiry
from tests.integration.certs.site import Site
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane

BRISK = {
    "ca_duration": 8.0,
    "leaf_duration": 3.5,
    "renew_at": 0.5,
    "poll_seconds": 0.5,
    "settle_seconds": 1.0,
}
"""A CA signs for four seconds, a leaf is served for less than two."""


@pytest.fixture
def site(controlplane: ControlPlane, crds: None, namespace: str, tmp_path: Path) -> Iterator[Site]:
    found = Site(controlplane, namespace, tmp_path)
    yield found
    found.clear()


async def test_five_rotations_under_load_fail_no_review(site: Site, api: Client) -> None:
    with site.running(2, **BRISK) as ports:
        async with balancing(ports) as address:
            await asyncio.to_thread(site.apply, address)
            await site.until_ready(*ports)
            signers: set[bytes] = set()

            async def rotated() -> bool:
                reading = await site.reading(api)
                assert reading.problems == ()
                assert reading.bundle is not None
                signers.add(reading.bundle.current.certificate_pem)
                return len(signers) > 5

            async with site.load(api) as load:
                await until(rotated, "five rotations", 60)
            assert site.ready(*ports)
            assert load.reviews > 50
            leaves = sum(
                each.tail(10_000).count("serving a new certificate")
                for each in site.replicas.values()
            )
            assert leaves > 2 * 5


async def test_a_replica_that_was_stopped_for_longer_than_its_leaf_lasts(
    site: Site, api: Client
) -> None:
    """What waits at the door when it wakes up is served with a new certificate, not the old one."""
    slow = {**BRISK, "ca_duration": 60.0}
    with site.running(1, **slow) as (port,):
        await asyncio.to_thread(site.apply, port)
        await site.until_ready(port)
        for _ in range(2):
            ends = expiry(site.metrics[port])
            site.signal(port, signal.SIGSTOP)
            try:
                await asyncio.sleep(ends + 1 - time.time())
                waiting = [asyncio.create_task(site.review(api)) for _ in range(5)]
                await asyncio.sleep(0.5)
                assert not any(each.done() for each in waiting)
            finally:
                site.signal(port, signal.SIGCONT)
            await asyncio.gather(*waiting)
            assert expiry(site.metrics[port]) > ends
            assert site.ready(port)
