"""Reviews all the time, of which none may fail."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

PAUSE_SECONDS = 0.05
"""After a review. Twenty a second by each worker find a gap; more would only take processor time from other tests."""


class Load:
    """Reviews, one after the other, with a short pause between them.

    Attributes:
        reviews: How many were answered.
        failures: What went wrong with the others.
    """

    def __init__(self, review: Callable[[], Awaitable[None]]) -> None:
        self.reviews = 0
        self.failures: list[str] = []
        self.ending = False
        self._review = review

    async def run(self) -> None:
        while not self.ending:
            try:
                await self._review()
            except Exception as error:
                self.failures.append(f"{datetime.now():%H:%M:%S.%f} {error}")
                await asyncio.sleep(0.1)
            else:
                self.reviews += 1
                await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def loading(
    review: Callable[[], Awaitable[None]],
    workers: int = 3,
    tails: Callable[[], str] = str,
) -> AsyncIterator[Load]:
    """Review for as long as the block lasts; then none may have failed.

    Args:
        review: Raises what goes wrong.
        workers: How many at a time.
        tails: What to show beside a failure.
    """
    load = Load(review)
    tasks = [asyncio.create_task(load.run()) for _ in range(workers)]
    try:
        yield load
    finally:
        load.ending = True
        await asyncio.gather(*tasks)
    failed = f"{len(load.failures)} of {load.reviews + len(load.failures)} failed"
    assert not load.failures, "\n".join([failed, *load.failures[:5], tails()])
    assert load.reviews > 0
