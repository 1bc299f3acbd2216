"""How a watch cache makes sure that it shows what the server has now."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.cluster.cache import WatchCache, is_from_backup
from pumice.cluster.client import Client
from pumice.cluster.collection import Collection
from pumice.cluster.errors import Forbidden
from tests.kit.clocks import FastClock, ManualClock
from tests.kit.waiting import until
from tests.unit.cluster.things import PODS, Thing, running, sizes, thing, what_changed
from tests.unit.cluster.tiny import TinyApi, status


async def caught_up(cache: WatchCache[Any]) -> None:
    async with asyncio.timeout(60):
        await cache.reflector.catch_up()


async def test_catching_up_needs_nothing_where_the_picture_is_current(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    async with running(cache):
        await caught_up(cache)
    assert cache.reflector.relists == 1


async def test_an_outage_while_it_catches_up_is_logged_when_it_begins_and_when_it_is_over(
    cache: WatchCache[Thing], api: TinyApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pumice.cluster.reflector")
    async with running(cache):
        await until(lambda: api.watching)
        for _ in range(4):
            api.answer_next(403, status(403, "Forbidden", "not yet"))
        await caught_up(cache)
        await caught_up(cache)
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"]
    assert "not yet; trying again" in caplog.messages[0]
    assert caplog.messages[1].endswith("known at attempt 5")


async def test_a_small_quiet_kind_catches_up_by_a_list(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    await api.put(PODS, thing("a"))
    async with running(cache):
        await api.put("/api/v1/nodes", thing("other"))
        await caught_up(cache)
        assert cache.reflector.relists == 2
        assert int(cache.reflector.resource_version) == api.version
        await api.put(PODS, thing("b"))
        await until(lambda: set(sizes(cache)) == {"a", "b"})


@asynccontextmanager
async def behind(
    client: Client, fast: FastClock, api: TinyApi
) -> AsyncIterator[tuple[WatchCache[Thing], asyncio.Task[None]]]:
    """A cache of more objects than a page has, and how it catches up: it has begun a short watch."""
    cache = WatchCache(client, POD, Thing, clock=fast)
    cache.reflector.page_size = 1
    await api.put(PODS, thing("a"))
    await api.put(PODS, thing("b"))
    async with running(cache):
        await until(lambda: api.watching)
        await api.put("/api/v1/nodes", thing("other"))
        waiting = asyncio.create_task(caught_up(cache))
        await until(lambda: any(each.query.get("timeoutSeconds") == "3" for each in api.requests))
        yield cache, waiting


async def test_catching_up_while_another_does_takes_no_longer(
    cache: WatchCache[Thing], api: TinyApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a leader does that has lost its lease and gets it back at once."""
    reflector, read, go_on = cache.reflector, asyncio.Event(), asyncio.Event()
    read_list = reflector._read_list

    async def slowly(limit: int) -> Any:
        found = await read_list(limit)
        read.set()
        await go_on.wait()
        return found

    async with running(cache):
        monkeypatch.setattr(reflector, "_read_list", slowly)
        await api.put("/api/v1/nodes", thing("other"))
        first = asyncio.create_task(reflector.catch_up())
        await read.wait()
        await api.put("/api/v1/nodes", thing("another"))
        second = asyncio.create_task(reflector.catch_up())
        await until(lambda: len(reflector._awaited) == 2)
        go_on.set()
        async with asyncio.timeout(5):
            await asyncio.gather(first, second)
    assert int(cache.reflector.resource_version) == api.version


async def test_a_large_quiet_kind_catches_up_by_the_bookmark_of_a_short_watch(
    client: Client, fast: FastClock, api: TinyApi
) -> None:
    async with behind(client, fast, api) as (cache, waiting):
        await api.bookmark(PODS)
        await waiting
        assert cache.reflector.relists == 1


async def test_without_a_bookmark_a_large_kind_is_listed(
    client: Client, fast: FastClock, api: TinyApi
) -> None:
    async with behind(client, fast, api) as (cache, waiting):
        await until(lambda: api.watching)
        await api.cut_watches(hard=False)
        await waiting
        assert cache.reflector.relists == 2


async def test_catching_up_replaces_a_silent_watch(cache: WatchCache[Thing], api: TinyApi) -> None:
    await api.put(PODS, thing("a"))
    async with running(cache):
        await until(lambda: api.watching)
        api.mute_watches()
        await api.put(PODS, thing("a", 2))
        await api.put(PODS, thing("b", 3))
        await caught_up(cache)
        assert sizes(cache) == {"a": 2, "b": 3}


async def test_catching_up_ends_the_delay_before_the_next_attempt(
    client: Client, api: TinyApi
) -> None:
    """As after an outage, when the server answers again and the delay has grown to half a minute."""
    clock = ManualClock()
    cache = WatchCache(client, POD, Thing, clock=clock)
    api.answer_next(403, status(403, "Forbidden"))
    watching = asyncio.create_task(cache.run())
    await until(lambda: clock.sleeping)
    await caught_up(cache)
    assert int(cache.reflector.resource_version) == api.version
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_a_delay_that_begins_while_somebody_catches_up_is_short(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when an API server that is starting answers the one request and not yet the other."""
    reflector, waits, go_on = cache.reflector, asyncio.Event(), asyncio.Event()
    read_list = reflector._read_list

    async def refused(limit: int) -> Any:
        if len(fast.slept) == 6:
            waits.set()
            await go_on.wait()
            monkeypatch.setattr(reflector, "_read_list", read_list)
        raise Forbidden(403, "Forbidden", "not yet")

    monkeypatch.setattr(reflector, "_read_list", refused)
    following = asyncio.create_task(cache.run())
    await waits.wait()
    catching_up = asyncio.create_task(caught_up(cache))
    await until(lambda: reflector._awaited)
    go_on.set()
    await catching_up
    assert max(fast.slept[:6]) > 10
    assert max(fast.slept[6:]) < 1
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_several_may_wait_for_the_same_cache(cache: WatchCache[Thing], api: TinyApi) -> None:
    waiting = [asyncio.create_task(caught_up(cache)) for _ in range(3)]
    api.answer_next(500, status(500, "InternalError"))
    async with running(cache):
        await asyncio.gather(*waiting)
        await api.put("/api/v1/nodes", thing("other"))
        await asyncio.gather(*(caught_up(cache) for _ in range(3)))
        assert int(cache.reflector.resource_version) == api.version


async def test_a_watch_that_is_silent_for_long_is_a_problem(client: Client) -> None:
    clock = ManualClock()
    cache = WatchCache(client, POD, Thing, clock=clock)
    found = [cache.reflector.problem]
    async with running(cache):
        for seconds in (140, 20):
            await clock.advance(seconds)
            found.append(cache.reflector.problem)
    assert found == [
        "pods: not synced yet",
        None,
        "pods: no event or bookmark for 160 s",
    ]


async def restored(api: TinyApi, version: int, *names: str) -> None:
    """Go back to a version at which there were other objects; the connections break."""
    api.objects = {path: obj for path, obj in api.objects.items() if path.endswith(names)}
    api.version = version
    api.history.clear()
    await api.cut_watches()


@pytest.mark.parametrize("catches_up", [True, False])
async def test_a_server_that_is_older_than_the_cache_is_listed_again(
    cache: WatchCache[Thing], api: TinyApi, catches_up: bool
) -> None:
    """With the next watch, and when it is asked for, as by a new leader."""
    await api.put(PODS, thing("kept"))
    then = api.version
    changes: list[tuple[str, bool]] = []
    async with running(cache):
        cache.subscribe(
            lambda old, new: changes.append(
                (
                    what_changed(old, new),
                    old is not None and new is not None and is_from_backup(old, new),
                )
            )
        )
        await api.put(PODS, thing("lost"))
        await until(lambda: "lost" in sizes(cache))
        changes.clear()
        if catches_up:
            await until(lambda: api.watching)
            api.mute_watches()
            api.objects.pop(f"{PODS}/lost")
            api.version = then
            api.history.clear()
            await caught_up(cache)
        else:
            await restored(api, then, "kept")
        await until(lambda: sizes(cache) == {"kept": 1})
        assert (cache.reflector.restores, cache.reflector.resource_version) == (1, str(then))
        assert changes == [("DELETED", False), ("MODIFIED", True)]
        await api.put(PODS, thing("new"))  # with the version that the lost one had
        await until(lambda: sizes(cache) == {"kept": 1, "new": 1})


async def test_a_server_that_was_restored_while_it_was_asked_is_listed_again(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    """The question waits for a server, and when that answers, its version has passed that of the cache."""
    await api.put(PODS, thing("kept"))
    then = api.version
    async with running(cache):
        await api.put(PODS, thing("lost"))
        await until(lambda: "lost" in sizes(cache))
        api.answer_next(503, "no server behind this proxy")
        api.objects.pop(f"{PODS}/lost")
        api.version = then
        for name in ("new", "newer"):
            await api.put(PODS, thing(name))
        api.history.clear()
        await api.cut_watches()
        await until(lambda: set(sizes(cache)) == {"kept", "new", "newer"})


async def test_a_version_that_is_used_again_for_another_content_is_taken_in(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    await api.put(PODS, thing("a", 1))
    then = api.version
    async with running(cache):
        await api.put(PODS, thing("a", 2))
        await api.put(PODS, thing("b"))
        await until(lambda: "b" in sizes(cache))
        api.version = then
        await api.remove(PODS, "b")
        api.version = then
        again = await api.put(PODS, thing("a", 3))
        assert again["metadata"]["resourceVersion"] == str(then + 1)
        api.history.clear()
        await api.cut_watches()
        await until(lambda: sizes(cache) == {"a": 3})


async def test_events_that_arrive_while_the_server_is_asked_are_no_restore(
    cache: WatchCache[Thing], api: TinyApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(cache):
        read = Collection.version

        async def slowly(collection: Collection) -> int:
            version = await read(collection)
            await api.put(PODS, thing("a"))
            await until(lambda: sizes(cache) == {"a": 1})
            return version

        monkeypatch.setattr(Collection, "version", slowly)
        await caught_up(cache)
        assert (cache.reflector.restores, cache.reflector.relists) == (0, 1)
