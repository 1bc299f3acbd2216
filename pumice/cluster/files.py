"""A file that is followed: what it says last that can be used is in force.

kubelet swaps whole folders under a mounted ConfigMap, an editor may rename or write in place, and a file may come long
after the process. So it is read every half second and compared; it is small. A file that cannot be used changes nothing.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from pathlib import Path

from pumice.cluster.clock import Clock, SystemClock

__all__ = ["FollowedFile", "UnusableFileError"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5


class UnusableFileError(Exception):
    """What a file says cannot be used; the text says why, in one line."""


class FollowedFile(ABC):
    """A file that is read again and again.

    Attributes:
        path: Where it is.
        problem: Why the file is not what is in force, or None when it is.
        kept: What to say of a file that cannot be used, while what it said before is in force.
        none: What to say of one that has never said anything usable.
    """

    kept: str
    none: str

    def __init__(self, path: Path, *, is_loaded: bool = False, clock: Clock | None = None) -> None:
        """Follow a file that need not be there yet; `look` and `run` read it.

        Args:
            path: Where it is.
            is_loaded: Whether something is in force before the first look.
            clock: Waits between two looks.
        """
        self.path = path
        self.problem: str | None = None
        self._clock = clock or SystemClock()
        self._seen: bytes | None = None
        self._is_loaded = is_loaded

    @abstractmethod
    def take(self, raw: bytes) -> None:
        """Put into force what the file says; may run in a thread of its own.

        Raises:
            UnusableFileError: It cannot be used; what was in force before stays.
        """

    def changed(self) -> None:
        """Called in the event loop when something else is in force, or when the problem is another one."""
        logger.debug("%s: %s", self.path, self.problem or "in force")

    def hold(self, why: str) -> None:
        """Note that what is in force is not what the file says."""
        self.problem = f"{why}; {self.kept if self._is_loaded else self.none}"

    def look(self) -> bool:
        """Read the file once; True if it says something else than before and that is in force now."""
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            self._seen = None
            self._missing(error)
            return False
        if raw == self._seen:
            return False
        self._seen = raw
        try:
            self.take(raw)
        except UnusableFileError as error:
            self.hold(f"{self.path}: {error}")
            return False
        self._is_loaded = True
        self.problem = None
        return True

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self._clock.sleep(_POLL_SECONDS)
            before = self.problem
            if await asyncio.to_thread(self.look) or self.problem != before:
                self.changed()

    def _missing(self, error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            why = "is gone" if self._is_loaded else "is not there yet"
        else:
            why = f"cannot be read: {error.strerror}"
        before = self.problem
        self.hold(f"{self.path}: {why}")
        if self.problem != before:
            logger.warning("%s", self.problem)
