"""What tests of failing code ask: whether a call is about the object at which it is to fail, and whether it is tried again ever later."""

import re
from collections.abc import Sequence
from itertools import pairwise

_BAD = re.compile(r"(?<![0-9a-fx])bad(?![0-9a-f])")
"""The word, which is a hexadecimal number as well: uids and addresses of objects have it in them now and then."""


def is_about_bad(about: object) -> bool:
    """Whether something names an object `bad`, as `default/bad-0` does."""
    return _BAD.search(str(about)) is not None


def pauses_grow(tries: Sequence[float], least: float, number: int = 3) -> bool:
    """Whether the last pauses double from `least`, or are longer, as on a busy machine.

    Args:
        tries: Moments, in seconds.
        least: The first of these pauses, in seconds, at least.
        number: How many there are.
    """
    pauses = [later - earlier for earlier, later in pairwise(tries)][-number:]
    return len(pauses) == number and all(
        pause >= least * 2**power for power, pause in enumerate(pauses)
    )
