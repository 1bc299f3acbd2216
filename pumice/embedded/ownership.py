"""Field ownership: `metadata.managedFields`.

Kubernetes records every write from an object's creation on, and so does a server that is asked to. Otherwise the record
begins with the first server-side apply to an object: until then there can be no conflict, and Kubernetes itself treats an
object without a record as owned by `before-first-apply`. The many writes to pods that are never applied cost nothing then.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass

from pumice.embedded import fieldsets
from pumice.embedded.fieldsets import Path
from pumice.embedded.fieldtypes import field_type
from pumice.embedded.resources import Call
from pumice.embedded.storage import Obj

FIRST = "before-first-apply"


@dataclass(frozen=True, slots=True, order=True)
class ManagerKey:
    """Who owns, and by which kind of write.

    Attributes:
        operation: `Apply` or `Update`.
        manager: Name of the manager.
        subresource: Subresource written to, empty for the object.
    """

    operation: str
    manager: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Owned:
    """What one manager owns.

    Attributes:
        fields: The fields.
        api_version: Version in which it wrote them.
        time: When what it owns changed last.
    """

    fields: Set[Path]
    api_version: str
    time: str


Managers = dict[ManagerKey, Owned]


class Ownership:
    """Maintains the ownership record.

    Args:
        now: Gives the moment as Kubernetes writes it.
        creations: Whether the record of an object begins with its creation.
    """

    def __init__(self, now: Callable[[], str], *, creations: bool = False) -> None:
        self._now = now
        self._creations = creations

    def read(self, obj: Obj) -> Managers:
        """The record of an object."""
        managers: Managers = {}
        for entry in obj["metadata"].get("managedFields") or ():
            key = ManagerKey(
                entry.get("operation", "Update"),
                entry.get("manager", ""),
                entry.get("subresource", ""),
            )
            fields = fieldsets.decode(entry.get("fieldsV1") or {})
            managers[key] = Owned(fields, entry.get("apiVersion", ""), entry.get("time", ""))
        return managers

    def write(self, obj: Obj, managers: Managers) -> None:
        """Write the record into an object; managers that own nothing are dropped."""
        entries = [_entry(key, managers[key]) for key in sorted(managers) if managers[key].fields]
        if entries:
            obj["metadata"]["managedFields"] = entries
        else:
            obj["metadata"].pop("managedFields", None)

    def owned(self, call: Call, fields: Set[Path], before: Owned | None) -> Owned:
        """What the caller owns now; the time stays when nothing changes."""
        api_version = call.resource.kind.api_version
        if before is not None and before.fields == fields and before.api_version == api_version:
            return before
        return Owned(fields, api_version, self._now())

    def first(self, call: Call, obj: Obj) -> Managers:
        """The record of an object that has none: all of it belongs to `before-first-apply`."""
        fields = fieldsets.leaves(obj, field_type(call.resource))
        return {ManagerKey("Update", FIRST): self.owned(call, fields, None)}

    def claimed(self, call: Call, obj: Obj) -> set[Path]:
        """The fields of an object that a call writes: the status only through its subresource."""
        return _written(call, fieldsets.leaves(obj, field_type(call.resource)))

    def created(self, call: Call, obj: Obj, managed: list[Obj] | None) -> None:
        """Begin the record of a new object, before admission: no manager owns what admission writes.

        Args:
            call: What is created.
            obj: The object.
            managed: What an apply has made of it; None for another creation.
        """
        obj["metadata"].pop("managedFields", None)
        if managed:
            obj["metadata"]["managedFields"] = managed
        elif self._creations:
            fields = self.claimed(call, obj)
            key = ManagerKey("Update", call.manager)
            self.write(obj, {key: self.owned(call, fields, None)})

    def changed(self, call: Call, new: Obj, old: Obj) -> None:
        """Update `managedFields` before admission, if the object has them."""
        recorded = old["metadata"].get("managedFields")
        if recorded is None:
            new["metadata"].pop("managedFields", None)
            return
        if new["metadata"].get("managedFields") == []:
            # Emptying the list is how a client asks for the record to be dropped.
            new["metadata"].pop("managedFields")
            return
        new["metadata"]["managedFields"] = recorded
        changed, removed = (
            _written(call, paths)
            for paths in fieldsets.differences(old, new, field_type(call.resource))
        )
        if not changed and not removed:
            return
        managers = self.read(old)
        for key, owned in managers.items():
            managers[key] = Owned(owned.fields - changed - removed, owned.api_version, owned.time)
        mine = ManagerKey("Update", call.manager, call.subresource)
        before = managers.get(mine)
        fields = changed | (before.fields if before else set())
        managers[mine] = self.owned(call, fields, before)
        self.write(new, managers)


def _written(call: Call, paths: set[Path]) -> set[Path]:
    """Those of the fields that a call can write."""
    if call.subresource:
        return {path for path in paths if path[0] == f"f:{call.subresource}"}
    if call.resource.strategy.has_status:
        return {path for path in paths if path[0] != "f:status"}
    return paths


def _entry(key: ManagerKey, owned: Owned) -> Obj:
    entry: Obj = {
        "manager": key.manager,
        "operation": key.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fieldsets.encode(owned.fields),
    }
    if key.subresource:
        entry["subresource"] = key.subresource
    return entry
