"""Large bodies share a limited number of bytes, and wait for them first come, first served."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from pumice.webhook.server.reviews import SMALL, BodyBudget, BudgetExceededError

LONG = SMALL * 2
SIZE = LONG * 3


async def waiting(budget: BodyBudget, size: int) -> "asyncio.Task[int]":
    """A task that has begun to wait for bytes."""
    task = asyncio.create_task(budget.acquire(size))
    await asyncio.sleep(0)
    return task


async def full() -> BodyBudget:
    budget = BodyBudget(SIZE)
    await budget.acquire(SIZE)
    return budget


async def test_a_short_body_takes_nothing_and_waits_for_none() -> None:
    budget = await full()
    assert await budget.acquire(SMALL) == 0
    assert budget.taken == SIZE


async def test_long_bodies_take_what_they_announce_and_give_it_back() -> None:
    budget = BodyBudget(SIZE)
    taken = [await budget.acquire(LONG), await budget.acquire(LONG + 1)]
    assert (taken, budget.taken) == ([LONG, LONG + 1], 2 * LONG + 1)
    for each in taken:
        budget.release(each)
    assert budget.taken == 0


async def test_a_body_that_is_larger_than_the_budget_gets_all_of_it() -> None:
    budget = BodyBudget(SIZE)
    assert await budget.acquire(SIZE * 5) == SIZE


async def test_a_body_waits_for_its_turn() -> None:
    budget = await full()
    first, second, third = [await waiting(budget, size) for size in (LONG, 2 * LONG, LONG)]
    assert budget.waiting == 3
    budget.release(2 * LONG)
    assert await first == LONG
    # There are enough bytes for the third, but a long one must not wait forever.
    assert not second.done()
    assert not third.done()
    budget.release(LONG)
    assert await second == 2 * LONG
    budget.release(LONG)
    assert await third == LONG
    assert (budget.waiting, budget.taken) == (0, SIZE)


async def test_a_body_that_gives_up_makes_way() -> None:
    budget = BodyBudget(SIZE)
    await budget.acquire(LONG)
    large, small = await waiting(budget, SIZE), await waiting(budget, LONG)
    large.cancel()
    assert await small == LONG
    assert (budget.waiting, budget.taken) == (0, 2 * LONG)


@pytest.mark.parametrize("first", ["leaves", "gives up"])
async def test_a_turn_that_comes_as_its_body_gives_up_is_not_lost(first: str) -> None:
    budget = await full()
    task = await waiting(budget, LONG)
    steps: list[Callable[[], object]] = [lambda: budget.release(SIZE), task.cancel]
    for step in steps if first == "leaves" else reversed(steps):
        step()
    with suppress(asyncio.CancelledError):
        await task
    assert (budget.waiting, budget.taken) == (0, 0)


async def test_too_many_do_not_wait() -> None:
    budget = await full()
    tasks = [await waiting(budget, LONG) for _ in range(64)]
    with pytest.raises(BudgetExceededError):
        await budget.acquire(LONG)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (budget.waiting, budget.taken) == (0, SIZE)
