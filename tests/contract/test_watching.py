"""Watches: from a version, with selectors, bookmarks, initial events, and the end of history."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.api import Api
from tests.contract.kinds import JOBS, config_map, job, path

Event = dict[str, Any]


async def take(events: AsyncIterator[Event], count: int) -> list[tuple[str, str]]:
    """Type and name of the next events."""
    found = []
    async for event in events:
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
        if len(found) == count:
            break
    return found


async def test_a_watch_from_a_version_misses_and_repeats_nothing(api: Api, namespace: str) -> None:
    collection = path(JOBS, namespace)
    (await api.create(collection, job("before"))).expect(201)
    version = (await api.get(collection)).version
    (await api.create(collection, job("between"))).expect(201)

    async with api.watch(collection, resourceVersion=version) as events:
        assert await take(events, 1) == [("ADDED", "between")]
        (await api.patch("merge", f"{collection}/before", {"spec": {"minAvailable": 3}})).expect(
            200
        )
        (await api.delete(f"{collection}/between")).expect(200)
        assert await take(events, 2) == [("MODIFIED", "before"), ("DELETED", "between")]


async def test_versions_grow_with_the_events(api: Api, namespace: str) -> None:
    collection = path("configmaps", namespace)
    version = (await api.get(collection)).version
    for name in ("a", "b"):
        (await api.create(collection, config_map(name))).expect(201)
    deleted = (await api.delete(f"{collection}/a")).expect(200)
    assert deleted["status"] == "Success"

    versions = [int(version)]
    async with api.watch(
        collection, resourceVersion=version, fieldSelector="metadata.name!=kube-root-ca.crt"
    ) as events:
        async for event in events:
            versions.append(int(event["object"]["metadata"]["resourceVersion"]))
            if event["type"] == "DELETED":
                break

    assert versions == sorted(set(versions))
    assert len(versions) == 4


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_from_nowhere_begins_with_what_there_is(
    api: Api, namespace: str, version: str
) -> None:
    collection = path(JOBS, namespace)
    for name in ("a", "b"):
        (await api.create(collection, job(name))).expect(201)

    query = {"resourceVersion": version} if version else {}
    async with api.watch(collection, **query) as events:
        assert sorted(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]
        (await api.create(collection, job("c"))).expect(201)
        assert await take(events, 1) == [("ADDED", "c")]


async def test_selectors_turn_changes_into_coming_and_going(api: Api, namespace: str) -> None:
    collection = path(JOBS, namespace)
    version = (await api.get(collection)).version

    async with api.watch(collection, resourceVersion=version, labelSelector="on=yes") as events:
        (await api.create(collection, job("j"))).expect(201)
        for labels in ({"on": "yes"}, {"on": "yes", "more": "x"}, {"on": None}):
            patch = {"metadata": {"labels": labels}}
            last = (await api.patch("merge", f"{collection}/j", patch)).expect(200)
        (await api.delete(f"{collection}/j")).expect(200)
        (await api.create(collection, job("k", labels={"on": "yes"}))).expect(201)

        seen: list[Event] = []
        async for event in events:
            seen.append(event)
            if len(seen) == 4:
                break

    assert [(each["type"], each["object"]["metadata"]["name"]) for each in seen] == [
        ("ADDED", "j"),
        ("MODIFIED", "j"),
        ("DELETED", "j"),
        ("ADDED", "k"),
    ]
    # What leaves the selection is shown as it was, in the version in which it left.
    assert seen[2]["object"]["metadata"]["labels"]["on"] == "yes"
    assert seen[2]["object"]["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]


async def test_one_object_can_be_watched(api: Api, namespace: str) -> None:
    collection = path(JOBS, namespace)
    version = (await api.get(collection)).version

    async with api.watch(
        collection, resourceVersion=version, fieldSelector="metadata.name=mine"
    ) as events:
        (await api.create(collection, job("other"))).expect(201)
        (await api.create(collection, job("mine"))).expect(201)
        assert await take(events, 1) == [("ADDED", "mine")]


async def test_a_watch_over_all_namespaces(api: Api, namespace: str) -> None:
    version = (await api.get(path(JOBS))).version

    async with api.watch(path(JOBS), resourceVersion=version) as events:
        (await api.create(path(JOBS, namespace), job("everywhere"))).expect(201)
        # What other tests have left may go meanwhile.
        ours = (
            each async for each in events if each["object"]["metadata"]["namespace"] == namespace
        )
        assert await take(ours, 1) == [("ADDED", "everywhere")]


async def test_bookmarks_tell_how_far_one_has_come(api: Api, namespace: str) -> None:
    version = (await api.get(path(JOBS, namespace))).version
    made = (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)

    seen: list[Event] = []
    async with asyncio.timeout(60):
        while not seen:  # the real one sends it 2 s before the end, and not at all where it is late
            async with api.watch(
                path(JOBS, namespace),
                resourceVersion=version,
                allowWatchBookmarks="true",
                timeoutSeconds="4",
            ) as events:
                async for event in events:
                    seen.append(event)
                    reached = int(event["object"]["metadata"]["resourceVersion"])
                    if reached >= int(made["metadata"]["resourceVersion"]):
                        break

    assert {each["type"] for each in seen} == {"BOOKMARK"}
    assert seen[-1]["object"]["kind"] == "SampleJob"
    assert "name" not in seen[-1]["object"]["metadata"]


async def test_a_stream_of_initial_events_ends_with_a_bookmark(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)

    seen = []
    async with api.watch(
        path(JOBS, namespace),
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    ) as events:
        async for event in events:
            seen.append(event)
            if event["type"] == "BOOKMARK":
                break

    assert [each["type"] for each in seen] == ["ADDED", "BOOKMARK"]
    annotations = seen[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_initial_events_need_to_say_which(api: Api, namespace: str) -> None:
    answer = await api.get(path(JOBS, namespace), watch="true", sendInitialEvents="true")

    answer.refused(422, "Invalid")


async def test_a_watch_ends_after_its_time(api: Api, namespace: str) -> None:
    version = (await api.get(path(JOBS, namespace))).version

    async with api.watch(
        path(JOBS, namespace), resourceVersion=version, timeoutSeconds="1"
    ) as events:
        assert [event async for event in events] == []


async def test_what_is_forgotten_cannot_be_watched(api: Api, namespace: str) -> None:
    # Of a kind that is younger than the version, no server knows the history.
    async with api.watch(path(JOBS, namespace), resourceVersion="1") as events:
        [event] = [event async for event in events]

    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


async def test_tables_can_be_watched(api: Api, namespace: str) -> None:
    collection = path(JOBS, namespace)
    for name in ("a", "b"):
        (await api.create(collection, job(name))).expect(201)
    answer = await api.send(
        "GET",
        collection,
        accept="application/json;as=Table;v=v1;g=meta.k8s.io",
        watch="true",
        timeoutSeconds="1",
    )

    # Several lines of JSON are no JSON object.
    lines = answer.body["text"].splitlines()
    assert answer.code == 200
    assert all('"kind":"Table"' in line for line in lines)
    assert "columnDefinitions" in lines[0]
