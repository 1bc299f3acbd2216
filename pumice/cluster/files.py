"""A file that is read repeatedly: its last valid content is in effect.

kubelet swaps whole folders under a mounted ConfigMap, an editor may rename or write in place, and a file may be created
long after the process starts. So the file, which is small, is read and compared every half second. An invalid file has
no effect.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from pathlib import Path

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.connection import ConfigurationError, contents

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5


class UnusableFileError(Exception):
    """The content of a file is invalid; the text says why, in one line."""


class FollowedFile(ABC):
    """A file that is read at intervals.

    Attributes:
        path: Path of the file.
        problem: Why the content of the file is not in effect, or None if it is.
        kept: Log message about an invalid file while its previous content is in effect.
        none: Log message about a file that was never valid.
    """

    kept: str
    none: str

    def __init__(self, path: Path, *, is_loaded: bool = False, clock: Clock | None = None) -> None:
        """Follow a file that need not exist yet; `look` and `run` read it.

        Args:
            path: Path of the file.
            is_loaded: Whether a content is in effect before the first read.
            clock: Waits between two reads.
        """
        self.path = path
        self.problem: str | None = None
        self._clock = clock or SystemClock()
        self._seen: bytes | None = None
        self._is_loaded = is_loaded

    def began_with(self, raw: bytes) -> None:
        """Set the content that was read before the file was followed."""
        self._seen = raw

    @abstractmethod
    def take(self, raw: bytes) -> None:
        """Put the content into effect; may run in a thread.

        Raises:
            UnusableFileError: The content is invalid; the previous one stays in effect.
        """

    def changed(self) -> None:
        """Called in the event loop when another content is in effect, or when the problem has changed."""
        logger.debug("%s: %s", self.path, self.problem or "in effect")

    def hold(self, why: str) -> None:
        """Record that the content of the file is not in effect."""
        self.problem = f"{why}; {self.kept if self._is_loaded else self.none}"

    def look(self) -> bool:
        """Read the file once; True if a changed content is in effect now."""
        try:
            raw = contents(self.path)
        except (OSError, ConfigurationError) as error:
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
        except Exception as error:  # an invalid file must not change what is in effect
            logger.exception("%s: cannot be used", self.path)
            self.hold(f"{self.path}: cannot be used: {type(error).__name__}: {error}")
            return False
        self._is_loaded = True
        self.problem = None
        return True

    async def run(self) -> None:
        """Read the file at intervals until cancelled."""
        while True:
            await self._clock.sleep(_POLL_SECONDS)
            before = self.problem
            if await asyncio.to_thread(self.look) or self.problem != before:
                self.changed()

    def _missing(self, error: OSError | ConfigurationError) -> None:
        if isinstance(error, FileNotFoundError):
            why = f"{self.path}: {'is gone' if self._is_loaded else 'is not there yet'}"
        elif isinstance(error, OSError):
            why = f"{self.path}: cannot be read: {error.strerror}"
        else:
            why = str(error)
        before = self.problem
        self.hold(why)
        if self.problem != before:
            logger.warning("%s", self.problem)
