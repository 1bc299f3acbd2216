"""A controller that is killed at a write, and the one that takes over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pumice.api.kinds import EVENT, Kind
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
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


M = TypeVar("M", bound=MortalClient)


@asynccontextmanager
async def mortal_client(
    cluster: EmbeddedCluster, of: type[M], last: int | None, *, after: bool
) -> AsyncIterator[M]:
    """A client that is killed at a write, before or after it is carried out."""
    async with of.connect(server=cluster.url) as mortal:
        assert isinstance(mortal, of)
        mortal.last, mortal.after, mortal.dead = last, after, asyncio.Event()
        yield mortal


@asynccontextmanager
async def mortal_stage(
    cluster: EmbeddedCluster,
    namespace: str,
    last: int | None,
    *,
    after: bool,
    alive: type[Client] = Client,
    of: type[M],
) -> AsyncIterator[tuple[ControllerStage, M]]:
    """A new namespace, and the client of a controller in it that is killed at a write."""
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    async with (
        alive.connect(server=cluster.url) as client,
        mortal_client(cluster, of, last, after=after) as mortal,
    ):
        yield ControllerStage(cluster, client, namespace), mortal


async def play(
    stage: ControllerStage,
    mortal: MortalClient,
    scenario: Coroutine[Any, Any, None],
    controllers: frozenset[str],
) -> None:
    """Run a controller until a scenario has ended, and another one if the first is killed before; pods are scheduled."""
    playing, end = asyncio.create_task(stage.schedule()), asyncio.create_task(scenario)
    try:
        async with stage.controller(mortal, controllers=controllers):
            await mortal.until_dead_or(end)
        if mortal.dead.is_set():
            async with stage.controller(controllers=controllers):
                await end
        await end
    finally:
        playing.cancel()
        end.cancel()
        await asyncio.gather(playing, end, return_exceptions=True)
