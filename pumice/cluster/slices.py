"""Many objects are taken in a slice at a time; between two slices the event loop turns.

A list of 140,000 pods takes seconds to decode and to report. In slices, the renewal of a Lease, an answer or a health probe waits
for a few milliseconds at most. A slice is counted in objects and not in time, so that a test can check it.

Objects that arrive in such numbers stay for long. Python's garbage collector would look at all of them again and again, for a
second each time. They are frozen instead: `gc.freeze` takes what exists out of the collector's sight, in constant time. An
object that is frozen is still freed with its last reference.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

__all__ = ["SLICE_OBJECTS", "in_slices"]

T = TypeVar("T")

SLICE_OBJECTS = 50
"""Objects of one slice; decoding a pod or adding it to the scheduler's state takes about 30 µs."""


async def in_slices(objects: Iterable[T]) -> AsyncIterator[T]:
    """Yield objects; after each slice what exists is frozen and the event loop turns."""
    for number, each in enumerate(objects, 1):
        yield each
        if number % SLICE_OBJECTS == 0:
            gc.freeze()
            await asyncio.sleep(0)
