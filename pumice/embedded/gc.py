"""Garbage collection: dependents are deleted after their owners, and content with its namespace.

Every write is recorded synchronously. The work is done later, in that order, by `run_pending`, which the server calls
in a task and tests may call directly.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pumice.api import kinds
from pumice.embedded.crds import CLEANUP
from pumice.embedded.deletion import FOREGROUND, ORPHAN, DeleteOptions, delete
from pumice.embedded.objects import Objects, is_finished
from pumice.embedded.resources import Call, ResourceRegistry
from pumice.embedded.retries import Retries
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, ResourceKey, StoredWrite

Reference = tuple[ResourceKey, str, str]
"""Resource, namespace and name."""
_NAMESPACES = (kinds.NAMESPACE.group, kinds.NAMESPACE.plural)
_CRDS = (kinds.CRD.group, kinds.CRD.plural)
_OBJECT_BACKGROUND = DeleteOptions(propagation="Background")
_DEFAULT = DeleteOptions()


class GarbageCollector:
    """Deletes what has lost its owner, its namespace or its definition."""

    def __init__(
        self,
        registry: ResourceRegistry,
        objects: Objects,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._objects = objects
        self._wake = wake
        self._dependents: dict[str, dict[Reference, None]] = {}
        """Dependents by the uid of an owner."""
        self._retries = Retries()
        self._pending: dict[tuple[Any, ...], Callable[[], None]] = {}
        """Work by what it is about: however often something is noted, it is done once."""
        objects.storage.listen(self._note)

    def run_pending(self) -> None:
        """Do what has been noted, and what follows from it."""
        while self._pending:
            key = next(iter(self._pending))
            self._retries.attempt(key, self._pending.pop(key))

    def _later(self, work: Callable[..., None], *about: Any) -> None:
        key = (work.__name__, *about)
        if key not in self._pending:
            self._pending[key] = partial(work, *about)
            self._wake()

    def _note(self, change: StoredWrite) -> None:
        metadata = change.new.obj["metadata"]
        reference = (change.resource, *change.key)
        before = change.old.obj["metadata"].get("ownerReferences") if change.old else None
        after = metadata.get("ownerReferences") if change.type != "DELETED" else None
        if before != after:
            self._index(reference, before or [], after or [])
        if change.type == "DELETED":
            self._note_deleted(change, before or [])
        elif before != after:
            self._later(self._collect, reference)
            self._revisit(change, before or [])
        if change.type != "DELETED" and metadata.get("deletionTimestamp"):
            self._later(self._wind_up, reference)

    def _index(self, reference: Reference, before: list[Obj], after: list[Obj]) -> None:
        for owner in before:
            dependents = self._dependents.get(owner["uid"])
            if dependents is not None:
                dependents.pop(reference, None)
                if not dependents:
                    del self._dependents[owner["uid"]]
        for owner in after:
            self._dependents.setdefault(owner["uid"], {})[reference] = None

    def _note_deleted(self, change: StoredWrite, owners: list[Obj]) -> None:
        uid = change.new.obj["metadata"]["uid"]
        if uid in self._dependents:
            self._later(self._release, uid)
        self._revisit(change, owners)
        namespace = change.key[0]
        if namespace:
            self._later(self._wind_up, (_NAMESPACES, "", namespace))
        if change.resource == _CRDS:
            self._later(self._objects.storage.drop, _defined(change.new.obj))
        resource = self._registry.of_key(change.resource)
        if resource is not None and resource.crd:
            self._later(self._wind_up, (_CRDS, "", resource.crd))

    def _call(self, reference: Reference) -> Call | None:
        resource = self._registry.of_key(reference[0])
        if resource is None:
            return None
        return Call(resource, reference[1], reference[2])

    def _current(self, reference: Reference) -> Obj | None:
        version = self._objects.storage.get(*reference)
        return version.obj if version else None

    def _release(self, uid: str) -> None:
        """An owner is gone: look at everything that it owned."""
        for reference in tuple(self._dependents.get(uid, ())):
            self._collect(reference)

    def _revisit(self, change: StoredWrite, owners: list[Obj]) -> None:
        """Look again at owners that may have been waiting for a dependent."""
        for owner in owners:
            reference = self._owner_reference(owner, change.key[0])
            if reference is not None:
                self._later(self._wind_up, reference)

    def _owner_reference(self, owner: Obj, namespace: str) -> Reference | None:
        resource = self._registry.of_kind(owner["apiVersion"], owner["kind"])
        if resource is None:
            return None
        return (resource.key, namespace if resource.kind.namespaced else "", owner["name"])

    def _owner(self, owner: Obj, namespace: str) -> Obj | None:
        """The object that an owner reference means, if it is still there."""
        reference = self._owner_reference(owner, namespace)
        found = self._current(reference) if reference else None
        return found if found and found["metadata"]["uid"] == owner["uid"] else None

    def _collect(self, reference: Reference) -> None:
        """Delete an object none of whose owners exists; drop references to those that do not."""
        obj = self._current(reference)
        call = self._call(reference)
        owners = obj["metadata"].get("ownerReferences") if obj else None
        if not obj or not owners or call is None:
            return
        if any(self._owner_reference(each, reference[1]) is None for each in owners):
            # An owner of a kind that is not known here may well exist elsewhere: leave it alone.
            return
        found = [(each, self._owner(each, reference[1])) for each in owners]
        solid = [
            each
            for each, owner in found
            if owner and FOREGROUND not in (owner["metadata"].get("finalizers") or ())
        ]
        if solid and len(solid) < len(owners):
            self._edit(call, ownerReferences=solid)
        elif not solid and not obj["metadata"].get("deletionTimestamp"):
            waiting = any(owner for _, owner in found)
            # An owner in the foreground has its own dependents go before itself, all the way down.
            blocks = waiting and bool(self._dependents.get(obj["metadata"]["uid"]))
            options = DeleteOptions(propagation="Foreground") if blocks else _DEFAULT
            self._try_delete(call, options)

    def _try_delete(self, call: Call, options: DeleteOptions) -> None:
        # Objects whose deletion admission refuses stay, as in a cluster.
        with contextlib.suppress(ApiStatusError):
            delete(self._objects, call, options)

    def _wind_up(self, reference: Reference) -> None:
        """Take the server's own finalizers off a deleted object once their work is done."""
        obj = self._current(reference)
        call = self._call(reference)
        if not obj or call is None or not obj["metadata"].get("deletionTimestamp"):
            return
        finalizers = obj["metadata"].get("finalizers") or []
        uid = obj["metadata"]["uid"]
        if ORPHAN in finalizers:
            self._orphan(uid)
            self._drop_finalizer(call, ORPHAN)
        elif FOREGROUND in finalizers:
            dependents = tuple(self._dependents.get(uid, ()))
            for each in dependents:
                self._collect(each)
            if not any(self._blocks(each, uid) for each in self._dependents.get(uid, ())):
                self._drop_finalizer(call, FOREGROUND)
        elif reference[0] == _NAMESPACES:
            self._empty(call, reference[2])
        elif CLEANUP in finalizers:
            self._undefine(call, _defined(obj))

    def _blocks(self, reference: Reference, uid: str) -> bool:
        obj = self._current(reference)
        owners = (obj or {}).get("metadata", {}).get("ownerReferences") or []
        return any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in owners)

    def _orphan(self, uid: str) -> None:
        for reference in tuple(self._dependents.get(uid, ())):
            call, obj = self._call(reference), self._current(reference)
            if call is None or obj is None:
                continue
            owners = [
                each for each in obj["metadata"].get("ownerReferences") or () if each["uid"] != uid
            ]
            self._edit(call, ownerReferences=owners)

    def _drop_finalizer(self, call: Call, finalizer: str) -> None:
        obj = self._current((call.resource.key, call.namespace, call.name))
        finalizers = (obj or {}).get("metadata", {}).get("finalizers") or []
        self._edit(call, finalizers=[each for each in finalizers if each != finalizer])

    def _empty(self, call: Call, namespace: str) -> None:
        """Delete the content of a namespace, then the namespace."""
        remaining = False
        for table in self._objects.storage.tables():
            resource = self._registry.of_key(table.resource)
            if resource is None or not resource.kind.namespaced:
                continue
            for version in table.items(namespace):
                if not version.obj["metadata"].get("deletionTimestamp"):
                    name = version.obj["metadata"]["name"]
                    self._try_delete(Call(resource, namespace, name), _OBJECT_BACKGROUND)
            remaining = remaining or bool(table.items(namespace))
        if not remaining:
            self._edit(call, spec={"finalizers": []})

    def _undefine(self, call: Call, key: ResourceKey) -> None:
        """Delete all objects of a kind, then its definition."""
        table = self._objects.storage.table(key)
        resource = self._registry.of_key(key)
        for version in table.items() if resource is not None else ():
            metadata = version.obj["metadata"]
            if resource is not None and not metadata.get("deletionTimestamp"):
                each = Call(resource, metadata.get("namespace", ""), metadata["name"])
                self._try_delete(each, _OBJECT_BACKGROUND)
        if not table.objects:
            self._drop_finalizer(call, CLEANUP)

    def _edit(self, call: Call, *, spec: Obj | None = None, **metadata: list[Any]) -> None:
        """Replace lists of the metadata directly: the collector's own writes go through no admission."""
        version = self._objects.storage.get(call.resource.key, call.namespace, call.name)
        if version is None:
            return
        changed = dict(version.obj["metadata"])
        for field, items in metadata.items():
            if items:
                changed[field] = items
            else:
                changed.pop(field, None)
        obj = {**version.obj, "metadata": changed}
        if spec is not None:
            obj["spec"] = spec
        if is_finished(obj):
            self._objects.remove(call, obj)
        elif obj != version.obj:
            self._objects.storage.put(call.resource.key, obj)


def _defined(crd: Obj) -> ResourceKey:
    """Where the objects that a definition defines are stored."""
    return (crd["spec"]["group"], crd["spec"]["names"]["plural"])
