"""What the event recorder writes, and what it spares its callers."""

import asyncio
from collections import Counter

import pytest

from pumice.api.kinds import JOB, NODE
from pumice.api.meta import ObjectMeta
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder, Rate, Reference, TokenBuckets
from tests.kit.clocks import FastClock
from tests.kit.waiting import until
from tests.unit.cluster.tiny import TinyApi, status

ABOUT = Reference(JOB, "train", "ns", "u-1", "42")
EVENTS = "/api/v1/namespaces/ns/events"


@pytest.fixture
def dropped() -> Counter[str]:
    return Counter()


@pytest.fixture
def recorder(client: Client, fast: FastClock, dropped: Counter[str]) -> EventRecorder:
    return EventRecorder(
        client,
        "pumice-test",
        instance="host-1",
        clock=fast,
        per_object=Rate(0.1, 5),
        per_namespace=Rate(10, 5),
        on_drop=lambda reason: dropped.update([reason]),
    )


def about(number: int, namespace: str = "ns") -> Reference:
    """One of many objects."""
    return Reference(JOB, f"job-{number}", namespace, f"u-{number}")


async def test_an_event_says_what_happened_to_what(recorder: EventRecorder, api: TinyApi) -> None:
    recorder.record(ABOUT, "Warning", "Unschedulable", "3 nodes do not fit")
    await recorder.flush()
    (seen,) = api.requests
    assert (seen.method, seen.path) == ("POST", EVENTS)
    name = seen.body["metadata"].pop("name")
    assert name.startswith("train.")
    assert seen.body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "involvedObject": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "namespace": "ns",
            "name": "train",
            "uid": "u-1",
            "resourceVersion": "42",
        },
        "type": "Warning",
        "reason": "Unschedulable",
        "message": "3 nodes do not fit",
        "count": 1,
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:00:00Z",
        "source": {"component": "pumice-test", "host": "host-1"},
        "reportingComponent": "pumice-test",
        "reportingInstance": "host-1",
    }


async def test_repetitions_raise_the_count(
    recorder: EventRecorder, api: TinyApi, fast: FastClock
) -> None:
    for _ in range(3):
        recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    assert api.requests[0].body["count"] == 3
    fast.now += 60
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    created, patched = api.requests
    assert (patched.method, patched.path) == (
        "PATCH",
        f"{EVENTS}/{created.body['metadata']['name']}",
    )
    assert patched.body == {"count": 4, "lastTimestamp": "2027-01-15T08:01:00Z"}


async def test_different_things_are_different_events(recorder: EventRecorder, api: TinyApi) -> None:
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    recorder.record(ABOUT, "Normal", "Waiting", "for a queue")
    recorder.record(ABOUT, "Warning", "Waiting", "for room")
    recorder.record(Reference(JOB, "other", "ns", "u-2"), "Normal", "Waiting", "for room")
    await recorder.flush()
    assert [seen.method for seen in api.requests] == ["POST"] * 4
    assert len({seen.body["metadata"]["name"] for seen in api.requests}) == 4


async def test_an_event_that_the_server_forgot_is_made_again(
    recorder: EventRecorder, api: TinyApi
) -> None:
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    api.objects.clear()
    api.answer_next(404, status(404, "NotFound"))
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    assert [seen.method for seen in api.requests] == ["POST", "PATCH", "POST"]
    assert api.requests[2].body["count"] == 2


async def test_an_old_event_is_not_counted_on(
    recorder: EventRecorder, api: TinyApi, fast: FastClock
) -> None:
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    fast.now += 3600
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    assert [seen.method for seen in api.requests] == ["POST", "POST"]
    assert api.requests[1].body["count"] == 1


async def test_events_of_cluster_wide_objects_live_in_default(
    recorder: EventRecorder, api: TinyApi
) -> None:
    recorder.record(Reference.of(NODE, ObjectMeta(name="n")), "Normal", "Full", "no room")
    await recorder.flush()
    assert api.requests[0].path == "/api/v1/namespaces/default/events"
    assert "namespace" not in api.requests[0].body["involvedObject"]


async def test_writing_is_bounded_in_rate(
    recorder: EventRecorder, api: TinyApi, fast: FastClock
) -> None:
    for number in range(15):
        recorder.record(about(number), "Normal", "Number", str(number))
    await recorder.flush()
    assert len(api.requests) == 15
    assert sum(fast.slept) == pytest.approx(1.0)


async def test_waiting_is_bounded_in_size(recorder: EventRecorder, dropped: Counter[str]) -> None:
    for number in range(5000):
        recorder.record(about(number), "Normal", "Number", str(number))
    assert dropped == {"namespace": 5000 - 4096}


async def test_a_flood_in_one_namespace_does_not_hold_up_another(
    recorder: EventRecorder, api: TinyApi, dropped: Counter[str]
) -> None:
    for number in range(5000):
        recorder.record(about(number, "flood"), "Normal", "Number", str(number))
    for number in range(3):
        recorder.record(about(number, "quiet"), "Normal", "Number", str(number))
    flushing = asyncio.create_task(recorder.flush())
    await until(lambda: sum("/quiet/" in each.path for each in api.requests) == 3)
    order = ["/quiet/" in each.path for each in api.requests]
    assert order[:6].count(True) == 3, "they took turns"
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    assert dropped == {"namespace": 5000 - 4096 + 3}, "those of the flood"


async def test_a_flood_about_one_object_is_dropped_and_said(
    recorder: EventRecorder, api: TinyApi, fast: FastClock, dropped: Counter[str]
) -> None:
    for number in range(20):
        recorder.record(ABOUT, "Warning", "Number", str(number))
    recorder.record(about(1), "Warning", "Number", "of another object")
    await recorder.flush()
    messages = [each.body["message"] for each in api.requests]
    assert messages == ["0", "1", "2", "3", "4", "of another object"]
    assert dropped == {"object": 15}
    fast.now += 10
    recorder.record(ABOUT, "Warning", "Number", "later")
    recorder.record(ABOUT, "Warning", "Number", "too soon")
    await recorder.flush()
    said = "later (and 15 more events about it, which were not written)"
    assert api.requests[-1].body["message"] == said
    assert dropped == {"object": 16}


async def test_repetitions_above_the_limit_are_counted_with_the_next_write(
    recorder: EventRecorder, api: TinyApi, fast: FastClock
) -> None:
    for _ in range(8):
        recorder.record(ABOUT, "Warning", "Again", "and again")
        await recorder.flush()
    assert [each.body["count"] for each in api.requests] == [1, 2, 3, 4, 5]
    fast.now += 10
    recorder.record(ABOUT, "Warning", "Again", "and again")
    await recorder.flush()
    assert api.requests[-1].body["count"] == 9


async def test_a_long_message_has_room_for_what_was_not_written(
    recorder: EventRecorder, api: TinyApi, fast: FastClock
) -> None:
    for number in range(7):
        recorder.record(ABOUT, "Warning", "Number", str(number))
    fast.now += 10
    recorder.record(ABOUT, "Warning", "Long", "x" * 5000)
    await recorder.flush()
    message = api.requests[-1].body["message"]
    assert len(message) == 1024
    assert message.endswith("x… (and 2 more events about it, which were not written)")


def test_a_bucket_fills_again_and_a_table_is_bounded() -> None:
    buckets: TokenBuckets[int] = TokenBuckets(Rate(0.5, 3), keys=2)
    assert [buckets.take(1, 0.0) for _ in range(4)] == [True, True, True, False]
    assert buckets.wait(1, 0.0) == pytest.approx(2.0)
    assert [buckets.take(1, 2.0) for _ in range(2)] == [True, False]
    assert [buckets.take(1, 100.0) for _ in range(4)] == [True, True, True, False]
    for key in range(2, 10):
        assert buckets.take(key, 100.0)
    assert len(buckets) == 2
    assert buckets.take(1, 100.0), "it was forgotten"
    assert buckets.take(1, 500.0)
    assert len(buckets) == 1, "those that are full again are forgotten"


async def test_long_messages_are_cut(recorder: EventRecorder, api: TinyApi) -> None:
    recorder.record(ABOUT, "Normal", "Long", "x" * 5000)
    await recorder.flush()
    message = api.requests[0].body["message"]
    assert len(message) == 1024
    assert message.endswith("x…")


async def test_a_server_that_refuses_does_not_affect_others(
    recorder: EventRecorder, api: TinyApi, dropped: Counter[str]
) -> None:
    running = asyncio.create_task(recorder.run())
    api.answer_next(403, status(403, "Forbidden"))
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await until(lambda: dropped.total() == 1)
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await until(lambda: len(api.requests) == 2)
    assert api.requests[1].body["count"] == 2
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_busy_server_gets_the_event_when_it_asks_for_it(
    recorder: EventRecorder, api: TinyApi, dropped: Counter[str], fast: FastClock
) -> None:
    api.answer_next(429, status(429, "TooManyRequests"), headers={"Retry-After": "7"})
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    recorder.record(ABOUT, "Normal", "Waiting", "for a queue")
    await recorder.flush()
    assert [seen.body["message"] for seen in api.requests] == [
        "for room",
        "for room",
        "for a queue",
    ]
    assert not dropped
    assert 7.0 in fast.slept


@pytest.mark.parametrize("asked", ["86400", "nan", "inf"])
async def test_a_server_that_stays_busy_loses_the_event(
    recorder: EventRecorder, api: TinyApi, dropped: Counter[str], fast: FastClock, asked: str
) -> None:
    for _ in range(3):
        api.answer_next(429, status(429, "TooManyRequests"), headers={"Retry-After": asked})
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    recorder.record(ABOUT, "Normal", "Waiting", "for a queue")
    await recorder.flush()
    assert [seen.body["message"] for seen in api.requests] == ["for room"] * 3 + ["for a queue"]
    assert dropped.total() == 1
    assert max(fast.slept) <= 30.0


async def test_what_repeats_while_the_server_is_busy_is_one_event(
    recorder: EventRecorder, api: TinyApi, fast: FastClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def repeated(seconds: float) -> None:
        assert seconds == 7.0
        recorder.record(ABOUT, "Normal", "Waiting", "for room")

    monkeypatch.setattr(fast, "sleep", repeated)
    api.answer_next(429, status(429, "TooManyRequests"), headers={"Retry-After": "7"})
    recorder.record(ABOUT, "Normal", "Waiting", "for room")
    await recorder.flush()
    assert [seen.body["count"] for seen in api.requests] == [1, 2]
