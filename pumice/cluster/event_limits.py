"""Limits of events: how many may be written about one object and in one namespace, so that the flood of one silences no other.

Both are token buckets. The tables are bounded: of the keys that were not asked about for longest, the bucket is forgotten, and is
full when they come again.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Rate", "TokenBuckets"]

K = TypeVar("K", bound=Hashable)

_ROUNDING = 1e-3
"""Part of a token that may lack: who sleeps as long as `wait` says must find one."""

_KEYS = 4096
"""Buckets that are remembered."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of tokens.

    Attributes:
        per_second: Tokens that a bucket gets back each second.
        burst: Tokens of a full bucket.
    """

    per_second: float
    burst: int


class TokenBuckets(Generic[K]):
    """A token bucket for each key; the time is an argument, in seconds, and never goes back."""

    def __init__(self, rate: Rate, keys: int = _KEYS) -> None:
        """All buckets are full; at most `keys` are remembered."""
        self._rate = rate
        self._keys = keys
        # The moment at which each bucket will be, or was, full: one number says all.
        self._full_at: OrderedDict[K, float] = OrderedDict()

    def __len__(self) -> int:
        """Number of buckets that are remembered."""
        return len(self._full_at)

    def wait(self, key: K, now: float) -> float:
        """Seconds until the bucket has a token; 0 if it has one."""
        missing = (self._full_at.get(key, -math.inf) - now) * self._rate.per_second
        lack = missing - (self._rate.burst - 1)
        return lack / self._rate.per_second if lack > _ROUNDING else 0.0

    def take(self, key: K, now: float) -> bool:
        """Take a token; False if there is none."""
        if self.wait(key, now) > 0:
            return False
        full_at = max(self._full_at.pop(key, now), now)
        self._full_at[key] = full_at + 1 / self._rate.per_second
        # A bucket that is full again says nothing.
        while len(self._full_at) > self._keys or next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)
        return True
