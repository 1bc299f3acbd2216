"""How long a watch cache waits before it asks a server again that refuses, restarts, or is busy."""

import pytest

from pumice.api.kinds import POD
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Backoff
from tests.kit.clocks import FastClock
from tests.kit.waiting import until
from tests.unit.cluster.things import PODS, Thing, running, sizes, thing
from tests.unit.cluster.tiny import TinyApi, status


async def test_it_waits_out_a_server_that_refuses(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        api.answer_next(403, status(403, "Forbidden", "not yours"))
    await api.put(PODS, thing("a"))
    async with running(cache):
        assert sizes(cache) == {"a": 1}
        assert len(fast.slept) == 4
        assert fast.slept == sorted(fast.slept)
        assert caplog.text.count("not yours") == 1


@pytest.mark.parametrize("changes", [True, False])
async def test_a_watch_that_did_its_work_makes_the_delays_short_again(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock, changes: bool
) -> None:
    """It showed a change, or was there for a while: API servers that restart one after the other do not add up."""
    for _ in range(6):
        api.answer_next(403, status(403, "Forbidden"))
    async with running(cache):
        assert max(fast.slept) > 10
        await until(lambda: api.watching == 1)
        if changes:
            await api.put(PODS, thing("a"))
            await until(lambda: len(cache) == 1)
        else:
            fast.now += 2
        fast.slept.clear()
        await api.cut_watches()
        await until(lambda: fast.slept)
        assert fast.slept[0] < 1


async def test_a_server_that_is_starting_says_when_to_watch(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock
) -> None:
    """It reads a kind after the first request for it, and refuses watches meanwhile, and then those from before."""
    empty = {"metadata": {"resourceVersion": "100"}, "items": []}
    initializing = status(429, "TooManyRequests", "storage is (re)initializing")
    for _ in range(5):
        api.answer_next(200, empty)
        api.answer_next(429, initializing, headers={"Retry-After": "1"})
    api.answer_next(200, empty)
    api.answer_next(410, status(410, "Expired"))
    await api.put(PODS, thing("a"))
    async with running(cache):
        await until(lambda: sizes(cache) == {"a": 1})
        assert len(fast.slept) == 5
        assert 1.0 <= min(fast.slept) <= max(fast.slept) <= 1.3
        assert cache.reflector.relists == 2


async def test_a_watch_from_a_list_that_is_too_old_itself_waits(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock
) -> None:
    for _ in range(4):
        api.answer_next(200, {"metadata": {"resourceVersion": "100"}, "items": []})
        api.answer_next(410, status(410, "Expired"))
    async with running(cache):
        await until(lambda: api.watching == 1)
        assert len(fast.slept) == 4
        assert fast.slept == sorted(fast.slept)


async def test_lists_that_are_too_old_themselves_wait(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy may answer anything with 410."""
    for _ in range(2 * 6):  # in pages, and at once
        api.answer_next(410, status(410, "Expired"))
    async with running(cache):
        assert len(fast.slept) == 6
        assert max(fast.slept) > 10
        assert fast.slept == sorted(fast.slept)
        assert len(caplog.records) == 1


async def test_a_list_follows_at_once_on_a_watch_that_is_too_old_but_not_a_second_list(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock
) -> None:
    empty = {"metadata": {"resourceVersion": "100"}, "items": []}
    for _ in range(6):
        api.answer_next(200, empty)
        api.answer_next(200, "")  # a watch that ends without a change
        api.answer_next(200, empty)
        api.answer_next(410, status(410, "Expired"))
    async with running(cache):
        await until(lambda: api.watching == 1)
        assert len(fast.slept) == cache.reflector.relists - 1 == 6
        assert max(fast.slept) > 10
        assert fast.slept == sorted(fast.slept)


@pytest.mark.parametrize(
    ("asked", "longest"), [(None, 30.0), ("0", 30.0), ("1", 2.0), ("7", 7.0 * 1.3), ("-1", 30.0)]
)
async def test_a_busy_server_is_waited_for_as_long_as_it_asks_or_as_failures_take(
    cache: WatchCache[Thing],
    api: TinyApi,
    fast: FastClock,
    caplog: pytest.LogCaptureFixture,
    asked: str | None,
    longest: float,
) -> None:
    headers = None if asked is None else {"Retry-After": asked}
    for _ in range(12):
        api.answer_next(200, {"metadata": {"resourceVersion": "100"}, "items": []})
        api.answer_next(429, status(429, "TooManyRequests", "busy"), headers=headers)
    async with running(cache):
        await until(lambda: api.watching == 1)
        assert len(fast.slept) == 12
        assert min(fast.slept) >= max(0.35, float(asked or 0))
        assert 0.7 * longest <= max(fast.slept) <= longest
        assert caplog.text.count("busy") == 1


async def test_watches_that_all_break_after_a_second_are_begun_less_and_less_often(
    cache: WatchCache[Thing], api: TinyApi, fast: FastClock, caplog: pytest.LogCaptureFixture
) -> None:
    def watches() -> int:
        return sum("watch" in each.query for each in api.requests)

    async with running(cache):
        for number in range(1, 9):
            await until(lambda: watches() == number and api.watching == 1)  # noqa: B023
            fast.now += 1.1
            await api.cut_watches()
            await until(lambda: len(fast.slept) == number)  # noqa: B023
        assert max(fast.slept) > 10
        assert fast.slept[:6] == sorted(fast.slept[:6])
        assert len(caplog.records) == 1
        await until(lambda: api.watching == 1)
        await api.put(PODS, thing("a"))
        await until(lambda: len(cache) == 1)
        await api.cut_watches()
        await until(lambda: len(fast.slept) == 9)
        assert fast.slept[-1] < 1


async def test_clients_that_a_starting_server_refuses_do_not_all_watch_at_the_same_moment(
    api: TinyApi, client: Client
) -> None:
    """Processes have other seeds; each waits for as long as it did in another run."""
    waited: dict[str, list[float]] = {}
    for process in ("a", "b", "c", "a"):
        clock = FastClock()
        backoff = Backoff(base=0.5, seed=process)
        for _ in range(3):
            api.answer_next(200, {"metadata": {"resourceVersion": "100"}, "items": []})
            api.answer_next(429, status(429, "TooManyRequests"), headers={"Retry-After": "1"})
        async with running(WatchCache(client, POD, Thing, clock=clock, backoff=backoff)):
            await until(lambda: api.watching == 1)
        assert len(clock.slept) == 3
        assert min(clock.slept) >= 1.0
        assert waited.setdefault(process, clock.slept) == clock.slept
    assert len({delays[0] for delays in waited.values()}) == 3
