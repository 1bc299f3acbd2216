"""Caches of functions whose first two arguments may be texts of users.

A text may be a megabyte long. A cache of thousands of results would keep as many of them, so long ones are not kept.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST = 512
"""Characters of the longest text whose result is kept; names, quantities and times are shorter."""


def remembered(
    most: int,
) -> Callable[[Callable[Concatenate[str, P], R]], Callable[Concatenate[str, P], R]]:
    """Keep the results of a function for the last texts, at most so many; the function is computed again for long texts."""

    def decorate(
        compute: Callable[Concatenate[str, P], R],
    ) -> Callable[Concatenate[str, P], R]:
        cached = lru_cache(maxsize=most)(compute)

        if len(signature(compute).parameters) == 1:  # without packed arguments a call costs half

            @wraps(compute)
            def call_one(text: str, /) -> R:
                if len(text) > _LONGEST:
                    return compute(text)  # type: ignore[call-arg]
                return cached(text)

            return call_one  # type: ignore[return-value]

        @wraps(compute)
        def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
            second = args[0] if args else ""
            if len(text) > _LONGEST or (isinstance(second, str) and len(second) > _LONGEST):
                return compute(text, *args, **kwargs)
            return cached(text, *args, **kwargs)  # type: ignore[arg-type]

        return call

    return decorate
