"""Large lists and late subscribers: the event loop turns between slices, and no event precedes what it changes.

How long a slice takes is measured by `benchmarks/restart.py`; here its objects are counted.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.api.jobs import Job
from pumice.api.kinds import POD
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.pods import Pod
from pumice.cluster import slices
from pumice.cluster.cache import WatchCache, wait_settled
from pumice.cluster.client import Client
from pumice.cluster.collection import _one_ahead
from pumice.cluster.slices import in_slices
from tests.kit.clocks import FastClock
from tests.kit.waiting import until
from tests.unit.cluster.things import PODS, Diary, Thing, running, sizes, thing
from tests.unit.cluster.tiny import TinyApi

SLICE = 4
COUNT = 30


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_OBJECTS", SLICE)


class Begun(Diary):
    """A diary that says when it has its first entry."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    def __call__(self, old: Thing | None, new: Thing | None) -> None:
        super().__call__(old, new)
        self.begun.set()


class Turns:
    """Counts turns of the event loop, and what happens in each."""

    def __init__(self) -> None:
        self.number = 0
        self.seen: Counter[int] = Counter()

    def note(self, *_: object) -> None:
        self.seen[self.number] += 1

    def keep(self, _: Thing) -> bool:
        self.note()
        return True

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        self.seen.clear()

        async def count() -> None:
            while True:
                self.number += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)

    @property
    def largest(self) -> int:
        return max(self.seen.values())


async def filled(api: TinyApi, count: int = COUNT) -> None:
    for number in range(count):
        await api.put(PODS, thing(f"p{number:02}", number))


async def test_a_list_is_decoded_and_reported_in_slices(client: Client, api: TinyApi) -> None:
    await filled(api)
    decoded, reported = Turns(), Turns()
    cache = WatchCache(client, POD, Thing, keep=decoded.keep)
    settled: set[bool] = set()
    cache.subscribe(reported.note)
    cache.subscribe(lambda *_: settled.add(cache.settled.is_set()))
    async with decoded.counted(), reported.counted(), running(cache):
        pass
    assert (decoded.seen.total(), reported.seen.total()) == (2 * COUNT, COUNT)
    assert (decoded.largest, reported.largest) == (SLICE, SLICE)
    assert settled == {False}
    assert cache.settled.is_set()


async def test_the_differences_of_a_list_are_reported_in_slices(
    client: Client, api: TinyApi, fast: FastClock
) -> None:
    await filled(api)
    cache = WatchCache(client, POD, Thing, clock=fast)
    turns = Turns()
    async with running(cache):
        cache.subscribe(turns.note)
        await until(lambda: api.watching)
        async with turns.counted():
            await api.cut_watches()
            for number in range(COUNT):
                if number % 2:
                    await api.remove(PODS, f"p{number:02}")
                else:
                    await api.put(PODS, thing(f"p{number:02}", 99))
            api.forget_history()
            await until(lambda: set(sizes(cache).values()) == {99})
            async with asyncio.timeout(60):
                await wait_settled(cache)
    assert turns.seen.total() == COUNT
    assert turns.largest == SLICE


async def test_what_is_known_is_reported_in_slices(client: Client, api: TinyApi) -> None:
    await filled(api)
    cache = WatchCache(client, POD, Thing)
    async with running(cache):
        turns, diary = Turns(), Diary()
        async with turns.counted():
            end = await cache.replay(turns.note)
        await cache.replay(diary)
        assert turns.seen.total() == COUNT
        assert turns.largest == SLICE
        assert [entry[1] for entry in diary.entries] == [f"p{number:02}" for number in range(COUNT)]
        end()
        await api.put(PODS, thing("new"))
        await until(lambda: "new" in sizes(cache))
        assert turns.seen.total() == COUNT
        assert diary.entries[-1] == ("ADDED", "new", None, 1)


async def test_events_during_a_replay_come_once_and_in_order(client: Client, api: TinyApi) -> None:
    await filled(api)
    cache = WatchCache(client, POD, Thing)
    diary = Begun()

    def change(name: str, size: int) -> None:
        meta = ObjectMeta(name=name, namespace="ns")
        cache.put(("ns", name), "1000", Thing(metadata=meta, size=size))

    async with running(cache):
        await until(lambda: api.watching)
        replay = asyncio.create_task(cache.replay(diary))
        await diary.begun.wait()
        # Of the first slice, and of what has not had its turn: the events come while the replay stands still.
        for name in ("p00", "p20"):
            change(name, 77)
        for name in ("p01", "p21"):
            cache.remove(("ns", name))
        change("p22", 78)
        cache.remove(("ns", "p22"))
        await replay
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for what, name, old, new in diary.entries:
        by_name.setdefault(name, []).append((what, old, new))
    assert by_name["p00"] == [("ADDED", None, 0), ("MODIFIED", 0, 77)]
    assert by_name["p01"] == [("ADDED", None, 1), ("DELETED", 1, None)]
    assert by_name["p20"] == [("ADDED", None, 77)]
    assert "p21" not in by_name
    assert by_name["p22"] == [("ADDED", None, 78), ("DELETED", 78, None)]
    assert all(
        entries == [("ADDED", None, int(name[1:]))]
        for name, entries in by_name.items()
        if name not in ("p00", "p01", "p20", "p22")
    )


async def test_a_cancelled_replay_ends_the_subscription(client: Client, api: TinyApi) -> None:
    await filled(api)
    cache = WatchCache(client, POD, Thing)
    diary = Begun()
    async with running(cache):
        replay = asyncio.create_task(cache.replay(diary))
        await diary.begun.wait()
        replay.cancel()
        await asyncio.gather(replay, return_exceptions=True)
        assert len(diary.entries) == SLICE
        await api.put(PODS, thing("new"))
        await until(lambda: "new" in sizes(cache))
        assert len(diary.entries) == SLICE


async def test_waiting_for_several_caches_ends_when_none_takes_in_a_list(client: Client) -> None:
    caches: list[WatchCache[Any]] = [WatchCache(client, POD, Thing) for _ in range(2)]
    caches[0].settled.clear()
    waiting = asyncio.create_task(wait_settled(*caches))
    await asyncio.sleep(0)
    caches[1].settled.clear()
    caches[0].settled.set()
    for _ in range(5):
        await asyncio.sleep(0)
    caches[0].settled.clear()
    caches[1].settled.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    caches[0].settled.set()
    await waiting


async def test_the_next_page_is_asked_for_while_the_last_one_is_in_use() -> None:
    asked: list[int] = []
    closed: list[bool] = []

    async def pages() -> AsyncGenerator[bytes, None]:
        try:
            for number in range(5):
                asked.append(number)
                await asyncio.sleep(0)
                yield bytes([number])
        finally:
            closed.append(True)

    ahead = _one_ahead(pages())
    assert await anext(ahead) == b"\0"
    await asyncio.sleep(0)
    assert asked == [0, 1]
    assert await anext(ahead) == b"\1"
    await ahead.aclose()
    assert closed == [True]
    assert [page async for page in _one_ahead(pages())] == [bytes([each]) for each in range(5)]


@pytest.mark.usefixtures("freezing_again")
async def test_what_arrives_in_large_numbers_is_not_searched_for_garbage() -> None:
    gc.collect()
    before = gc.get_freeze_count()
    try:
        kept = [[each] async for each in in_slices(range(SLICE - 1))]
        assert gc.get_freeze_count() <= before  # objects that were frozen before may be gone
        kept = [[each] async for each in in_slices(range(10 * SLICE))]
        assert gc.get_freeze_count() >= before + len(kept) - SLICE
    finally:
        gc.unfreeze()


def test_api_objects_are_not_searched_for_garbage() -> None:
    """Except Jobs, to which weak references point."""
    kinds, found = [ApiStruct], []
    while kinds:
        kind = kinds.pop()
        found.append(kind)
        kinds += kind.__subclasses__()
    assert Pod in found
    tracked = [kind for kind in found if kind.__struct_config__.gc]
    assert Job in tracked
    assert all(issubclass(kind, Job) for kind in tracked)
