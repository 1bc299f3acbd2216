"""Many mutated reviews, on all cores."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.judging import Tally, fuzzed

Fuzz = Callable[[str, int], Tally]
"""Has so many reviews of a seed answered; in another process."""

PART = 2500
"""Reviews of one seed; the n-th part has the n-th seed, whoever takes it."""


def run(
    seed: str,
    count: int,
    told: Callable[[int, Tally], None] | None = None,
    *,
    fuzz: Fuzz = fuzzed,
) -> Tally:
    """Have mutated reviews answered.

    Args:
        seed: The same seed and count make the same reviews.
        count: How many.
        told: Told of the number answered so far, and of what became of them, after each part.
        fuzz: Has them answered; without a server unless it is said.
    """
    tally, done = Tally(), 0
    sizes = [min(PART, count - start) for start in range(0, count, PART)]
    # Not by forking: the process may have threads.
    context = multiprocessing.get_context("spawn")
    processes = min(os.cpu_count() or 1, len(sizes))
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        parts = {
            pool.submit(fuzz, f"{seed}-{number}", size): size for number, size in enumerate(sizes)
        }
        for part in as_completed(parts):
            tally += part.result()
            done += parts[part]
            if told is not None:
                told(done, tally)
    return tally
