"""A clock that moves when the test says so, or by exactly what is slept."""

import asyncio


class ManualClock:
    """Time that passes only by `advance` and, for sleepers, when it reaches them."""

    def __init__(self, moment: float = 1_800_000_000.0) -> None:
        self.now = moment
        self._start = moment
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - self._start

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        entry = (self.now + seconds, woken)
        self._sleepers.append(entry)
        try:
            await woken.wait()
        finally:
            self._sleepers.remove(entry)

    @property
    def sleeping(self) -> int:
        return len(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move the time, waking sleepers in the order of their moments."""
        goal = self.now + seconds
        while due := sorted(
            (entry for entry in self._sleepers if entry[0] <= goal and not entry[1].is_set()),
            key=lambda entry: entry[0],
        ):
            self.now = max(self.now, due[0][0])
            due[0][1].set()
            await settle()
        self.now = goal
        await settle()


class FastClock(ManualClock):
    """A clock whose sleepers never wait: what they sleep is added to the time, and noted."""

    def __init__(self, moment: float = 1_800_000_000.0) -> None:
        super().__init__(moment)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def settle() -> None:
    """Let everything that can run, run; sockets on loopback included.

    Turns of the event loop are counted: in time alone, a machine that stands still gives nobody a turn.
    """
    for _ in range(25):
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0.001)
