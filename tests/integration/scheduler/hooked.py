"""A client that lets a test act just before a write, and what tests of writes look at."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.api.kinds import POD, Kind
from pumice.cluster.client import Client, Object
from pumice.scheduler.worker import SchedulerWorker, loop
from tests.integration.scheduler.stage import SchedulerStage

Hook = Callable[..., Coroutine[Any, Any, None]]


class Hooked(Client):
    """A client that lets the test act before a write is sent."""

    def __init__(self, stage: SchedulerStage) -> None:
        super().__init__(stage.client.connection)
        self.before_bind: Hook | None = None
        self.before_evict: Hook | None = None
        self.before_patch: Hook | None = None
        self.after_get: Hook | None = None
        self.binds: list[tuple[str, str]] = []
        self.evictions: list[str] = []

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.binds.append((pod, node))
        if self.before_bind is not None:
            await self.before_bind(pod, node)
        await super().bind(namespace, pod, node, uid, annotations)

    async def evict(self, namespace: str, pod: str, *, uid: str | None = None) -> None:
        self.evictions.append(pod)
        if self.before_evict is not None:
            await self.before_evict(pod)
        await super().evict(namespace, pod, uid=uid)

    async def get(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        found = await super().get(kind, name, *arguments, **named)
        if self.after_get is not None and kind == POD:
            await self.after_get(name)
        return found

    async def patch(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        if self.before_patch is not None:
            await self.before_patch(kind, name, arguments[1])
        return await super().patch(kind, name, *arguments, **named)


def sample(worker: SchedulerWorker, name: str, **labels: str) -> float:
    return worker.metrics.registry.get_sample_value(f"pumice_scheduler_{name}", labels) or 0.0


@asynccontextmanager
async def leaderships(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[loop._Leadership]]:
    """The leaderships that begin within the block."""
    begun: list[loop._Leadership] = []

    class Noted(loop._Leadership):
        def __init__(self, worker: SchedulerWorker) -> None:
            super().__init__(worker)
            begun.append(self)

    monkeypatch.setattr(loop, "_Leadership", Noted)
    yield begun
