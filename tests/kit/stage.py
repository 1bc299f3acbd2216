"""Where the test of a component takes place: an API server in memory, with the parts that the test plays itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pumice.api.crds import all_crds
from pumice.api.kinds import POD, Kind
from pumice.cluster.client import Client
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.lifecycle import run_until_stopped
from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.kit.quick_loop import wall
from tests.kit.waiting import until

Raw = dict[str, Any]
W = TypeVar("W", bound=ElectedWorker[Any, Any])

TURNS = 30
"""Of the event loop, at least, before it is said that nothing happens: a machine that stands still for a
moment says nothing."""


def quick_cluster() -> EmbeddedCluster:
    """An API server with our kinds, whose pods start and stop at once."""
    timings = NodeTimings(start=0.0, stop=0.0)
    return EmbeddedCluster(all_crds(), timings=timings, clock=wall)


class Stage:
    """An API server, a client of it, and a namespace."""

    def __init__(
        self, cluster: EmbeddedCluster, client: Client, namespace: str = "default"
    ) -> None:
        self.cluster = cluster
        self.store = cluster.store
        self.client = client
        self.namespace = namespace

    @asynccontextmanager
    async def alive(self, worker: W) -> AsyncIterator[W]:
        """Run a component for as long as the block lasts; it is cancelled without warning, as a killed process is."""
        running = asyncio.create_task(run_until_stopped(worker.tasks(), signals=()))
        try:
            yield worker
        finally:
            running.cancel()
            result = (await asyncio.gather(running, return_exceptions=True))[0]
            if isinstance(result, Exception):
                raise result

    def all(self, kind: Kind) -> list[Raw]:
        return self.store.list(kind, self.namespace)

    def names(self, kind: Kind) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.all(kind)]

    def find(self, kind: Kind, name: str) -> Raw:
        """An object; an empty one when there is none."""
        return self.store.get(kind, name, self.namespace) or {}

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        await until(holds, what, around=self.summary)

    def summary(self) -> str:
        """What there is, for a test that fails."""
        pods = (
            f"{each['metadata']['name']} {each.get('status', {}).get('phase')} on {each['spec'].get('nodeName')}"
            for each in self.all(POD)
        )
        return f"pods: {', '.join(pods) or 'none'}"

    async def still(self, seconds: float = 0.5) -> bool:
        """Whether nothing at all is written for some time, in which everybody has had a turn."""
        before = self.store.storage.revision
        for _ in range(TURNS):
            await asyncio.sleep(seconds / TURNS)
            if self.store.storage.revision != before:
                return False
        return True

    async def calm(self, seconds: float = 0.15) -> None:
        """Wait until nothing has been written for some time."""
        await until(lambda: self.still(seconds), "nothing is written")
