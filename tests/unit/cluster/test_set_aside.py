"""An object at which something fails is set aside, reported once and tried again; everything else goes on."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from pumice.api.kinds import POD
from pumice.cluster import collection
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.reading import decode
from pumice.cluster.set_aside import ObjectFaults, QueueFaults, RetryTimers
from pumice.cluster.turns import no_namespace
from pumice.cluster.workqueue import WorkQueue
from tests.kit.waiting import until
from tests.unit.cluster.things import PODS, Diary, Thing, running, sizes, thing
from tests.unit.cluster.tiny import TinyApi

PLACES = ("decoder", "filter", "index", "subscriber")


class Recorded(EventRecorder):
    """A recorder that keeps what it is told."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, "test")
        self.events: list[tuple[str, str, str, str]] = []

    def record(self, about: Reference, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.events.append((about.kind.kind, about.name, reason, message))
        super().record(about, type, reason, message)  # type: ignore[arg-type]


class Faulty:
    """A cache in which one place raises for objects of some names.

    Attributes:
        names: Names of the objects.
        tries: When it raised, by the event loop's clock.
    """

    def __init__(self, client: Client, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = {"bad"}
        self.tries: list[float] = []
        self.registry = CollectorRegistry()
        self.recorder = Recorded(client)
        self.diary, self.other = Diary(), Diary()
        keep = self._checking(place == "filter", lambda _: True)
        self.cache = WatchCache(client, POD, Thing, keep=keep)
        self.cache.faults = ObjectFaults(self.registry, self.recorder)
        self.cache.index(
            "size", self._checking(place == "index", lambda each: [each.size, each.size])
        )
        told = self._checking(place == "subscriber", lambda _: None)

        def subscriber(old: Thing | None, new: Thing | None) -> None:
            told(new or old)
            self.diary(old, new)

        self.cache.subscribe(subscriber)
        self.cache.subscribe(self.other)
        if place == "decoder":
            check = self._checking(True, lambda each: each)

            def decoded(decoder: msgspec.json.Decoder[Any], body: Any) -> Any:
                found = decode(decoder, body)
                return check(found) if isinstance(found, Thing) else found

            monkeypatch.setattr("pumice.cluster.reading.decode", decoded)

    def _checking(self, faulty: bool, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def checked(each: Any) -> Any:
            if faulty and each.metadata.name in self.names:
                self.tries.append(asyncio.get_running_loop().time())
                raise ZeroDivisionError("oh")
            return answer(each)

        return checked

    def errors(self, place: str) -> float:
        labels = {"kind": "Pod", "place": place}
        return self.registry.get_sample_value("pumice_object_errors_total", labels) or 0.0

    @property
    def standing(self) -> float:
        name = "pumice_objects_set_aside"
        return self.registry.get_sample_value(name, {"kind": "Pod"}) or 0.0


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def faulty(client: Client, place: str, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    return Faulty(client, place, monkeypatch)


@asynccontextmanager
async def failing(faulty: Faulty, api: TinyApi, listed: bool) -> AsyncIterator[None]:
    """The cache runs, and an object has failed in a list, or in an event."""
    if listed:
        await api.put(PODS, thing("bad"))
    async with running(faulty.cache):
        if not listed:
            await api.put(PODS, thing("bad"))
        await until(lambda: faulty.tries)
        yield


@pytest.mark.parametrize("listed", [True, False])
async def test_others_go_on_and_it_is_reported_tried_again_and_heals(
    faulty: Faulty, place: str, listed: bool, api: TinyApi, caplog: pytest.LogCaptureFixture
) -> None:
    async with failing(faulty, api, listed):
        await api.put(PODS, thing("good", 2))
        await until(lambda: ("ADDED", "good", None, 2) in faulty.diary.entries)
        first = len(faulty.tries)
        await until(lambda: len(faulty.tries) >= first + 3)
        pauses = [later - earlier for earlier, later in pairwise(faulty.tries)][-3:]
        assert all(later > earlier * 1.5 for earlier, later in pairwise(pauses))
        assert faulty.cache.set_aside == faulty.standing == 1
        assert faulty.errors(place) >= 4
        lines = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert [each.exc_info is not None for each in lines] == [True]
        assert "Pod ns/bad is set aside" in lines[0].message
        assert {each[:3] for each in faulty.recorder.events} == {("Pod", "bad", "InternalError")}
        assert {each[3] for each in faulty.recorder.events} == {
            f"unexpected error ({place}), tried again after growing pauses: ZeroDivisionError: oh"
        }
        assert ("bad" in sizes(faulty.cache)) == (place == "subscriber")

        faulty.names.clear()
        await until(lambda: ("ADDED", "bad", None, 1) in faulty.diary.entries)
        assert sizes(faulty.cache) == {"bad": 1, "good": 2}
        assert [each.size for each in faulty.cache.indexed("size", 1)] == [1]
        assert faulty.other.entries.count(("ADDED", "bad", None, 1)) == 1
        assert faulty.cache.set_aside == faulty.standing == 0


async def test_a_change_is_tried_at_once(faulty: Faulty, api: TinyApi) -> None:
    async with failing(faulty, api, listed=True):
        faulty.names.clear()
        await api.put(PODS, thing("bad", 7))
        await until(lambda: ("ADDED", "bad", None, 7) in faulty.diary.entries)
        assert faulty.cache.set_aside == faulty.standing == 0
        assert faulty.cache.indexed("size", 1) == []


async def test_nothing_is_left_of_one_that_is_deleted(faulty: Faulty, api: TinyApi) -> None:
    async with failing(faulty, api, listed=True):
        if faulty.cache.get("bad", "ns") is not None:
            faulty.names.clear()  # so that its deletion can be told
        await api.remove(PODS, "bad")
        await api.put(PODS, thing("good", 2))
        await until(lambda: "good" in sizes(faulty.cache))
        assert faulty.cache.set_aside == faulty.standing == 0
        faulty.names.clear()
        await asyncio.sleep(20)
        assert sizes(faulty.cache) == {"good": 2}
        assert [entry[0] for entry in faulty.diary.entries if entry[1] == "bad"] in (
            [],
            ["DELETED"],
        )


async def test_nothing_is_left_of_one_that_a_new_list_lacks(faulty: Faulty, api: TinyApi) -> None:
    async with failing(faulty, api, listed=True):
        faulty.names.clear() if "bad" in sizes(faulty.cache) else None
        await until(lambda: api.watching)
        await api.cut_watches()
        await api.remove(PODS, "bad")
        api.forget_history()
        await until(lambda: faulty.cache.reflector.relists == 2)
        assert faulty.cache.set_aside == faulty.standing == 0
        assert sizes(faulty.cache) == {}


async def test_a_known_object_keeps_its_state_until_the_new_one_is_taken_in(
    faulty: Faulty, place: str, api: TinyApi
) -> None:
    faulty.names.clear()
    await api.put(PODS, thing("bad"))
    async with running(faulty.cache):
        faulty.names.add("bad")
        await api.put(PODS, thing("bad", 2))
        await api.put(PODS, thing("bad", 3))
        await until(lambda: len(faulty.tries) >= 2)
        assert sizes(faulty.cache) == {"bad": 3 if place == "subscriber" else 1}
        faulty.names.clear()
        await until(lambda: faulty.diary.entries[-1] == ("MODIFIED", "bad", 1, 3))
        assert [each.size for each in faulty.cache.indexed("size", 3)] == [3]
        assert faulty.cache.indexed("size", 1) == []


@pytest.fixture
async def untold(
    client: Client, api: TinyApi, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Faulty]:
    """A subscriber fails at the deletion of an object."""
    faulty = Faulty(client, "subscriber", monkeypatch)
    faulty.names.clear()
    await api.put(PODS, thing("bad"))
    async with running(faulty.cache):
        faulty.names.add("bad")
        await api.remove(PODS, "bad")
        await until(lambda: faulty.tries)
        yield faulty


async def test_a_deletion_at_which_a_subscriber_fails_is_told_again(untold: Faulty) -> None:
    await until(lambda: len(untold.tries) >= 2)
    assert untold.other.entries[-1] == ("DELETED", "bad", 1, None)
    assert untold.cache.set_aside == untold.standing == 1
    untold.names.clear()
    await until(lambda: untold.diary.entries[-1] == ("DELETED", "bad", 1, None))
    assert untold.cache.set_aside == untold.standing == 0


async def test_an_object_that_comes_back_while_its_deletion_is_untold_is_told_as_changed(
    untold: Faulty, api: TinyApi
) -> None:
    untold.names.clear()
    await api.put(PODS, thing("bad", 2))
    await until(lambda: untold.diary.entries[-1] == ("MODIFIED", "bad", 1, 2))


async def test_a_late_subscriber_that_fails_at_one_object_gets_the_others(
    client: Client, api: TinyApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = Faulty(client, "none", monkeypatch)
    names, diary = {"bad"}, Diary()

    def late(old: Thing | None, new: Thing | None) -> None:
        if new is not None and new.metadata.name in names:
            raise ZeroDivisionError("oh")
        diary(old, new)

    for name in ("a", "bad", "c"):
        await api.put(PODS, thing(name))
    async with running(faulty.cache):
        end = await faulty.cache.replay(late)
        assert [entry[1] for entry in diary.entries] == ["a", "c"]
        names.clear()
        await until(lambda: diary.entries[-1] == ("ADDED", "bad", None, 1))
        names.add("bad")
        await api.put(PODS, thing("bad", 2))
        await until(lambda: faulty.cache.set_aside == 1)
        end()
        await until(lambda: faulty.cache.set_aside == 0)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Names of objects whose head cannot be read."""
    names = {"bad"}

    def decoded(decoder: msgspec.json.Decoder[Any], body: Any) -> Any:
        found = decode(decoder, body)
        meta = getattr(found, "metadata", None)
        if isinstance(found, collection._Object) and getattr(meta, "name", "") in names:
            raise ZeroDivisionError("oh")
        return found

    monkeypatch.setattr("pumice.cluster.collection.decode", decoded)
    return iter([names])


@pytest.mark.parametrize("listed", [True, False])
async def test_an_object_without_a_readable_head_is_found_by_a_later_list(
    client: Client,
    api: TinyApi,
    listed: bool,
    unreadable: Iterator[set[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = next(unreadable)
    registry = CollectorRegistry()
    cache = WatchCache(client, POD, Thing)
    cache.faults = ObjectFaults(registry)
    await api.put(PODS, thing("good"))
    if listed:
        await api.put(PODS, thing("bad"))
    async with running(cache):
        if not listed:
            await api.put(PODS, thing("bad"))
        await api.put(PODS, thing("next"))
        await until(lambda: sizes(cache) == {"good": 1, "next": 1})
        await until(lambda: cache.reflector.relists >= 3)
        assert caplog.text.count("is set aside") == 1
        labels = {"kind": "Pod", "place": "head"}
        assert (registry.get_sample_value("pumice_object_errors_total", labels) or 0) >= 3
        names.clear()
        await until(lambda: sizes(cache) == {"good": 1, "next": 1, "bad": 1})
        lists = cache.reflector.relists
        await asyncio.sleep(20)
        assert cache.reflector.relists == lists


async def test_what_fails_at_no_single_object_is_repaired_by_a_list(
    client: Client, api: TinyApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = WatchCache(client, POD, Thing)
    await api.put(PODS, thing("good"))
    async with running(cache):
        remove = cache.remove

        def fail(*_: object) -> None:
            monkeypatch.setattr(cache, "remove", remove)
            raise ZeroDivisionError("oh")

        monkeypatch.setattr(cache, "remove", fail)
        await api.remove(PODS, "good")
        await until(lambda: sizes(cache) == {})
        assert cache.reflector.relists == 2
        assert "unexpected error (watch): ZeroDivisionError: oh" in caplog.text


async def test_keys_of_a_queue_are_reported_once_and_counted(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    registry, recorder = CollectorRegistry(), Recorded(client)
    faults = ObjectFaults(registry, recorder)
    reports: QueueFaults[str] = faults.of_queue(
        "jobs", lambda key: Reference(POD, key, "ns"), "ReconcileError"
    )
    queue: WorkQueue[str] = WorkQueue("jobs", no_namespace, faults=reports)
    done: list[str] = []
    broken = {"bad"}

    async def handle(key: str) -> None:
        if key in broken:
            raise ZeroDivisionError("oh")
        done.append(key)

    working = asyncio.create_task(queue.work(handle))
    for key in ("bad", "good"):
        queue.add(key)
    await until(lambda: queue.failures("bad") >= 4)
    assert done == ["good"]
    sample = registry.get_sample_value
    labels = {"kind": "Pod", "place": "jobs"}
    assert (sample("pumice_object_errors_total", labels) or 0) >= 3
    assert sample("pumice_objects_set_aside", {"kind": "Pod"}) == 1
    assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1
    assert {each[:3] for each in recorder.events} == {("Pod", "bad", "ReconcileError")}
    broken.clear()
    await until(lambda: done == ["good", "bad"])
    assert sample("pumice_objects_set_aside", {"kind": "Pod"}) == 0
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def test_the_end_of_a_queue_leaves_no_report(client: Client) -> None:
    registry = CollectorRegistry()
    reports: QueueFaults[str] = ObjectFaults(registry).of_queue(
        "jobs", lambda key: Reference(POD, key)
    )
    queue: WorkQueue[str] = WorkQueue("jobs", no_namespace, faults=reports)

    async def fail(_: str) -> None:
        raise ZeroDivisionError("oh")

    working = asyncio.create_task(queue.work(fail))
    queue.add("bad")
    await until(lambda: queue.failures("bad"))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    queue.close()
    assert registry.get_sample_value("pumice_objects_set_aside", {"kind": "Pod"}) == 0


async def test_a_key_that_fails_again_during_its_pause_keeps_the_pause() -> None:
    tries: list[str] = []
    timers: RetryTimers[str] = RetryTimers(tries.append)
    first = timers.fail("a")
    await asyncio.sleep(first / 2)
    assert 0 < timers.fail("a") < first
    await until(lambda: tries == ["a"])
    assert timers.fail("a") > first
    timers.drop("a")
    assert "a" not in timers
    await asyncio.sleep(20)
    assert tries == ["a"]
