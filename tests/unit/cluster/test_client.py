"""What the client sends and what it makes of answers, against a real HTTP server."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import NODE, POD, QUEUE
from pumice.cluster.client import JSON_PATCH, MERGE_PATCH, Client
from pumice.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    InvalidName,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from pumice.cluster.transport import CONNECTIONS, may_write
from tests.kit.clocks import FastClock
from tests.kit.waiting import until
from tests.unit.cluster.tiny import TinyApi, status

PODS = "/api/v1/namespaces/ns/pods"


def pod(name: str, **meta: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", **meta},
        "spec": {"unknown": [1, 2, {"kept": True}]},
    }


async def test_objects_come_back_as_they_were_sent(client: Client, api: TinyApi) -> None:
    created = await client.create(POD, pod("a"))
    assert created["spec"] == {"unknown": [1, 2, {"kept": True}]}
    assert await client.get(POD, "a", "ns") == created
    assert api.requests[0].path == PODS
    assert api.requests[0].query == {"fieldManager": "pumice"}
    assert api.requests[0].headers["Content-Type"] == "application/json"
    assert api.requests[0].headers["User-Agent"].startswith("pumice/")


@pytest.mark.parametrize("name", [".", "..", "a/status", "../pods/a"])
async def test_a_name_that_would_be_another_path_is_not_sent(
    client: Client, api: TinyApi, name: str
) -> None:
    for wrong in (
        client.get(POD, name, "ns"),
        client.get(QUEUE, name),
        client.get(POD, "a", name),
        client.list(POD, name),
        client.create(POD, pod("a", namespace=name), name),
        client.update(POD, pod(name)),
        client.patch(POD, name, "ns", {}),
        client.delete(POD, name, "ns"),
        client.delete(POD, "", "ns"),
        client.bind("ns", name, "node"),
        client.evict("ns", name),
        anext(client.log("ns", name, {})),
        anext(client.collection(POD, name).watch("1")),
    ):
        with pytest.raises(InvalidName, match=r"^404 InvalidName: invalid (namespace|name of a)"):
            await wrong
    assert api.requests == []


async def test_dry_run_is_asked_for_in_the_query(client: Client, api: TinyApi) -> None:
    await client.create(POD, pod("a"), dry_run=True)
    assert api.requests[0].query == {"fieldManager": "pumice", "dryRun": "All"}


async def test_list_joins_all_pages(client: Client, api: TinyApi) -> None:
    for number in range(1203):
        api.objects[f"/api/v1/nodes/n{number}"] = {"metadata": {"name": f"n{number}"}}
    listed = await client.list(NODE)
    assert [item["metadata"]["name"] for item in listed["items"]] == [
        f"n{number}" for number in range(1203)
    ]
    assert [seen.query.get("continue") for seen in api.requests] == [None, "500", "1000"]
    assert listed["metadata"]["resourceVersion"] == "100"


async def test_selectors_are_sent(client: Client, api: TinyApi) -> None:
    await client.list(POD, "ns", label_selector="a in (b,c)", field_selector="spec.nodeName=")
    assert api.requests[0].path == PODS
    assert api.requests[0].query == {
        "limit": "500",
        "labelSelector": "a in (b,c)",
        "fieldSelector": "spec.nodeName=",
    }


async def test_an_update_of_an_old_state_conflicts(client: Client) -> None:
    first = await client.create(POD, pod("a"))
    await client.update(POD, {**first, "spec": {"changed": True}})
    with pytest.raises(Conflict) as caught:
        await client.update(POD, first)
    assert str(caught.value) == f"PUT {PODS}/a: 409 Conflict: Conflict was asked for"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {}}]),
        (MERGE_PATCH, {"metadata": {"labels": None}}),
    ],
)
async def test_patches_name_their_type(
    client: Client, api: TinyApi, content_type: str, body: Any
) -> None:
    await client.patch(POD, "a", "ns", body, content_type=content_type, subresource="status")
    assert api.requests[0].path == f"{PODS}/a/status"
    assert api.requests[0].headers["Content-Type"] == content_type
    assert api.requests[0].body == body


async def test_delete_sends_its_options(client: Client, api: TinyApi) -> None:
    await client.create(POD, pod("a"))
    await client.delete(POD, "a", "ns", propagation="Foreground", uid="u-1", grace=0)
    assert api.requests[-1].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u-1"},
    }


async def test_bind_and_evict_use_the_pods_subresources(client: Client, api: TinyApi) -> None:
    await client.bind("ns", "a", "node-1", uid="u-1")
    await client.evict("ns", "a", uid="u-1")
    bind, evict = api.requests
    assert bind.path == f"{PODS}/a/binding"
    assert bind.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    assert bind.body["metadata"]["uid"] == "u-1"
    assert evict.path == f"{PODS}/a/eviction"
    assert evict.body["deleteOptions"] == {"preconditions": {"uid": "u-1"}}


async def test_cluster_wide_kinds_have_no_namespace(client: Client, api: TinyApi) -> None:
    await client.create(QUEUE, {"metadata": {"name": "q"}})
    assert api.requests[0].path == "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (418, "Teapot", ApiError),
    ],
)
async def test_each_refusal_has_its_class(
    client: Client, api: TinyApi, code: int, reason: str, expected: type[ApiError]
) -> None:
    causes = [{"field": "spec.x", "message": "is bad", "reason": "FieldValueInvalid"}]
    api.answer_next(code, status(code, reason, "no", causes=causes))
    with pytest.raises(ApiError) as caught:
        await client.create(POD, pod("a"))
    error = caught.value
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "no")
    assert error.causes == causes
    assert error.context == f"POST {PODS}"


async def test_an_answer_that_is_no_status_is_quoted(client: Client, api: TinyApi) -> None:
    api.answer_next(502, "<html>bad gateway</html>")
    with pytest.raises(Unavailable, match="<html>bad gateway</html>"):
        await client.create(POD, pod("a"))


async def test_an_answer_that_is_no_json_is_an_error(client: Client, api: TinyApi) -> None:
    api.answer_next(200, "<html>hello</html>")
    with pytest.raises(ApiError, match="expected a JSON object"):
        await client.get(POD, "a", "ns")
    asked = client.collection(POD)
    for read in (lambda: client.list(POD), asked.version, lambda: anext(asked.pages(0))):
        api.answer_next(200, "<html>hello</html>")
        with pytest.raises(ApiError, match=r"^GET pods: .*expected a JSON object"):
            await read()


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_reads_are_repeated_while_the_server_is_busy(
    client: Client, api: TinyApi, fast: FastClock, code: int
) -> None:
    api.objects[f"{PODS}/a"] = pod("a")
    api.answer_next(code, status(code, "Busy"))
    api.answer_next(code, status(code, "Busy"), {"Retry-After": "7"})
    assert (await client.get(POD, "a", "ns"))["metadata"]["name"] == "a"
    assert len(api.requests) == 3
    assert 0 < fast.slept[0] < 1
    assert 7 <= fast.slept[1] <= 7 * 1.3


async def test_reads_that_a_busy_server_refuses_are_not_all_repeated_at_the_same_moment(
    client: Client, api: TinyApi, fast: FastClock
) -> None:
    for name in "abcdef":
        api.answer_next(429, status(429, "TooManyRequests"), {"Retry-After": "7"})
        with pytest.raises(NotFound):
            await client.get(POD, name, "ns")
    assert len(set(fast.slept)) == 6
    assert min(fast.slept) >= 7


async def test_reads_are_repeated_when_the_connection_breaks(
    client: Client, api: TinyApi, fast: FastClock
) -> None:
    api.objects[f"{PODS}/a"] = pod("a")
    api.drop_next()
    api.drop_next()
    assert (await client.get(POD, "a", "ns"))["metadata"]["name"] == "a"


async def test_reads_are_not_repeated_for_ever(
    client: Client, api: TinyApi, fast: FastClock
) -> None:
    for _ in range(9):
        api.answer_next(503, status(503, "Busy"))
    with pytest.raises(Unavailable):
        await client.get(POD, "a", "ns")
    assert len(api.requests) == 5
    assert fast.slept == sorted(fast.slept)


async def test_writes_are_not_repeated(client: Client, api: TinyApi, fast: FastClock) -> None:
    api.answer_next(503, status(503, "Busy"))
    with pytest.raises(Unavailable):
        await client.create(POD, pod("a"))
    api.answer_next(429, status(429, "TooManyRequests", retryAfterSeconds=10))
    with pytest.raises(TooManyRequests) as caught:
        await client.evict("ns", "a")
    assert caught.value.retry_after == 10
    assert len(api.requests) == 2
    assert fast.slept == []


async def test_a_missing_server_is_unavailable(fast: FastClock) -> None:
    async with Client.connect(server="http://127.0.0.1:1", clock=fast) as client:
        with pytest.raises(Unavailable, match="GET /version") as caught:
            await client.version()
    assert caught.value.__cause__ is not None


async def test_a_watch_yields_events_and_ends_with_the_connection(
    client: Client, api: TinyApi
) -> None:
    seen: list[tuple[str, bytes]] = []

    async def follow() -> None:
        async for event, raw in client.collection(POD).watch("100"):
            seen.append((event, bytes(raw)))

    following = asyncio.create_task(follow())
    await api.put("/api/v1/pods", pod("a"))
    await api.put("/api/v1/pods", pod("a", labels={"x": "ü" * 300_000}))
    await api.bookmark("/api/v1/pods")
    await until(lambda: len(seen) == 3)
    assert [event for event, _ in seen] == ["ADDED", "MODIFIED", "BOOKMARK"]
    assert len(seen[1][1]) > 600_000
    await api.cut_watches(hard=False)
    await following  # an orderly end is no error
    assert api.requests[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "100",
        "timeoutSeconds": "290",
    }


async def test_a_broken_watch_is_unavailable(client: Client, api: TinyApi) -> None:
    async def follow() -> None:
        async for _ in client.collection(POD).watch("100"):
            await api.cut_watches(hard=True)

    following = asyncio.create_task(follow())
    await api.put("/api/v1/pods", pod("a"))
    with pytest.raises(Unavailable, match="WATCH /api/v1/pods"):
        await following


async def test_a_watch_from_too_far_back_is_gone(client: Client, api: TinyApi) -> None:
    api.forget_history()
    with pytest.raises(Gone):
        async for _ in client.collection(POD).watch("1"):
            pass


async def test_a_refused_watch_says_why(client: Client, api: TinyApi) -> None:
    api.answer_next(403, status(403, "Forbidden", "pods is forbidden"))
    with pytest.raises(Forbidden, match="pods is forbidden"):
        async for _ in client.collection(POD).watch("1"):
            pass


async def test_a_write_of_a_leader_is_not_sent_after_its_lease(
    client: Client, api: TinyApi
) -> None:
    """It is asked about once the request has a connection, and only in tasks that a leader started."""
    leads = True

    async def lead() -> None:
        nonlocal leads
        may_write.set(lambda: leads)
        await client.create(POD, pod("a"))
        leads = False
        with pytest.raises(Unavailable, match="the lease has run out"):
            await client.create(POD, pod("b"))
        with pytest.raises(Unavailable, match="the lease has run out"):
            await asyncio.create_task(client.delete(POD, "a", "ns"))
        assert (await client.get(POD, "a", "ns"))["metadata"]["name"] == "a"

    await asyncio.create_task(lead())
    await client.create(POD, pod("c"))
    assert [each.method for each in api.requests] == ["POST", "GET", "POST"]


async def test_writes_that_wait_for_a_connection_are_not_sent_after_the_lease(
    client: Client, api: TinyApi
) -> None:
    leads = True

    async def occupy() -> None:
        async for _ in client.collection(POD, "busy").watch("1"):
            pass

    async def lead() -> None:
        may_write.set(lambda: leads)
        with pytest.raises(Unavailable, match="the lease has run out"):
            await client.create(POD, pod("a"))

    busy = [asyncio.create_task(occupy()) for _ in range(CONNECTIONS)]
    await until(lambda: api.watching == CONNECTIONS)
    waits = asyncio.create_task(lead())
    await asyncio.sleep(0.05)
    leads = False
    busy.pop().cancel()
    await waits
    assert "POST" not in [each.method for each in api.requests]
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
