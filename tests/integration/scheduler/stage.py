"""Where an integration test of the scheduler takes place."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.kinds import EVENT, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.cluster.embedded import EmbeddedCluster
from pumice.scheduler import load_config
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings
from tests.builders import pod, pod_group
from tests.integration.workers import alive
from tests.kit.waiting import until

Raw = dict[str, Any]

PERIOD = 0.05
"""Seconds between two cycles; short, so that a test sees many."""

TURNS = 30
"""Of the event loop, at least, before it is said that nothing happens: a machine that stands still for a
moment says nothing."""


class Stage:
    """A cluster and a client."""

    def __init__(self, cluster: EmbeddedCluster, client: Client) -> None:
        self.cluster = cluster
        self.store = cluster.store
        self.client = client

    @asynccontextmanager
    async def scheduler(
        self, client: Client | None = None, **settings: Any
    ) -> AsyncIterator[SchedulerWorker]:
        """A scheduler for as long as the block lasts; it is cancelled without warning."""
        wanted = WorkerSettings(**({"period": PERIOD} | settings))
        worker = SchedulerWorker(client or self.client, load_config(None), wanted)
        async with alive(worker.tasks()):
            yield worker

    def gang(
        self, name: str, size: int, cpu: str = "1", queue: str = "default", **fields: Any
    ) -> None:
        """Create a PodGroup and its pods."""
        group = pod_group(name, size, queue=queue)
        self.store.create(group)
        for number in range(size):
            self.store.create(self.pod(f"{name}-{number}", group=name, cpu=cpu, **fields))

    def pod(self, name: str, **fields: Any) -> Raw:
        """A pod as a user writes it."""
        made = pod(name, **fields)
        del made["status"], made["metadata"]["uid"]
        return made

    def nodes_of(self, name: str) -> list[str]:
        """Nodes of the pods whose name begins so, in the order of their names; empty for none."""
        return [
            each["spec"].get("nodeName", "")
            for each in self.store.list(POD)
            if each["metadata"]["name"].startswith(f"{name}-")
        ]

    def phase(self, name: str) -> str:
        group = self.store.get(POD_GROUP, name, "default") or {}
        return str((group.get("status") or {}).get("phase", ""))

    def conditions(self, name: str) -> dict[str, Raw]:
        """Conditions of a PodGroup by type."""
        group = self.store.get(POD_GROUP, name, "default") or {}
        found = (group.get("status") or {}).get("conditions") or []
        return {each["type"]: each for each in found}

    def pod_condition(self, name: str) -> Raw:
        """The condition `PodScheduled` of a pod."""
        found = self.store.get(POD, name, "default") or {}
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == "PodScheduled"), {})

    def events(self, reason: str) -> list[Raw]:
        return [each for each in self.store.list(EVENT) if each["reason"] == reason]

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        await until(holds, what, around=self.story)

    def story(self) -> str:
        """Who is where, for a test that fails."""
        phases = {
            each["metadata"]["name"]: each.get("status") for each in self.store.list(POD_GROUP)
        }
        nodes = {
            each["metadata"]["name"]: each["spec"].get("nodeName") for each in self.store.list(POD)
        }
        return f"PodGroups are {phases}, pods on {nodes}"

    async def still(self, seconds: float = 10 * PERIOD) -> bool:
        """Whether nothing at all is written for some time, in which everybody has had a turn."""
        before = self.store.storage.revision
        for _ in range(TURNS):
            await asyncio.sleep(seconds / TURNS)
        return self.store.storage.revision == before

    async def calm(self) -> None:
        """Wait until nothing is written any more."""
        await until(lambda: self.still(3 * PERIOD), "nothing is written")
