"""Both replicas are replaced under load, one after the other, and no review is lost."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.builders import queue
from tests.integration.webhook.caller import Caller, Service
from tests.integration.webhook.serving import Pair, session
from tests.kit.waiting import until
from tests.support.ports import free_port

RATE = 300.0
FRESH_RATE = 20.0
DRAIN_SECONDS = 3.0
LATE = 3
"""Answers that each caller gets of a replica that has been told to stop, until the Service has learned of
that."""


@dataclass(frozen=True)
class Replica:
    """A process that serves reviews."""

    address: str
    process: "subprocess.Popen[bytes]"


class Deployment:
    """Replicas behind a Service."""

    def __init__(self, folder: Path, pair: Pair, client: aiohttp.ClientSession) -> None:
        self.service = Service()
        self.log = folder / "log"
        self._client = client
        state = folder / "state.yaml"
        state.write_text(yaml.safe_dump(queue("default")))
        self._command = [sys.executable, "-m", "pumice", "webhook", "--state", str(state)]
        self._command += ["--tls-cert-file", str(pair.certificate)]
        self._command += ["--tls-private-key-file", str(pair.key)]
        self.running: list[Replica] = []

    async def add(self) -> Replica:
        """Start a replica; the Service leads to it once it is ready."""
        replica = await asyncio.to_thread(self._start)
        await self._until_ready(replica, True)
        self.service.endpoints.append(replica.address)
        return replica

    def _start(self) -> Replica:
        port = free_port()
        options = ["--port", str(port), "--drain-seconds", str(DRAIN_SECONDS)]
        with self.log.open("ab") as log:
            process = subprocess.Popen([*self._command, *options], stderr=log)
        replica = Replica(f"127.0.0.1:{port}", process)
        self.running.append(replica)
        return replica

    async def remove(self, replica: Replica, callers: list[Caller]) -> int:
        """Tell a replica to stop, as kubelet does while the Service learns of it; its exit code."""
        before = [each.answered[replica.address] for each in callers]
        replica.process.send_signal(signal.SIGTERM)
        await until(
            lambda: all(
                each.answered[replica.address] >= count + LATE
                for each, count in zip(callers, before, strict=True)
            )
        )
        self.service.endpoints.remove(replica.address)
        await self._until_ready(replica, False)
        code = await asyncio.to_thread(replica.process.wait, 60)
        self.running.remove(replica)
        return code

    async def _until_ready(self, replica: Replica, wanted: bool) -> None:
        async def is_wanted() -> bool:
            return await self._ready(replica) == wanted

        await until(is_wanted, f"{replica.address} is {'' if wanted else 'not '}ready")

    async def _ready(self, replica: Replica) -> bool:
        assert replica.process.poll() is None, self.log.read_text()
        try:
            async with self._client.get(f"https://{replica.address}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectorError:
            return False


@pytest.fixture
async def deployment(tmp_path: Path, pair: Pair) -> AsyncIterator[Deployment]:
    """Two replicas."""
    async with session(pair.trusting()) as client:
        found = Deployment(tmp_path, pair, client)
        try:
            await asyncio.gather(found.add(), found.add())
            yield found
        finally:
            for replica in found.running:
                replica.process.kill()
                await asyncio.to_thread(replica.process.wait)


@asynccontextmanager
async def load(deployment: Deployment, pair: Pair) -> AsyncIterator[list[Caller]]:
    """Reviews all the time, from one that keeps its connections and from one that keeps none."""
    stop = asyncio.Event()
    callers = [Caller(deployment.service, pair.trusting(), idle=idle) for idle in (25, 0)]
    asking = [
        asyncio.create_task(each.load(rate, stop))
        for each, rate in zip(callers, (RATE, FRESH_RATE), strict=True)
    ]
    try:
        yield callers
    finally:
        stop.set()
        await asyncio.gather(*asking)
        for each in callers:
            await each.close()


async def answered_by(replicas: list[Replica], callers: list[Caller]) -> None:
    """Wait until each caller has had answers of each replica."""
    await until(lambda: all(each.answered[one.address] for each in callers for one in replicas))


async def test_a_rolling_restart_loses_no_review(deployment: Deployment, pair: Pair) -> None:
    old = list(deployment.running)
    async with load(deployment, pair) as callers:
        await answered_by(old, callers)
        for replica in old:
            await deployment.add()
            assert await deployment.remove(replica, callers) == 0
        await answered_by(deployment.running, callers)
    keeping, fresh = callers
    assert keeping.lost == fresh.lost == []
    assert keeping.opened < keeping.answered.total() / 2
    # Connections in use are handed over one by one, before their replica ends.
    assert all(keeping.closing[each.address] for each in old)
    assert not any(keeping.closing[each.address] for each in deployment.running)


async def test_a_replica_that_ends_at_once_would_lose_some(
    deployment: Deployment, pair: Pair
) -> None:
    """So the load can tell: a Service goes on leading to what is not there any more."""
    async with load(deployment, pair) as callers:
        await answered_by(deployment.running, callers)
        deployment.running[0].process.kill()
        await until(lambda: all(each.lost for each in callers))
