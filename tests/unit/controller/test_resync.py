"""Which keys a resync queues, and when."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from pumice.controller.worker.controller import RESYNC_SECONDS, resync
from tests.kit.clocks import FastClock
from tests.kit.waiting import until

Queued = list[tuple[float, str]]


async def queued(keys: Callable[[], list[str]], rounds: int) -> Queued:
    """What is queued in some rounds, and when."""
    clock = FastClock()
    found: Queued = []
    task = asyncio.create_task(
        resync(keys, lambda key: found.append((clock.monotonic(), key)), clock)
    )
    await until(lambda: clock.monotonic() > rounds * RESYNC_SECONDS + 0.5, "the rounds to end")
    task.cancel()
    return [(moment, key) for moment, key in found if moment <= rounds * RESYNC_SECONDS + 0.5]


async def test_each_key_has_one_turn_a_round_and_no_second_has_many() -> None:
    keys = [f"k{number}" for number in range(2000)]
    found = await queued(lambda: keys, 3)
    assert [key for _, key in found] == keys * 3
    assert max(Counter(moment for moment, _ in found).values()) == 4
    turns = [moment for moment, key in found if key == "k1000"]
    assert [round(b - a) for a, b in pairwise(turns)] == [RESYNC_SECONDS] * 2


async def test_few_keys_are_spread_over_the_round() -> None:
    found = await queued(lambda: ["a", "b", "c"], 1)
    assert [(round(moment), key) for moment, key in found] == [(200, "a"), (400, "b"), (600, "c")]


async def test_keys_come_and_go_between_rounds() -> None:
    rounds = iter([[], ["a"], [], [], []])
    found = await queued(lambda: next(rounds), 4)
    assert [(round(moment), key) for moment, key in found] == [(1200, "a")]
