"""A budget of bytes for large request bodies.

A body stays in memory until its review is answered. Senders are not authenticated before their body is read, so the
number of bytes is limited. A large body takes its announced length from the budget, and waits if the budget is used up:
the API server then waits, up to its own deadline. Small bodies, which nearly all reviews have, take nothing; the limit
of connections bounds their number.
"""

import asyncio

__all__ = ["SMALL", "BodyBudget", "BudgetExceededError"]

SMALL = 64 * 1024
"""Bytes of a body that takes nothing from the budget."""

_MAX_WAITING = 64
"""Maximum number of waiting bodies; some hundred KiB of each may already be in memory."""


class BudgetExceededError(Exception):
    """No bytes are left, and too many bodies wait for them already."""


class BodyBudget:
    """A number of bytes that large bodies share, first come, first served.

    Attributes:
        size: Bytes of the budget.
        taken: Bytes that are in use.
        waiting: Bodies that wait for bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self.waiting = 0
        self._turn = asyncio.Lock()  # the first body in the queue; locks are fair
        self._released = asyncio.Event()

    async def acquire(self, announced: int) -> int:
        """Take bytes for a body of the announced length, and wait for them if necessary; returns what to `release`.

        A body larger than the budget takes all of it.

        Raises:
            BudgetExceededError: Too many bodies wait already.
        """
        if announced <= SMALL:
            return 0
        if self.waiting >= _MAX_WAITING:
            raise BudgetExceededError
        wanted = min(announced, self.size)
        self.waiting += 1
        try:
            async with self._turn:
                while self.taken + wanted > self.size:
                    self._released.clear()
                    await self._released.wait()
                self.taken += wanted
        finally:
            self.waiting -= 1
        return wanted

    def release(self, taken: int) -> None:
        """Return bytes to the budget."""
        self.taken -= taken
        self._released.set()
