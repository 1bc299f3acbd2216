"""A component at work in a test, which ends as a killed process does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pumice.cluster.lifecycle import Eternal, run_until_stopped

__all__ = ["alive"]


@asynccontextmanager
async def alive(tasks: Sequence[Eternal]) -> AsyncIterator[None]:
    """Run a worker's tasks for as long as the block lasts; they are cancelled without warning."""
    running = asyncio.create_task(run_until_stopped(tasks, signals=()))
    try:
        yield
    finally:
        running.cancel()
        result = (await asyncio.gather(running, return_exceptions=True))[0]
        if isinstance(result, Exception):
            raise result
