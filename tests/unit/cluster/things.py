"""Objects of a kind that only tests have, a cache that follows them, and what a subscriber of it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pumice.api.meta import ObjectMeta
from pumice.cluster.cache import WatchCache, wait_synced

PODS = "/api/v1/pods"


class Thing(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    size: int = 0


def thing(name: str, size: Any = 1, namespace: str = "ns") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "size": size}


def what_changed(old: object, new: object) -> str:
    return "ADDED" if old is None else "DELETED" if new is None else "MODIFIED"


class Diary:
    """A subscriber that notes what it is told."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, int | None, int | None]] = []

    def __call__(self, old: Thing | None, new: Thing | None) -> None:
        either = new or old
        assert either is not None
        self.entries.append(
            (
                what_changed(old, new),
                either.metadata.name,
                None if old is None else old.size,
                None if new is None else new.size,
            )
        )


@asynccontextmanager
async def running(cache: WatchCache[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(60):
            await wait_synced(cache)
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sizes(cache: WatchCache[Thing]) -> dict[str, int]:
    return {each.metadata.name: each.size for each in cache.values()}
