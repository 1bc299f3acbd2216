"""A user of a real cluster who submits Jobs, and what each of them waits for until its pods run.

Pods of this user run as soon as they are bound, as on nodes with a kubelet of their own: kwok plays all nodes of the test
control plane through one queue, so that the pods of others would hold them up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pumice.api.kinds import JOB, POD
from pumice.api.meta import version_number
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.client import Client
from pumice.cluster.errors import NotFound

Raw = dict[str, Any]

LIMIT_SECONDS = 300.0
"""How long a Job is waited for."""


@dataclass(frozen=True)
class Wait:
    """The time from the submission of a Job until its status says that all pods run.

    Attributes:
        seconds: By the clock.
        writes: In writes that the API server carried out in this time for anybody, of any kind.
    """

    seconds: float
    writes: int


class Tenant:
    """A namespace and its user; create it with `of`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._jobs: WatchCache[Raw] = WatchCache(client, JOB, dict, namespace=namespace)
        self._pods = WatchCache(client, POD, Pod, namespace=namespace)
        self._starts: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def of(cls, client: Client, namespace: str) -> AsyncIterator[Tenant]:
        """A user of a namespace that exists, for as long as the block lasts."""
        tenant = cls(client, namespace)
        caches = tenant._jobs, tenant._pods
        tenant._jobs.subscribe(tenant._note_job)
        tenant._pods.subscribe(tenant._note_pod)
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(each.run()) for each in caches]
            await wait_synced(*caches)
            yield tenant
            for task in (*watches, *tenant._starts):
                task.cancel()

    async def run(self, manifest: Raw) -> Wait:
        """Submit a Job, and wait until all of its pods run."""
        pods = sum(each["replicas"] for each in manifest["spec"]["tasks"])
        start = time.monotonic()
        made = await self._client.create(JOB, manifest, self._namespace)
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                self._news.clear()
                found = self._jobs.get(made["metadata"]["name"], self._namespace) or {}
                if (found.get("status") or {}).get("running") == pods:
                    break
                await self._news.wait()
        versions = (version_number(each["metadata"]["resourceVersion"]) for each in (made, found))
        first, last = versions
        return Wait(time.monotonic() - start, last - first)

    def _note_job(self, *_: object) -> None:
        self._news.set()

    def _note_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name or (old is not None and old.spec.node_name):
            return
        task = asyncio.create_task(self._start(new.metadata.name))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start(self, name: str) -> None:
        """Let a pod run, as its kubelet does."""
        status = {"status": {"phase": "Running"}}
        try:
            await self._client.patch(POD, name, self._namespace, status, subresource="status")
        except NotFound:
            return
