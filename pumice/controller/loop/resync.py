"""Every object is looked at again once in ten minutes, although nothing about it seems to have changed.

Controllers act on what watches report, and a wake-up that is due at some time is a timer. An event that is lost by a defect, or a timer
of a machine whose clock is set, would leave an object as it is until something else changes. So all keys are queued in turn, a few
each second: there is no burst, and nothing is written for an object that is as it should be.
"""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from pumice.cluster.clock import Clock

__all__ = ["RESYNC_SECONDS", "resync"]

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)

RESYNC_SECONDS = 600.0
"""How long until all objects have been looked at again."""

SLICE_SECONDS = 1.0
"""Shortest time between two slices of keys."""


async def resync(
    keys: Callable[[], Iterable[K]],
    add: Callable[[K], None],
    clock: Clock,
    *,
    seconds: float | None = None,
) -> None:
    """Queue all keys once in each round, until cancelled.

    The order of the keys is kept from round to round as far as `keys` keeps it, so the time between two turns of a key is about
    one round. Keys that come during a round are looked at for their own event, and are part of the next.

    Args:
        keys: Gives all keys, at the beginning of a round.
        add: Queues a key.
        clock: Waits.
        seconds: Length of a round; `RESYNC_SECONDS` if None.
    """
    length = RESYNC_SECONDS if seconds is None else seconds
    while True:
        begun = clock.monotonic()
        try:
            turn = list(keys())
        except Exception:  # nothing depends on a round: objects have their own events
            logger.exception("the keys of a round cannot be listed")
            turn = []
        slices = max(1, min(len(turn), int(length / SLICE_SECONDS)))
        for number in range(1, slices + 1):
            await clock.sleep(begun + length * number / slices - clock.monotonic())
            for key in turn[len(turn) * (number - 1) // slices : len(turn) * number // slices]:
                add(key)
