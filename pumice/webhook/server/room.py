"""Room for bodies: how many bytes of them may be arriving, or be judged, at once.

A body lies in memory until its last byte is there, and who sends it slowly, or says that it will be
long and sends nothing, need not be an API server. So long ones take room for as much as they announce,
and wait for their turn where there is none: an API server waits with them, until its own deadline,
whereas many of its users would read of a failure. Short ones, as nearly all reviews are, pass; the
number of connections is bound enough for them.
"""

import asyncio
from collections import deque

__all__ = ["SHORT", "NoRoomError", "Room"]

SHORT = 64 * 1024
"""Bytes of a body that takes no room."""

_LONGEST_QUEUE = 64
"""Who waits has sent the beginning of a body already, up to some hundred KiB."""


class NoRoomError(Exception):
    """There is no room, and too many wait for it already."""


class Room:
    """A number of bytes, some of them taken.

    Attributes:
        size: Bytes that there are.
        taken: Bytes that are taken.
    """

    def __init__(self, size: int) -> None:
        """An empty room of so many bytes."""
        self.size = size
        self.taken = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """How many bodies wait for their turn."""
        return len(self._queue)

    async def enter(self, announced: int) -> int:
        """Take room for a body, first come, first served.

        Args:
            announced: Bytes that it will have; one that is larger than the room takes all of it.

        Returns:
            What is to be given back to `leave`.

        Raises:
            NoRoomError: Too many wait already.
            asyncio.CancelledError: Its sender waits no longer; nothing is taken.
        """
        if announced <= SHORT:
            return 0
        wanted = min(announced, self.size)
        if not self._queue and self.taken + wanted <= self.size:
            self.taken += wanted
            return wanted
        if len(self._queue) >= _LONGEST_QUEUE:
            raise NoRoomError
        place = wanted, asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place[1]
        except asyncio.CancelledError:
            if not place[1].cancelled():
                self.leave(wanted)  # its turn came in the moment in which it gave up
            elif place in self._queue:
                self._queue.remove(place)
                self._let_in()  # it may have held up those behind it
            raise
        return wanted

    def leave(self, taken: int) -> None:
        """Give room back."""
        self.taken -= taken
        self._let_in()

    def _let_in(self) -> None:
        while self._queue and self.taken + self._queue[0][0] <= self.size:
            wanted, turn = self._queue.popleft()
            if not turn.done():
                self.taken += wanted
                turn.set_result(None)
