"""Time as an argument: the only module of this package that reads the system clock.

Leases, refresh intervals and ages are decided against a `Clock`, so that tests set the time instead of waiting.
"""

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


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
