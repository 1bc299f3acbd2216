"""Watch caches, leader election and events against the embedded API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, EVENT, LEASE, NODE, POD
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.client import Client, Object
from pumice.cluster.clock import Backoff
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.leader import LeaderElection, LeaseTimes
from pumice.embedded import EmbeddedCluster
from tests.kit.builders import bare_pod
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until


@asynccontextmanager
async def running(*caches: WatchCache[Any]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(cache.run()) for cache in caches]
    try:
        async with asyncio.timeout(60):
            await wait_synced(*caches)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_pods_and_nodes_are_followed(client: Client, cluster: EmbeddedCluster) -> None:
    cluster.add_node("n1")
    pods, nodes = WatchCache(client, POD, Pod), WatchCache(client, NODE, Node)
    pods.index("node", lambda each: [each.spec.node_name or ""])
    async with running(pods, nodes):
        assert nodes.get("n1") is not None
        for number in range(20):
            await client.create(POD, bare_pod(f"p{number}"))
        await until(lambda: len(pods) == 20)
        await client.bind("default", "p7", "n1")
        await until(lambda: pods.indexed("node", "n1"))
        assert [each.metadata.name for each in pods.indexed("node", "n1")] == ["p7"]
        await client.delete(POD, "p7", "default", grace=0)
        await until(lambda: not pods.indexed("node", "n1"))


async def test_bookmarks_keep_a_quiet_cache_from_falling_behind(client: Client) -> None:
    quiet = WatchCache(client, NODE, Node)
    async with running(quiet):
        before = int(quiet.reflector.resource_version)
        for number in range(80):  # more than the server remembers
            await client.create(
                CONFIG_MAP,
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": f"c{number}", "namespace": "default"},
                },
            )
        await until(lambda: int(quiet.reflector.resource_version) > before + 70)
        await until(lambda: quiet.reflector.age < 1)


async def test_a_cache_that_fell_behind_lists_anew(client: Client) -> None:
    cache = WatchCache(client, CONFIG_MAP, dict[str, Any], backoff=Backoff(base=0.01, cap=0.05))
    cache.reflector.watch_seconds = 1
    changes: list[tuple[str, str]] = []
    cache.subscribe(
        lambda old, new: changes.append(
            ("DELETED" if new is None else "ADDED", (new or old or {})["metadata"]["name"])
        )
    )

    def config_map(name: str) -> Object:
        meta = {"name": name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    await client.create(CONFIG_MAP, config_map("old"))
    task = asyncio.create_task(cache.run())
    await cache.synced.wait()
    task.cancel()  # as if the process had been paused
    await asyncio.gather(task, return_exceptions=True)
    await client.delete(CONFIG_MAP, "old", "default")
    for number in range(80):
        await client.create(CONFIG_MAP, config_map(f"c{number}"))
    async with running(cache):
        await until(lambda: len(cache) == 80)
    assert cache.reflector.relists == 2
    assert changes[:2] == [("ADDED", "old"), ("DELETED", "old")]


async def test_leadership_passes_on(client: Client) -> None:
    log: list[str] = []
    clock = ManualClock()

    async def lead(name: str) -> None:
        async def work() -> None:
            log.append(name)
            await asyncio.Event().wait()

        election = LeaderElection(
            client,
            "l",
            "default",
            name,
            times=LeaseTimes(lease_duration=10.0, renew_deadline=6.0, retry_period=1.0),
            clock=clock,
        )
        try:
            await election.run(work)
        finally:
            await election.release()

    first = asyncio.create_task(lead("first"))
    await until(lambda: log == ["first"])
    second = asyncio.create_task(lead("second"))
    for _ in range(15):  # for longer than a lease that nobody renews
        await until(lambda: clock.sleeping == 2)
        await clock.advance(1.0)
    await until(lambda: clock.sleeping == 2)
    assert log == ["first"]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await clock.advance(1.0)
    await until(lambda: log == ["first", "second"])
    lease = await client.get(LEASE, "l", "default")
    assert lease["spec"]["holderIdentity"] == "second"
    assert lease["spec"]["leaseTransitions"] == 1
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


@pytest.mark.parametrize("namespace", ["default", ""])
async def test_events_are_written_and_counted(client: Client, namespace: str) -> None:
    dropped: list[str] = []
    recorder = EventRecorder(client, "pumice-test", instance="here", on_drop=dropped.append)
    about = Reference(POD if namespace else NODE, "thing", namespace, "u-1")
    for _ in range(3):
        recorder.record(about, "Warning", "Waiting", "for room")
        await recorder.flush()
    listed = await client.list(EVENT, "default", field_selector="involvedObject.name=thing")
    assert [(item["reason"], item["count"]) for item in listed["items"]] == [("Waiting", 3)]
    assert not dropped
