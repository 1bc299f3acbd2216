"""Time as an argument: the only module of this package that reads the system clock.

Leases, refresh intervals and ages are decided against a `Clock`, so that tests set the time instead of waiting.

Delays between attempts (`Backoff`) grow by a factor up to a cap, and are shortened by a spread, so that many processes that lost
the same server do not reconnect at the same time. What a server asks for is lengthened by it, because the server asks all of them
for the same. The spread is not random: it is computed from a seed (with the process's `identity`) and the attempt.
"""

import asyncio
import os
import socket
import time
import zlib
from typing import Protocol

import msgspec


class Clock(Protocol):
    """Interface for code that waits or measures time."""

    def wall(self) -> float:
        """The current time in UNIX seconds; it jumps when the system clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back. For intervals only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def wall(self) -> float:
        """The current time in UNIX seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an arbitrary point."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Backoff(msgspec.Struct, frozen=True):
    """A schedule of delays.

    Attributes:
        base: Delay before the first retry, in seconds.
        cap: Longest delay, in seconds; what a server asks for is cut to it before the spread is added.
        factor: Growth from one attempt to the next.
        spread: Share of a delay, 0 to 1, by which it may be shortened, or lengthened if a server asked for it.
        seed: A value that differs between processes.
    """

    base: float = 0.2
    cap: float = 30.0
    factor: float = 2.0
    spread: float = 0.3
    seed: str = ""

    def delay(self, attempt: int, asked: float | None = None) -> float:
        """Seconds to wait before a retry.

        Args:
            attempt: Number of the retry, which counts from 0.
            asked: Seconds that the server asked for (Retry-After); the delay is at least that, up to the cap, and longer
                by the spread.
        """
        # Past the cap the exponent no longer matters; bounding it keeps the power finite.
        full = min(self.cap, self.base * self.factor ** min(attempt, 64))
        fraction = zlib.crc32(f"{self.seed}/{attempt}".encode(errors="replace")) / 0xFFFFFFFF
        wanted = min(asked or 0.0, self.cap)
        return max(full * (1.0 - self.spread * fraction), wanted * (1.0 + self.spread * fraction))


def identity() -> str:
    """A name that no other process has: candidates for a lease have it, and seeds begin with it."""
    return f"{socket.gethostname()}_{os.getpid()}"
