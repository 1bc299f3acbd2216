"""Time as an argument: the one place of this package that asks the machine what time it is.

Leases, refresh intervals and ages are decided against a `Clock`, so that tests move the time instead
of waiting for it.
"""

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """What code that waits or measures may ask."""

    def wall(self) -> float:
        """The moment, in UNIX seconds; may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back. For intervals only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def wall(self) -> float:
        """The moment, in UNIX seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
