"""The loop for what plugins want beside the pods of other controllers.

Indexed Jobs, JobSets and LeaderWorkerSets are watched as far as plugins look at them. A cluster need not
have the latter two: their caches wait until it does, and nothing waits for them.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pumice.api import keys
from pumice.api.kinds import NATIVE, Kind
from pumice.api.meta import Raw
from pumice.cluster.backoff import Backoff
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.events import Reference
from pumice.cluster.sent import SentRequests
from pumice.cluster.workqueue import WorkQueue
from pumice.controller.loop.caches import OBJECT_KINDS
from pumice.controller.loop.execution import OUTAGE_SECONDS, Executor
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.native import plan_native
from pumice.controller.plan import Plan, RecordEvent
from pumice.plugins import Registry
from pumice.plugins.native import OWNERS, NativeWirings, Owner, OwnerKey

__all__ = ["NativeCaches", "NativeTerm"]

_FINDS_SECONDS = 1.0
_BY_OWNER = "owner"
_FEW_PODS = 1_000
"""Up to so many, a pass over an owner does not hold the loop up for long."""


class NativeCaches:
    """What is watched.

    Attributes:
        owners: Objects of other controllers by kind.
        objects: Objects that plugins want for them by kind, raw.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str | None = None,
        clock: Clock | None = None,
        wanted: Sequence[Kind] = OBJECT_KINDS,
    ) -> None:
        """Describe the caches; each must `run`.

        Args:
            client: Session with the API server.
            namespace: Watch this namespace only; all when None.
            clock: Waits between attempts.
            wanted: Kinds of the objects.
        """
        self.owners: dict[Kind, WatchCache[Any]] = {
            kind: WatchCache(client, kind, type_, namespace=namespace, clock=clock, optional=True)
            for kind, type_ in OWNERS.items()
        }
        self.objects: dict[Kind, WatchCache[Raw]] = {
            kind: WatchCache(
                client, kind, dict, namespace=namespace, label_selector=keys.WIRED_FOR, clock=clock
            )
            for kind in wanted
        }
        for cache in self.objects.values():
            cache.index(_BY_OWNER, _owner_keys)

    @property
    def all(self) -> tuple[WatchCache[Any], ...]:
        """Every cache."""
        return (*self.objects.values(), *self.owners.values())

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner."""
        kind, namespace, name = key
        found: Owner | None = self.owners[kind].get(name, namespace)
        return found

    def owned_by(self, namespace: str, uid: str) -> list[Raw]:
        """Objects of its namespace that an owner controls, with their kinds.

        An owner reference does not reach into another namespace, and everyone can write one there.
        """
        return [
            {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
            for kind, cache in self.objects.items()
            for obj in cache.indexed(_BY_OWNER, (namespace, uid))
        ]


@dataclass(slots=True)
class _Memory:
    """What one owner's passes leave to the next.

    Attributes:
        uid: Which incarnation of the owner.
        finds: Objects that turned out to have a name that is needed.
        told: Events that its user has been told of.
        failures: Passes in a row that were not carried out whole.
    """

    uid: str
    finds: list[Raw] = field(default_factory=list)
    told: set[RecordEvent] = field(default_factory=set)
    failures: int = 0


class NativeTerm:
    """The time for which this process leads, as far as other controllers' pods are concerned."""

    def __init__(
        self,
        worker: ElectedWorker[ControllerSettings, ControllerMetrics],
        registry: Registry,
        caches: NativeCaches,
    ) -> None:
        settings = worker.settings
        self._caches = caches
        self._workers = settings.workers
        most = settings.max_pods_per_job
        self._wirings = NativeWirings(registry, settings.plugins, max_pods=most)
        # A thread has its own: what a `NativeWirings` remembers is for one thread at a time.
        self._large = asyncio.Lock()
        self._large_wirings = NativeWirings(registry, settings.plugins, max_pods=most)
        self._queue: WorkQueue[OwnerKey] = WorkQueue("owners")
        self._memories: dict[OwnerKey, _Memory] = {}
        self._backoff = Backoff(base=0.1, cap=300.0, spread=0.1, seed=settings.identity)
        self._recorder = worker.recorder
        self._sent = SentRequests()
        self._executors = {
            kind: Executor(
                worker.client,
                worker.recorder,
                worker.metrics,
                concurrent=settings.concurrent_writes,
                kind=kind,
                sent=self._sent,
            )
            for kind in NATIVE
        }

    async def run(self) -> None:
        """Work until cancelled; then wait for the answers to what was sent."""
        try:
            await self._until_cancelled()
        finally:
            await self._sent.answered()

    async def _until_cancelled(self) -> None:
        await wait_synced(*self._caches.objects.values())
        with ExitStack() as stack:
            stack.callback(self._queue.close)
            for kind, cache in self._caches.owners.items():
                stack.callback(await cache.replay(self._owner_changed(kind)))
            for objects in self._caches.objects.values():
                stack.callback(await objects.replay(self._object_changed))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._queue.work(self._work, self._workers), name="owners")

    def _owner_changed(self, kind: Kind) -> Any:
        def changed(change: object, old: Owner | None, new: Owner | None) -> None:
            del change
            for each in (old, new):
                if each is not None and (each.wants_plugins or old is not None):
                    self._queue.add((kind, each.metadata.namespace, each.metadata.name))

        return changed

    def _object_changed(self, change: object, old: Raw | None, new: Raw | None) -> None:
        del change
        obj = new or old or {}
        for owner in obj["metadata"].get("ownerReferences") or ():
            for kind in NATIVE:
                if (owner.get("apiVersion"), owner.get("kind")) == (kind.api_version, kind.kind):
                    self._queue.add((kind, obj["metadata"].get("namespace", ""), owner["name"]))

    async def _work(self, key: OwnerKey) -> float | None:
        """One pass over an owner; the seconds after which to look again, if that is known."""
        owner = self._caches.owner(key)
        if owner is None:
            self._memories.pop(key, None)
            return None
        meta = owner.metadata
        memory = self._memories.get(key)
        if memory is None or memory.uid != meta.uid:
            memory = self._memories[key] = _Memory(meta.uid)
        present = self._caches.owned_by(meta.namespace, meta.uid)
        known = {(each["kind"], each["metadata"]["name"]) for each in present}
        finds, memory.finds = memory.finds, []
        present += [each for each in finds if (each["kind"], each["metadata"]["name"]) not in known]
        plan = _news(await self._planned(owner, present), memory)
        about = {"metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}}
        outcome = await self._executors[key[0]].carry_out(plan, about)
        memory.finds = [found for _, found in outcome.finds]
        if outcome.complete:
            memory.failures = 0
            if outcome.finds:
                return 0.0
            # What was found may be gone by now, with its event before this pass: look again without it.
            return _FINDS_SECONDS if finds and outcome.after is None else outcome.after
        if outcome.trouble is not None:
            self._recorder.record(
                Reference(key[0], meta.name, meta.namespace, meta.uid),
                "Warning",
                outcome.trouble.reason,
                outcome.trouble.message,
            )
        if outcome.busy is not None:
            return outcome.busy
        memory.failures += 1
        delay = self._backoff.delay(memory.failures - 1)
        return min(delay, OUTAGE_SECONDS) if outcome.broken else delay

    async def _planned(self, owner: Owner, present: list[Raw]) -> Plan:
        if owner.pods <= _FEW_PODS:
            return plan_native(owner, self._wirings, present)
        # Half a second for a thousand groups, in which the Lease must be renewed.
        async with self._large:
            return await asyncio.to_thread(plan_native, owner, self._large_wirings, present)


def _news(plan: Plan, memory: _Memory) -> Plan:
    """The plan without events that the owner's user has been told of already."""
    stages = []
    for stage in plan.stages:
        steps = [
            each for each in stage if not isinstance(each, RecordEvent) or each not in memory.told
        ]
        memory.told.update(each for each in steps if isinstance(each, RecordEvent))
        stages.append(steps)
    return Plan.of(*stages)


def _owner_keys(obj: Raw) -> list[tuple[str, str]]:
    namespace = obj["metadata"].get("namespace", "")
    return [
        (namespace, owner.get("uid", ""))
        for owner in obj["metadata"].get("ownerReferences") or ()
        if owner.get("controller")
    ]
