"""How a watch cache follows a server through changes, breaks and forgetting."""

import asyncio
import json
import logging
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from tests.kit.clocks import FastClock
from tests.kit.waiting import until
from tests.unit.cluster.things import PODS, Diary, Thing, running, sizes, thing
from tests.unit.cluster.tiny import TinyApi, status


async def test_it_lists_then_follows(cache: WatchCache[Thing], api: TinyApi) -> None:
    await api.put(PODS, thing("a"))
    diary = Diary()
    cache.subscribe(diary)
    async with running(cache):
        assert sizes(cache) == {"a": 1}
        await api.put(PODS, thing("b", 2))
        await api.put(PODS, thing("a", 3))
        await api.remove(PODS, "b")
        await until(lambda: len(diary.entries) == 4)
        assert diary.entries == [
            ("ADDED", "a", None, 1),
            ("ADDED", "b", None, 2),
            ("MODIFIED", "a", 1, 3),
            ("DELETED", "b", 2, None),
        ]
        found = cache.get("a", "ns")
        assert found is not None
        assert found.size == 3
        assert cache.get("a") is None
        assert len(cache) == 1


async def test_the_list_is_read_in_pages(client: Client, api: TinyApi) -> None:
    for number in range(25):
        await api.put(PODS, thing(f"p{number}"))
    paged = WatchCache(client, POD, Thing)
    paged.reflector.page_size = 10
    async with running(paged):
        assert len(paged) == 25
        assert [seen.query.get("limit") for seen in api.requests[:3]] == ["10", "10", "10"]


async def test_a_list_that_expires_between_pages_is_read_at_once(
    client: Client, api: TinyApi
) -> None:
    for number in range(25):
        await api.put(PODS, thing(f"p{number}"))
    first = {"metadata": {"resourceVersion": "1", "continue": "10"}, "items": [thing("gone")]}
    api.answer_next(200, first)
    api.answer_next(410, status(410, "Expired"))
    paged = WatchCache(client, POD, Thing)
    paged.reflector.page_size = 10
    async with running(paged):
        assert len(paged) == 25
        assert [seen.query.get("limit") for seen in api.requests[:3]] == ["10", "10", None]


async def test_raw_objects_are_kept_without_managed_fields(client: Client, api: TinyApi) -> None:
    listed, followed = thing("a"), thing("b")
    for each in (listed, followed):
        each["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    await api.put(PODS, listed)
    raw: WatchCache[dict[str, Any]] = WatchCache(client, POD, dict)
    async with running(raw):
        await api.put(PODS, followed)
        await until(lambda: len(raw) == 2)
        assert all("managedFields" not in each["metadata"] for each in raw.values())
        assert [each["size"] for each in raw.values()] == [1, 1]


async def test_late_subscribers_get_what_is_known(cache: WatchCache[Thing], api: TinyApi) -> None:
    await api.put(PODS, thing("a"))
    async with running(cache):
        late = Diary()
        end = cache.subscribe(late)
        assert late.entries == [("ADDED", "a", None, 1)]
        end()
        await api.put(PODS, thing("b"))
        await until(lambda: len(cache) == 2)
        assert len(late.entries) == 1


async def test_a_broken_watch_goes_on_where_it_was(cache: WatchCache[Thing], api: TinyApi) -> None:
    async with running(cache):
        for round_ in range(3):
            await until(lambda: api.watching == 1)
            await api.cut_watches()
            await api.put(PODS, thing("a", round_))
            await until(lambda: sizes(cache) == {"a": round_})  # noqa: B023 - awaited right here
        assert cache.reflector.relists == 1


async def test_a_watch_that_ends_after_a_change_is_renewed_without_a_delay(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock
) -> None:
    """kube-apiserver ends watches whose events are not read fast enough."""
    async with running(cache):
        for size in range(3):
            await until(lambda: api.watching == 1)
            await api.put(PODS, thing("a", size))
            await until(lambda: sizes(cache) == {"a": size})  # noqa: B023 - awaited right here
            api.requests.clear()
            await api.cut_watches(hard=False)
            await until(lambda: api.requests)
        assert fast.slept == []
        await until(lambda: api.watching == 1)
        await api.cut_watches(hard=False)  # without a change
        await until(lambda: fast.slept)


async def test_bookmarks_move_the_place_to_go_on_from(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    async with running(cache):
        await until(lambda: api.watching == 1)
        await api.bookmark(PODS)
        await until(lambda: cache.reflector.resource_version == "101")
        api.requests.clear()
        await api.cut_watches()
        await until(lambda: any("watch" in each.query for each in api.requests))
        assert api.requests[-1].query["resourceVersion"] == "101"


async def test_after_410_subscribers_hear_the_difference_only(
    cache: WatchCache[Thing], api: TinyApi
) -> None:
    for name in ("same", "changed", "gone"):
        await api.put(PODS, thing(name))
    async with running(cache):
        diary = Diary()
        cache.subscribe(diary)
        diary.entries.clear()
        await until(lambda: api.watching == 1)
        # While the watch is broken objects change and the server drops the events.
        for _ in range(2):
            api.answer_next(503, status(503, "Busy"))
        await api.cut_watches()
        await api.put(PODS, thing("changed", 7))
        await api.remove(PODS, "gone")
        await api.put(PODS, thing("new", 9))
        api.forget_history()
        await until(lambda: cache.reflector.relists == 2)
        assert diary.entries == [
            ("DELETED", "gone", 1, None),
            ("MODIFIED", "changed", 1, 7),
            ("ADDED", "new", None, 9),
        ]
        assert sizes(cache) == {"same": 1, "changed": 7, "new": 9}


async def test_one_unreadable_object_does_not_stop_the_rest(
    cache: WatchCache[Thing], api: TinyApi, caplog: pytest.LogCaptureFixture
) -> None:
    await api.put(PODS, thing("good"))
    await api.put(PODS, thing("bad", "not a number"))
    async with running(cache):
        await until(lambda: sizes(cache) == {"good": 1})
        await api.put(PODS, thing("bad", "still not"))
        await api.put(PODS, thing("good", "spoilt"))
        await api.put(PODS, thing("next"))
        await until(lambda: "next" in sizes(cache))
        assert sizes(cache) == {"good": 1, "next": 1}  # the last readable state is kept
        assert cache.set_aside == 2
        lines = [entry.message for entry in caplog.records if entry.levelno == logging.ERROR]
        assert len(lines) == 2
        assert lines[0].startswith("Pod ns/bad is set aside")
        assert "(decoder): ValidationError: Expected `int`" in lines[0]
        await api.put(PODS, thing("bad", 5))
        await until(lambda: sizes(cache) == {"good": 1, "next": 1, "bad": 5})
        assert cache.set_aside == 1


@pytest.mark.parametrize("type_", [Thing, dict])
@pytest.mark.parametrize("depth", [200, 900, 950, 1_100, 9_990])
async def test_an_object_that_is_nested_too_deeply_ends_neither_list_nor_watch(
    client: Client, api: TinyApi, depth: int, type_: type[Any]
) -> None:
    deep = '{"f:a":' * depth + "{}" + "}" * depth

    def text(obj: dict[str, Any]) -> str:
        return json.dumps(obj).replace(
            '{"name":', '{"managedFields":[{"fieldsV1":' + deep + '}],"name":'
        )

    listed = {"metadata": {"resourceVersion": "100"}, "items": [thing("a"), thing("b", 2)]}
    event = text({"type": "ADDED", "object": thing("c", 3)})
    gone = text({"type": "DELETED", "object": thing("a")})
    api.answer_next(200, text(listed))
    api.answer_next(200, f"{event}\n{gone}\n")
    cache: WatchCache[Any] = WatchCache(client, POD, type_)
    async with running(cache):
        await until(lambda: cache.get("c", "ns") is not None and cache.get("a", "ns") is None)
        assert cache.get("b", "ns") is not None
        assert cache.set_aside == 0


async def test_an_unreadable_deletion_deletes(cache: WatchCache[Thing], api: TinyApi) -> None:
    await api.put(PODS, thing("a"))
    async with running(cache):
        api.objects[f"{PODS}/a"] = thing("a", "spoilt")
        await api.remove(PODS, "a")
        await until(lambda: len(cache) == 0)


async def test_a_failing_subscriber_does_not_affect_others(
    cache: WatchCache[Thing], api: TinyApi, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oh")

    diary = Diary()
    cache.subscribe(fail)
    cache.subscribe(diary)
    await api.put(PODS, thing("a"))
    async with running(cache):
        assert diary.entries == [("ADDED", "a", None, 1)]
        assert "Pod ns/a is set aside" in caplog.text


async def test_a_server_without_an_optional_kind_is_not_complained_about(
    client: Client, api: TinyApi, fast: FastClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="pumice.cluster.reflector")
    cache = WatchCache(client, POD, Thing, clock=fast, optional=True)
    for _ in range(4):
        api.answer_next(404, status(404, "NotFound", "no such kind"))
    fast.now += 500
    await api.put(PODS, thing("a"))
    async with running(cache):
        assert sizes(cache) == {"a": 1}
    told = [each for each in caplog.records if "no such kind" in each.getMessage()]
    assert [each.levelno for each in told] == [logging.DEBUG]


async def test_a_refusal_for_want_of_an_optional_kind_is_an_answer(
    client: Client, api: TinyApi, fast: FastClock
) -> None:
    cache = WatchCache(client, POD, Thing, clock=fast, optional=True)
    fast.now += 500
    for _ in range(50):
        api.answer_next(404, status(404, "NotFound", "no such kind"))
    following = asyncio.create_task(cache.run())
    await until(lambda: len(fast.slept) > 3)
    assert cache.reflector.age < 60
    assert cache.reflector.answered.is_set()
    assert not cache.synced.is_set()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_age_grows_while_nothing_is_heard(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock
) -> None:
    async with running(cache):
        await until(lambda: api.watching == 1)
        before = cache.reflector.age
        fast.now += 50
        assert cache.reflector.age == before + 50
        await api.bookmark(PODS)
        await until(lambda: cache.reflector.age < 1)


async def test_indexes_follow_the_objects(cache: WatchCache[Thing], api: TinyApi) -> None:
    await api.put(PODS, thing("a", 1))
    await api.put(PODS, thing("b", 2))

    def names(size: int) -> list[str]:
        return [each.metadata.name for each in cache.indexed("size", size)]

    async with running(cache):
        cache.index("size", lambda obj: [obj.size])
        assert (names(1), names(2)) == (["a"], ["b"])
        await api.put(PODS, thing("a", 2))
        await until(lambda: names(2) == ["b", "a"])
        assert names(1) == []
        await api.remove(PODS, "b")
        await until(lambda: names(2) == ["a"])


async def test_plain_dicts_can_be_kept(client: Client, api: TinyApi) -> None:
    await api.put(PODS, thing("a", 4))
    raw: WatchCache[dict[str, Any]] = WatchCache(client, POD, dict[str, Any])
    async with running(raw):
        found = raw.get("a", "ns")
        assert found is not None
        assert found["size"] == 4


async def test_selectors_and_namespace_reach_list_and_watch(client: Client, api: TinyApi) -> None:
    narrow = WatchCache(
        client, POD, Thing, namespace="ns", label_selector="a=b", field_selector="spec.nodeName="
    )
    async with running(narrow):
        await until(lambda: api.watching == 1)
        for seen in api.requests:
            assert seen.path == "/api/v1/namespaces/ns/pods"
            assert seen.query["labelSelector"] == "a=b"
            assert seen.query["fieldSelector"] == "spec.nodeName="


async def test_what_is_not_to_be_kept_is_not_there(client: Client, api: TinyApi) -> None:
    for name, size in (("small", 1), ("large", 9), ("shrinks", 9), ("grows", 1), ("goes", 9)):
        await api.put(PODS, thing(name, size))
    large = WatchCache(client, POD, Thing, clock=FastClock(), keep=lambda each: each.size > 5)
    diary = Diary()
    large.subscribe(diary)
    async with running(large):
        assert sizes(large) == {"large": 9, "shrinks": 9, "goes": 9}
        await until(lambda: api.watching == 1)
        await api.put(PODS, thing("shrinks", 2))
        await api.put(PODS, thing("grows", 7))
        await api.put(PODS, thing("small", 2))
        await until(lambda: sizes(large) == {"large": 9, "goes": 9, "grows": 7})
        await api.cut_watches()
        await api.put(PODS, thing("goes", 3))
        await api.put(PODS, thing("small", 8))
        api.forget_history()
        await until(lambda: sizes(large) == {"large": 9, "grows": 7, "small": 8})
        assert diary.entries[3:] == [
            ("DELETED", "shrinks", 9, None),
            ("ADDED", "grows", None, 7),
            ("DELETED", "goes", 9, None),
            ("ADDED", "small", None, 8),
        ]
