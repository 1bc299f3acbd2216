"""A controller that is killed at a write, and the one that takes over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pumice.api.kinds import EVENT, Kind
from pumice.cluster.client import Client
from tests.integration.controller.stage import ControllerStage

Raw = dict[str, Any]


class MortalClient(Client):
    """Counts writes, and never answers again once it has come to a given one.

    How many writes of a status it takes to tell a scenario depends on how fast everybody is; what is created and
    deleted is certain.
    """

    writes = 0
    certain = 0
    last: int | None = None
    after = False
    dead: asyncio.Event

    async def _mortal(self, kind: Kind, write: Callable[[], Awaitable[Raw]]) -> Raw:
        if kind == EVENT:
            return await write()
        number, self.writes = self.writes, self.writes + 1
        if self.last is None or number < self.last:
            return await write()
        if number == self.last and self.after:
            await write()
        self.dead.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def create(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        self.certain += kind != EVENT
        return await self._mortal(
            kind, lambda: super(MortalClient, self).create(kind, *args, **named)
        )

    async def patch(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        return await self._mortal(
            kind, lambda: super(MortalClient, self).patch(kind, *args, **named)
        )

    async def delete(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        self.certain += 1
        return await self._mortal(
            kind, lambda: super(MortalClient, self).delete(kind, *args, **named)
        )

    async def until_dead_or(self, end: asyncio.Task[None]) -> None:
        """Wait until the write is reached, or until a scenario has ended."""
        dying = asyncio.create_task(self.dead.wait())
        await asyncio.wait([end, dying], return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()


async def play(
    stage: ControllerStage,
    mortal: MortalClient,
    end: asyncio.Task[None],
    controllers: frozenset[str],
) -> None:
    """Run a controller until a scenario has ended, and another one if the first is killed before."""
    async with stage.controller(mortal, controllers=controllers):
        await mortal.until_dead_or(end)
    if mortal.dead.is_set():
        async with stage.controller(controllers=controllers):
            await end
    await end
