"""Who has to go when there are too many connections.

Anybody who reaches the port can open connections, and each costs memory and a descriptor. An API server
must get through nevertheless, so a new connection is let in, and the one that is missed least ends: one
that never asked anything, else the one that has been idle for longest, else one whose request has been
arriving for longest, since an API server sends its own at once. Reviews that are being judged stay.
"""

import logging
import resource
import time
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Protocol

__all__ = ["Crowd", "Member", "State", "affordable"]

logger = logging.getLogger(__name__)

_SPARE_DESCRIPTORS = 64
"""For what is no connection of a client: logs, files, the API server."""

_TELL_SECONDS = 60.0
"""How often it is said that connections had to go, at most."""


class State(IntEnum):
    """What a connection is about, the most dispensable first."""

    UNUSED = 0
    IDLE = 1
    ARRIVING = 2
    JUDGED = 3


class Member(Protocol):
    """A connection, as far as it matters here."""

    @property
    def state(self) -> State:
        """What it is about."""

    @property
    def since(self) -> float:
        """Since when, in seconds of any one clock."""

    def drop(self) -> None:
        """End, without a word."""


class Crowd:
    """Keeps the number of connections below a limit.

    Attributes:
        limit: How many there may be.
    """

    def __init__(
        self,
        limit: int,
        dropped: Callable[[str], None],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let nobody in yet.

        Args:
            limit: How many there may be.
            dropped: Told of each connection that had to go, with why.
            seconds: The time.
        """
        self.limit = limit
        self._dropped = dropped
        self._seconds = seconds
        self._told = float("-inf")
        self._untold = 0

    def let_in(self, new: Member, others: Iterable[Member]) -> None:
        """Have somebody go for a new connection: the most dispensable, or itself when all others are needed."""
        found = [each for each in others if each is not new]
        if len(found) < self.limit:
            return
        least = min(found, key=lambda each: (each.state, each.since))
        (new if least.state is State.JUDGED else least).drop()
        self._dropped("crowded")
        self._tell()

    def _tell(self) -> None:
        self._untold += 1
        now = self._seconds()
        if now - self._told >= _TELL_SECONDS:
            text = "there are %d connections, which is the limit; %d had to go since this was last said"
            logger.warning(text, self.limit, self._untold)
            self._told, self._untold = now, 0


def affordable(limit: int, listeners: int) -> int:
    """How many connections each of some listeners may have, as descriptors go.

    Without one a client is turned away by the kernel, and nobody hears of it.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limit
    return max(1, min(limit, (soft - _SPARE_DESCRIPTORS) // listeners))
