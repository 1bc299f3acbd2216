"""Whether the main event loop still turns, for those who ask from another thread.

A scheduling cycle and a pass of a controller are calls that the loop waits for. One that does not end stops everything but the
threads beside it: the Lease would be renewed and `/healthz` would answer for ever. So they ask here.
"""

import logging
import sys
import threading
import traceback

from pumice.cluster.clock import Clock, SystemClock

__all__ = ["STALL_SECONDS", "Heartbeat"]

logger = logging.getLogger(__name__)

STALL_SECONDS = 60.0
"""How long the loop may stand still. More than a scheduling cycle may take, be it about one large gang."""

_LONGEST_PAUSE = 1.0
"""Seconds between two beats, at most."""


class Heartbeat:
    """Notes that an event loop turns, while `run` runs in it."""

    def __init__(self, limit: float = STALL_SECONDS, clock: Clock | None = None) -> None:
        """A loop that may stand still for `limit` seconds.

        The clock is the machine's, whatever time a component works by, because this is about the process.
        """
        self._limit = limit
        self._clock = clock or SystemClock()
        self._beat: float | None = None
        self._thread = 0
        self._logged = False

    async def run(self) -> None:
        """Beat until cancelled; call it in the loop that is observed."""
        self._thread = threading.get_ident()
        try:
            while True:
                self._beat, self._logged = self._clock.monotonic(), False
                await self._clock.sleep(min(_LONGEST_PAUSE, self._limit / 4))
        finally:
            self._beat = None

    def problem(self) -> str | None:
        """Why the loop counts as hung, or None while it turns or does not run; from any thread.

        The first time the log says where the loop stands.
        """
        beat = self._beat
        if beat is None or (still := self._clock.monotonic() - beat) <= self._limit:
            return None
        text = f"the event loop has stood still for {still:.0f} s"
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - public, by its documentation
        if frame is not None and not self._logged:
            self._logged = True
            logger.error("%s, in\n%s", text, "".join(traceback.format_stack(frame)))
        return text
