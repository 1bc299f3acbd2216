"""Both replicas are replaced, one after the other, while the real kube-apiserver goes on asking them."""

import asyncio
import base64
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from pumice.cluster.client import Client
from tests.integration.certs.balancer import balancing
from tests.integration.certs.probing import probe
from tests.integration.certs.site import Site
from tests.integration.webhook.serving import Pair
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process
from tests.support.ports import free_ports
from tests.support.webhook_canary import until_known

DRAIN_SECONDS = 5.0
ENDPOINT_SECONDS = 1.0
"""How long a Service goes on leading to a replica that has been told to stop."""


class Replicas:
    """Processes of `pumice webhook`, each with a log of its own.

    Attributes:
        endpoints: Ports that the Service leads to.
    """

    def __init__(self, site: Site, pair: Pair, folder: Path) -> None:
        self.endpoints: list[int] = []
        self._folder = folder
        self._processes: dict[int, Process] = {}
        self._numbers = itertools.count(1)
        self._command = [sys.executable, "-m", "pumice", "webhook"]
        self._command += ["--kubeconfig", str(site.kubeconfig)]
        self._command += ["--tls-cert-file", str(pair.certificate)]
        self._command += ["--tls-private-key-file", str(pair.key)]
        self._command += ["--drain-seconds", f"{DRAIN_SECONDS:g}"]

    async def add(self) -> int:
        """Start a replica; the Service leads to it once it is ready."""
        port, metrics_port = free_ports(2)
        options = ["--port", str(port), "--metrics-port", str(metrics_port)]
        name = f"replica-{next(self._numbers)}"
        replica = Process(name, [*self._command, *options], self._folder)
        self._processes[port] = replica
        await asyncio.to_thread(
            wait_until, lambda: probe(metrics_port)[0] == 200, f"{name} is ready", 40, [replica]
        )
        self.endpoints.append(port)
        return port

    async def remove(self, port: int) -> None:
        """Tell a replica to stop, as kubelet does while the Service learns of it."""
        replica = self._processes.pop(port)
        os.kill(replica.pid, signal.SIGTERM)
        await asyncio.sleep(ENDPOINT_SECONDS)
        self.endpoints.remove(port)
        assert replica.running, replica.tail()
        await asyncio.to_thread(wait_until, lambda: not replica.running, "it has ended", 40)
        assert replica._popen.returncode == 0, replica.tail()

    def end(self) -> None:
        """End those that are left."""
        for each in self._processes.values():
            each.end()


@pytest.fixture
def site(
    controlplane: ControlPlane, plane_api: Client, namespace: str, tmp_path: Path
) -> Iterator[Site]:
    """A namespace whose Jobs wait for webhooks."""
    found = Site(controlplane, namespace, tmp_path)
    yield found
    found.clear()


@pytest.fixture
async def replicas(
    site: Site, own_pair: Pair, tmp_path: Path, plane_api: Client
) -> AsyncIterator[Replicas]:
    """Two replicas behind a Service that the API server calls."""
    found = Replicas(site, own_pair, tmp_path)
    try:
        await asyncio.gather(found.add(), found.add())
        async with balancing(found.endpoints) as port:
            manifests = site.manifests(port)
            for webhook in (each for manifest in manifests for each in manifest["webhooks"]):
                bundle = base64.b64encode(own_pair.authority).decode()
                webhook["clientConfig"]["caBundle"] = bundle
            text = yaml.safe_dump_all(manifests)
            await asyncio.to_thread(site.plane.kubectl, "apply", "-f", "-", stdin=text)
            await until_known(plane_api)
            yield found
    finally:
        found.end()


async def test_a_rolling_restart_loses_no_review(
    site: Site, replicas: Replicas, plane_api: Client
) -> None:
    old = list(replicas.endpoints)
    async with site.load(plane_api, workers=5) as load:
        await asyncio.sleep(1)
        for port in old:
            await replicas.add()
            before = load.reviews
            await replicas.remove(port)
            assert load.reviews > before + 10
        await asyncio.sleep(1)
    assert not set(old) & set(replicas.endpoints)


async def test_a_replica_that_is_killed_loses_some(
    site: Site, replicas: Replicas, plane_api: Client
) -> None:
    """So the load can tell: nobody else than the replicas answers it."""
    await site.review(plane_api)
    replicas.end()
    with pytest.raises(Exception, match="failed calling webhook"):
        await site.review(plane_api)
