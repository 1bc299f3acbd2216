"""What the server sees of a cluster beside its queues: PodGroups, priority classes, HyperNodes."""

import asyncio
import logging
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from pumice.api import keys
from pumice.api.crds import all_crds
from pumice.api.kinds import (
    CRD,
    HYPER_NODE,
    INDEXED_JOB,
    NAMESPACE,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
)
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from pumice.webhook.server.lookup import CachedView
from tests.integration.webhook.serving import Raw
from tests.kit.builders import pod_group
from tests.kit.waiting import until

HYPER_NODES = [each for each in all_crds() if each["metadata"]["name"] == HYPER_NODE.resource]
OTHERS = [each for each in all_crds() if each not in HYPER_NODES]


@asynccontextmanager
async def seen(cluster: EmbeddedCluster) -> AsyncIterator[tuple[CachedView, Client]]:
    """A view that follows a cluster, and a client to change it."""
    async with cluster, Client.connect(server=cluster.url) as api:
        view = CachedView(api)
        following = [asyncio.create_task(cache.run()) for cache in view.caches]
        try:
            await until(lambda: view.problem is None)
            yield view, api
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def priority_class(name: str, value: int, *, default: bool = False) -> Raw:
    head = {"apiVersion": PRIORITY_CLASS.api_version, "kind": PRIORITY_CLASS.kind}
    return head | {"metadata": {"name": name}, "value": value, "globalDefault": default}


async def test_pod_groups_are_counted_as_they_come_move_and_complete() -> None:
    async with seen(EmbeddedCluster(all_crds())) as (view, api):
        assert view.knows(POD_GROUP)
        assert view.pod_groups_in("research") == 0
        for name in ("a", "b", "c"):
            await api.create(POD_GROUP, pod_group(name, queue="research"))
        await until(lambda: view.pod_groups_in("research") == 3)
        done = {"status": {"phase": "Completed"}}
        await api.patch(POD_GROUP, "a", "default", done)
        await until(lambda: view.pod_groups_in("research") == 2)
        moved = {"spec": {"queue": "other"}}
        await api.patch(POD_GROUP, "b", "default", moved)
        await until(lambda: view.pod_groups_in("other") == 1)
        await api.delete(POD_GROUP, "c", namespace="default")
        await until(lambda: view.pod_groups_in("research") == 0)
        assert view.pod_groups_in("other") == 1


async def test_priority_classes_are_seen() -> None:
    async with seen(EmbeddedCluster(all_crds())) as (view, api):
        assert view.knows(PRIORITY_CLASS)
        assert view.priority_class("system-node-critical") is not None
        assert view.default_priority_class() is None
        await api.create(PRIORITY_CLASS, priority_class("usual", 5, default=True))
        await until(view.default_priority_class)
        default = view.default_priority_class()
        assert default is not None
        assert (default.metadata.name, default.value) == ("usual", 5)
        assert "usual" in {each.metadata.name for each in view.priority_classes()}


async def test_a_cluster_without_hyper_nodes_is_no_problem(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with seen(EmbeddedCluster(OTHERS)) as (view, api):
        assert not view.knows(HYPER_NODE)
        assert (set(view.tiers()), set(view.tier_names())) == (set(), set())
        await asyncio.sleep(1.2)  # time for another attempt
        said = [each for each in caplog.records if "hypernodes" in each.message]
        assert [each.levelno for each in said] == [logging.WARNING], said

        await api.create(CRD, HYPER_NODES[0])
        await until(lambda: view.knows(HYPER_NODE))
        head = {"apiVersion": HYPER_NODE.api_version, "kind": HYPER_NODE.kind}
        member = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
        for tier, name in ((1, "rack"), (1, ""), (2, "row")):
            meta = {"metadata": {"name": f"hn-{tier}{name}"}}
            spec = {"spec": {"tier": tier, "tierName": name, "members": [member]}}
            await api.create(HYPER_NODE, head | meta | spec)
        await until(lambda: set(view.tiers()) == {1, 2})
        assert set(view.tier_names()) == {"rack", "row"}


async def test_kinds_that_are_not_watched_are_not_known() -> None:
    async with seen(EmbeddedCluster(all_crds())) as (view, _):
        assert view.knows(QUEUE)
        assert view.knows(NAMESPACE)
        assert not view.knows(CRD)


async def test_ten_thousand_pod_groups_take_little_room() -> None:
    raw = msgspec.Raw(
        msgspec.json.encode(
            pod_group("x", queue="research", phase="Running", minTaskMember={"a": 1})
        )
    )
    async with Client.connect(server="http://127.0.0.1:1") as api:
        view = CachedView(api)
        (gangs,) = [cache for cache in view.caches if cache.kind == POD_GROUP]
        assert isinstance(gangs, WatchCache)
        tracemalloc.start()
        try:
            for number in range(10_000):
                gangs.put(
                    (f"namespace-{number % 50}", f"train-{number}"), str(number), gangs.read(raw)
                )
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert view.pod_groups_in("research") == 10_000
    assert used < 10_000 * 800, f"{used / 10_000:.0f} bytes each"


@asynccontextmanager
async def full_of_jobs(count: int) -> AsyncIterator[str]:
    """An API server with many Jobs of 4.4 KB, the last of which names plugins; its URL.

    It makes each page as it is asked for it, so that it takes no room itself.
    """
    variables = [{"name": f"V{i}", "value": "x" * 40} for i in range(60)]
    container = {"name": "main", "image": "busybox", "env": variables}

    def job(number: int) -> Raw:
        named = {"annotations": {keys.PLUGINS: "pytorch"}} if number == count - 1 else {}
        template = {"metadata": named, "spec": {"containers": [container]}}
        meta = {"name": f"job-{number}", "namespace": "default", "resourceVersion": str(number + 1)}
        return {"metadata": meta, "spec": {"completions": 2, "template": template}}

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        start = int(request.query.get("continue", 0))
        end = min(count, start + int(request.query["limit"]))
        meta = {"resourceVersion": str(count), "continue": str(end) if end < count else ""}
        page = {"metadata": meta, "items": [job(number) for number in range(start, end)]}
        return web.Response(body=msgspec.json.encode(page), content_type="application/json")

    app = web.Application()
    app.router.add_get(f"/{INDEXED_JOB.collection().removeprefix('/')}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_jobs_of_others_take_no_room_not_even_while_they_are_listed() -> None:
    count = 6_000
    async with full_of_jobs(count) as url, Client.connect(server=url) as api:
        view = CachedView(api)
        (jobs,) = [cache for cache in view.caches if cache.kind == INDEXED_JOB]
        tracemalloc.start()
        try:
            following = asyncio.create_task(jobs.run())
            async with asyncio.timeout(60):
                await jobs.synced.wait()
            used, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert len(jobs) == 1
        assert view.owner((INDEXED_JOB, "default", f"job-{count - 1}")) is not None
    assert used < 4 * 2**20, f"{used / 2**20:.1f} MiB"
    assert peak < 15 * 2**20, f"{peak / 2**20:.1f} MiB, and all Jobs are {count * 4.4 / 1024:.0f}"
