"""What happens to the data below a running API server: a compaction, and a restore of etcd from a backup."""

from collections.abc import Iterator
from dataclasses import dataclass

from pumice.embedded.storage import ObjectKey, ResourceKey, Storage, StoredWrite, Table, Version


@dataclass(frozen=True, slots=True)
class Backup:
    """All objects at one version."""

    revision: int
    objects: dict[ResourceKey, dict[ObjectKey, Version]]

    @classmethod
    def of(cls, storage: Storage) -> "Backup":
        """The state as it is."""
        tables = {table.resource: dict(table.objects) for table in storage.tables()}
        return cls(storage.revision, tables)


def restore(storage: Storage, backup: Backup) -> None:
    """Go back to an earlier state and version. All watches end without an error; listeners are called with the differences."""
    former = {table.resource: table for table in storage.tables()}
    for resource in former:
        storage.drop(resource)
    storage.revision = backup.revision
    for resource in {**former, **backup.objects}:
        storage.table(resource).objects = dict(backup.objects.get(resource, {}))
    for resource in {**former, **backup.objects}:
        before = former[resource].objects if resource in former else {}
        for change in _differences(resource, before, storage.table(resource).objects):
            storage._tell(change)


def compact(table: Table) -> None:
    """Forget all changes of a resource."""
    if table.log:
        table.floor = table.log[-1].new.revision
        table.start += len(table.log)
        table.log.clear()


def _differences(
    resource: ResourceKey, before: dict[ObjectKey, Version], after: dict[ObjectKey, Version]
) -> Iterator[StoredWrite]:
    for key, old in before.items():
        if key not in after:
            yield StoredWrite(resource, key, "DELETED", old, old)
    for key, new in list(after.items()):
        found = before.get(key)
        if found is not new:
            yield StoredWrite(resource, key, "MODIFIED" if found else "ADDED", new, found)
