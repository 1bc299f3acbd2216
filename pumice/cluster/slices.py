"""Processing of many objects in slices, between which the event loop runs other tasks.

A list of 140,000 pods takes seconds to decode and to report. With slices, a Lease renewal, a response or a health probe
waits a few milliseconds at most. The size of a slice is a number of objects and not a time, so that a test can check
it.

Such objects live long, and Python's garbage collector would scan all of them repeatedly, for a second each time. So
they are frozen: `gc.freeze` excludes all existing objects from collection, in constant time. A frozen object is still
freed with its last reference; for frozen objects that refer to each other there is `collect_frozen`.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

SLICE_OBJECTS = 50
"""Objects of one slice; decoding a pod or adding it to the scheduler's state takes about 30 µs."""


async def in_slices(objects: Iterable[T]) -> AsyncIterator[T]:
    """Yield objects; after each slice freeze existing objects and let the event loop run."""
    for number, each in enumerate(objects, 1):
        yield each
        if number % SLICE_OBJECTS == 0:
            gc.freeze()
            await asyncio.sleep(0)


def collect_frozen() -> None:
    """Free frozen objects that nothing but each other refers to. With 140,000 pods this blocks the event loop for a second."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
