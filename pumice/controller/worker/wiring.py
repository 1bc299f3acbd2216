"""The controller of objects that plugins want for the pods of other controllers.

Of Indexed Jobs, JobSets and LeaderWorkerSets, the fields are watched that plugins read. A cluster may lack the latter
two kinds: their caches wait for the kind, and readiness does not depend on them.
"""

import asyncio
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from pumice.api import keys
from pumice.api.kinds import WIRED_OWNERS, Kind
from pumice.api.meta import Raw
from pumice.cluster.cache import WatchCache
from pumice.cluster.events import Reference
from pumice.cluster.turns import Slots
from pumice.controller.objects import controller_key, refers_to
from pumice.controller.other_owners.wiring import plan_wiring
from pumice.controller.plan import CreateObject, Plan
from pumice.controller.worker.caches import WATCHED_KINDS
from pumice.controller.worker.controller import Controller, PlannedObject, Source
from pumice.controller.worker.memory import PlanOutcome
from pumice.controller.worker.process import ControllerProcess, Watches
from pumice.controller.worker.secrets import KnownSecrets
from pumice.plugins import Registry
from pumice.plugins.other_owners import OWNERS, Owner, OwnerKey, OwnerWirings

_BY_OWNER = "owner"
_FEW_PODS = 1_000
"""Number of pods up to which a pass over an owner does not block the event loop for long."""


class WiringCaches:
    """Watches for owners and for the objects of plugins.

    Attributes:
        owners: Objects of other controllers by kind.
        objects: Objects that plugins want for them by kind, raw.
    """

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self.objects: dict[Kind, WatchCache[Raw]] = {
            kind: watches.of(kind, dict, label_selector=keys.WIRED_FOR) for kind in WATCHED_KINDS
        }
        self.owners: dict[Kind, WatchCache[Any]] = {
            kind: watches.of(kind, type_, optional=True) for kind, type_ in OWNERS.items()
        }
        for cache in self.objects.values():
            cache.index(_BY_OWNER, controller_key)

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner."""
        kind, namespace, name = key
        found: Owner | None = self.owners[kind].get(name, namespace)
        return found

    def owned_by(self, namespace: str, uid: str) -> list[Raw]:
        """Objects of its namespace that an owner controls, with their kinds."""
        return [
            obj | kind.type_meta
            for kind, cache in self.objects.items()
            for obj in cache.indexed(_BY_OWNER, (namespace, uid))
        ]


class WiringController(Controller[OwnerKey]):
    """The controller for the objects of other controllers' pods, while this process is the leader."""

    def __init__(
        self,
        worker: ControllerProcess,
        registry: Registry,
        caches: WiringCaches,
    ) -> None:
        """Create a controller; it must `run`."""
        settings = worker.settings
        objects = list(caches.objects.values())
        super().__init__(worker, "owners", objects, itemgetter(1))
        self._caches = caches
        self._secrets = KnownSecrets(worker.client, self.clock, readable=settings.secrets)
        self._read: dict[OwnerKey, tuple[str, list[str]]] = {}
        """The uid of each owner, and the names of the Secrets that were read for it."""
        most = settings.max_pods_per_job
        self._wirings = OwnerWirings(registry, settings.plugins, max_pods=most)
        # A thread has its own: what a `OwnerWirings` remembers is for one thread at a time.
        self._large = Slots(1)
        self._large_wirings = OwnerWirings(registry, settings.plugins, max_pods=most)

    def sources(self) -> Iterable[Source]:
        """Owners, and what plugins want for them."""
        for kind, cache in self._caches.owners.items():
            yield cache, self._owner_changed(kind)
        for objects in self._caches.objects.values():
            yield objects, self._object_changed

    def keys(self) -> Iterable[OwnerKey]:
        """All owners whose pods plugins wire."""
        for kind, cache in self._caches.owners.items():
            for each in cache.values():
                if each.wants_plugins:
                    yield kind, each.metadata.namespace, each.metadata.name

    def about(self, key: OwnerKey) -> Reference:
        """An owner."""
        kind, namespace, name = key
        return self._caches.owners[kind].reference(name, namespace)

    def look(self, key: OwnerKey) -> PlannedObject | None:
        """An owner."""
        owner = self._caches.owner(key)
        if owner is None:
            return None
        meta = owner.metadata
        return PlannedObject.named(key[0], meta.name, meta.namespace, meta.uid)

    async def plan(self, key: OwnerKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """The objects that its plugins want and that do not exist or differ."""
        owner = self._caches.owner(key)
        if owner is None:
            return Plan()
        namespace = owner.metadata.namespace
        if key in self._read and self._read[key][0] != subject.uid:
            self.forget(key)  # an earlier owner of this name
        present = self._caches.owned_by(namespace, subject.uid)
        present += self._secrets.known(namespace, subject.uid)
        known = {(each["kind"], each["metadata"]["name"]) for each in present}
        present += [each for each in finds if (each["kind"], each["metadata"]["name"]) not in known]
        plan = await self._plan(key, owner, present)
        creates = (step for step in plan.steps if isinstance(step, CreateObject))
        missing = [each.name for each in creates if each.keys is not None]
        if not missing:
            return plan
        self._read[key] = subject.uid, missing
        found = await self._secrets.read(namespace, missing)
        return await self._plan(key, owner, [*present, *found]) if found else plan

    def forget(self, key: OwnerKey) -> None:
        """Drop what is known of the Secrets of an owner that is gone."""
        _, names = self._read.pop(key, ("", []))
        self._secrets.forget(key[1], names)

    def carried_out(
        self, key: OwnerKey, subject: PlannedObject, plan: Plan, outcome: PlanOutcome
    ) -> None:
        """Note which Secrets there are."""
        del plan
        self._secrets.note(outcome.written, (found for _, found in outcome.finds))
        if outcome.outdated:
            known = self._secrets.known(key[1], subject.uid)
            self._secrets.forget(key[1], [each["metadata"]["name"] for each in known])

    async def _plan(self, key: OwnerKey, owner: Owner, present: Sequence[Raw]) -> Plan:
        if owner.pods <= _FEW_PODS:
            return plan_wiring(owner, self._wirings, present)
        # Half a second for a thousand groups, in which the Lease must be renewed.
        async with self._large.slot(key[1]):
            return await asyncio.to_thread(plan_wiring, owner, self._large_wirings, present)

    def _owner_changed(self, kind: Kind) -> Any:
        def changed(old: Owner | None, new: Owner | None) -> None:
            for each in (old, new):
                if each is not None and (each.wants_plugins or old is not None):
                    self.queue.add((kind, each.metadata.namespace, each.metadata.name))

        return changed

    def _object_changed(self, old: Raw | None, new: Raw | None) -> None:
        obj = new or old or {}
        for owner in obj["metadata"].get("ownerReferences") or ():
            for kind in WIRED_OWNERS:
                if refers_to(owner, kind):
                    self.queue.add((kind, obj["metadata"].get("namespace", ""), owner["name"]))
