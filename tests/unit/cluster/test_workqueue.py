"""What a work queue promises a controller."""

import asyncio

import pytest
import uvloop

from pumice.cluster.clock import Backoff
from pumice.cluster.turns import ACTIVE_SECONDS, first_segment, no_namespace
from pumice.cluster.workqueue import WorkQueue
from tests.kit.waiting import until


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue("test", no_namespace, backoff=Backoff(base=0.02, cap=1.0, spread=0.0))


class Worker:
    """Runs a queue's work with handlers that a test steers."""

    def __init__(self, queue: WorkQueue[str], workers: int = 1) -> None:
        self.queue = queue
        self.workers = workers
        self.seen: list[str] = []
        self.active: dict[str, int] = {}
        self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failing: dict[str, int] = {}

    async def handle(self, key: str) -> float | None:
        self.seen.append(key)
        self.active[key] = self.active.get(key, 0) + 1
        self.most = max(self.most, sum(self.active.values()))
        assert self.active[key] == 1, "one key was worked on twice at once"
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            if self.failing.get(key, 0) > 0:
                self.failing[key] -= 1
                raise RuntimeError(f"{key} fails")
        finally:
            self.active[key] -= 1
        return None

    async def __aenter__(self) -> "Worker":
        self.task = asyncio.create_task(self.queue.work(self.handle, self.workers))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.queue.close()


async def test_keys_come_in_the_order_of_arrival_and_once(queue: WorkQueue[str]) -> None:
    for key in ("b", "a", "b", "c", "a"):
        queue.add(key)
    assert len(queue) == 3
    async with Worker(queue) as worker:
        await queue.settled()
        assert worker.seen == ["b", "a", "c"]


async def test_a_key_added_during_its_turn_gets_another(queue: WorkQueue[str]) -> None:
    async with Worker(queue, workers=4) as worker:
        worker.gate.clear()
        queue.add("a")
        await until(lambda: worker.seen == ["a"])
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(0.01)
        assert worker.seen == ["a"]
        worker.gate.set()
        await queue.settled()
        assert worker.seen == ["a", "a"]


async def test_a_namespace_has_its_part_of_shared_workers_while_another_is_active() -> None:
    """All of them alone, and again when it has been alone for a while."""
    queue = WorkQueue("test", first_segment, shared=True)
    running: set[str] = set()
    ends: dict[str, asyncio.Event] = {}

    async def handle(key: str) -> None:
        ends[key] = asyncio.Event()
        running.add(key)
        await ends[key].wait()
        running.discard(key)

    async def end(*keys: str) -> None:
        for key in keys:
            ends[key].set()
        for _ in range(10):
            await asyncio.sleep(0)

    def of(namespace: str) -> list[str]:
        return sorted(each for each in running if first_segment(each) == namespace)

    task = asyncio.create_task(queue.work(handle, 16))
    await asyncio.sleep(0)
    for number in range(60):
        queue.add(f"a/{number}")
    await end()
    assert len(of("a")) == 16
    queue.add("b/0")
    await end(*of("a")[:14])
    assert (len(of("a")), of("b")) == (2, ["b/0"])
    await end("b/0", *of("a"))
    assert len(of("a")) == 2  # others get a worker at once if they come back
    loop = asyncio.get_running_loop()
    loop.time, now = (lambda: now + ACTIVE_SECONDS), loop.time()  # type: ignore[method-assign]
    await end(*of("a")[:1])
    await end()
    assert len(of("a")) == 16
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    queue.close()


async def test_workers_share_the_keys(queue: WorkQueue[str]) -> None:
    async with Worker(queue, workers=3) as worker:
        worker.gate.clear()
        for key in "abcdef":
            queue.add(key)
        await until(lambda: worker.most == 3)
        worker.gate.set()
        await queue.settled()
        assert sorted(worker.seen) == list("abcdef")
        assert worker.most == 3


async def test_failed_keys_come_back_later_and_later(
    queue: WorkQueue[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with Worker(queue) as worker:
        worker.failing["a"] = 3
        begun = asyncio.get_running_loop().time()
        queue.add("a")
        queue.add("b")
        await until(lambda: worker.seen.count("a") == 4)
        assert asyncio.get_running_loop().time() - begun >= 0.02 + 0.04 + 0.08
        assert worker.seen[:2] == ["a", "b"], "a failing key must not hold up others"
        await queue.settled()
        assert queue.failures("a") == 0
        assert queue.retries == 3
        assert caplog.text.count("RuntimeError: a fails") == 3


async def test_delayed_keys_wait_for_the_earliest_moment(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 60)
    queue.add_after("a", 0.02)
    queue.add_after("a", 30)
    assert (len(queue), queue.delayed) == (0, 1)
    async with asyncio.timeout(25):
        assert await queue.get() == "a"
    assert queue.delayed == 0
    queue.done("a")


async def test_no_delay_means_now(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 60)
    queue.add_after("a", 0)
    assert (len(queue), queue.delayed) == (1, 0)


async def test_a_handler_may_ask_to_be_called_again(queue: WorkQueue[str]) -> None:
    calls = []

    async def handle(key: str) -> float | None:
        calls.append(key)
        return 0.01 if len(calls) < 3 else None

    task = asyncio.create_task(queue.work(handle))
    queue.add("a")
    await until(lambda: len(calls) == 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert queue.delayed == 0


async def test_a_cancelled_worker_loses_no_key(queue: WorkQueue[str]) -> None:
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    async with asyncio.timeout(60):
        assert await second == "a"


async def test_a_handler_that_is_cancelled_from_inside_has_failed(queue: WorkQueue[str]) -> None:
    """By a future that somebody else cancelled, say: neither the key nor the worker is lost."""
    seen: list[str] = []

    async def handle(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            cancelled = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    task = asyncio.create_task(queue.work(handle))
    queue.add("a")
    await until(lambda: seen == ["a", "a"])
    queue.add("b")
    await until(lambda: seen == ["a", "a", "b"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


def test_a_delay_that_the_loop_takes_for_none_can_be_followed_by_another() -> None:
    """The loop uvloop rounds delays to milliseconds, and gives no timer for what it rounds to none."""

    async def keys() -> list[str]:
        queue: WorkQueue[str] = WorkQueue("test", no_namespace)
        queue.add_after("a", 0.0001)
        queue.add_after("a", 0.0)
        queue.add_after("b", 0.0001)
        queue.add_after("b", 5.0)
        queue.add_after("c", 5.0)
        queue.add_after("c", 0.0001)
        return sorted([await asyncio.wait_for(queue.get(), 1.0) for _ in range(3)])

    assert uvloop.run(keys()) == ["a", "b", "c"]


async def test_a_key_is_handled_after_one_of_each_other_namespace() -> None:
    """However many keys the others have, new or tried again; counted in keys, with one worker."""
    queue = WorkQueue("test", first_segment, backoff=Backoff(base=0.0, cap=0.0, spread=0.0))
    seen: list[str] = []
    for number in range(500):
        queue.add(f"a/{number}")

    async def handle(key: str) -> None:
        seen.append(key)
        if len(seen) == 50:
            queue.add("b/1")
            queue.add("c/1")
        if key in seen[:20] and seen.count(key) < 4:
            raise RuntimeError(f"{key} fails")

    task = asyncio.create_task(queue.work(handle))
    await queue.settled()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert {"b/1", "c/1"} <= set(seen[50:53])
    assert len(seen) == 500 + 3 * 20 + 2


async def test_a_namespace_does_not_take_all_workers() -> None:
    queue = WorkQueue("test", first_segment, of_one=2)
    async with Worker(queue, workers=3) as worker:
        worker.gate.clear()
        for number in range(10):
            queue.add(f"a/{number}")
        await until(lambda: worker.most == 2)
        queue.add("b/1")
        await until(lambda: worker.seen == ["a/0", "a/1", "b/1"])
        assert not queue.others_wait("a/0"), "what waits is of the same namespace"
        queue.add("c/1")
        assert queue.others_wait("a/0")
        worker.gate.set()
        await queue.settled()
        assert len(worker.seen) == 12
        assert not queue.others_wait("a/0")
