"""Long bodies share a bounded number of bytes; who finds none left waits, first come, first served."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from pumice.webhook.server.room import SHORT, NoRoomError, Room

LONG = SHORT * 2
ROOM = LONG * 3


async def waiting(room: Room, size: int) -> "asyncio.Task[int]":
    """Somebody who has come to wait for room."""
    task = asyncio.create_task(room.enter(size))
    await asyncio.sleep(0)
    return task


async def full() -> Room:
    room = Room(ROOM)
    await room.enter(ROOM)
    return room


async def test_a_short_body_takes_no_room_and_waits_for_none() -> None:
    room = await full()
    assert await room.enter(SHORT) == 0
    assert room.taken == ROOM


async def test_long_bodies_take_what_they_announce_and_give_it_back() -> None:
    room = Room(ROOM)
    taken = [await room.enter(LONG), await room.enter(LONG + 1)]
    assert (taken, room.taken) == ([LONG, LONG + 1], 2 * LONG + 1)
    for each in taken:
        room.leave(each)
    assert room.taken == 0


async def test_a_body_that_is_larger_than_the_room_gets_all_of_it() -> None:
    room = Room(ROOM)
    assert await room.enter(ROOM * 5) == ROOM


async def test_who_finds_no_room_waits_for_its_turn() -> None:
    room = await full()
    first, second, third = [await waiting(room, size) for size in (LONG, 2 * LONG, LONG)]
    assert room.waiting == 3
    room.leave(2 * LONG)
    assert await first == LONG
    # There would be room for the third, but a long one must not wait for ever.
    assert not second.done()
    assert not third.done()
    room.leave(LONG)
    assert await second == 2 * LONG
    room.leave(LONG)
    assert await third == LONG
    assert (room.waiting, room.taken) == (0, ROOM)


async def test_who_gives_up_makes_way() -> None:
    room = Room(ROOM)
    await room.enter(LONG)
    large, small = await waiting(room, ROOM), await waiting(room, LONG)
    large.cancel()
    assert await small == LONG
    assert (room.waiting, room.taken) == (0, 2 * LONG)


@pytest.mark.parametrize("first", ["leaves", "gives up"])
async def test_a_turn_that_comes_as_its_body_gives_up_is_not_lost(first: str) -> None:
    room = await full()
    task = await waiting(room, LONG)
    steps: list[Callable[[], object]] = [lambda: room.leave(ROOM), task.cancel]
    for step in steps if first == "leaves" else reversed(steps):
        step()
    with suppress(asyncio.CancelledError):
        await task
    assert (room.waiting, room.taken) == (0, 0)


async def test_too_many_do_not_wait() -> None:
    room = await full()
    tasks = [await waiting(room, LONG) for _ in range(64)]
    with pytest.raises(NoRoomError):
        await room.enter(LONG)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (room.waiting, room.taken) == (0, ROOM)
