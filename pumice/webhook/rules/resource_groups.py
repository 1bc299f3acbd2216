"""Groups of pods that get the same on their way in, and the way from a pod to its group."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["NO_GROUPS", "ResourceGroup", "ResourceGroups"]


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that get the same on their way in.

    Attributes:
        name: For messages; may be empty.
        namespaces: Pods of these belong to it.
        annotations: So do pods that carry one of these, as key and value.
        labels: Labels of nodes that its pods select.
        affinity: Affinity of its pods that have none; as JSON.
        tolerations: Taints that its pods tolerate; as JSON.
        scheduler_name: Scheduler of its pods; their own when empty.
    """

    name: str = ""
    namespaces: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    labels: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    scheduler_name: str = ""


class ResourceGroups:
    """All groups, in order: of two that claim a pod the first gets it.

    An annotation claims only pods that carry it; that others do not is no match.
    """

    __slots__ = ("_by_annotation", "_by_namespace", "groups")

    def __init__(self, groups: Iterable[ResourceGroup] = ()) -> None:
        self.groups = tuple(groups)
        self._by_namespace: dict[str, int] = {}
        self._by_annotation: dict[str, dict[str, int]] = {}
        for index, group in enumerate(self.groups):
            for namespace in group.namespaces:
                self._by_namespace.setdefault(namespace, index)
            for key, value in group.annotations:
                self._by_annotation.setdefault(key, {}).setdefault(value, index)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces whose pods belong to a group, sorted."""
        return tuple(sorted(self._by_namespace))

    @property
    def annotation_keys(self) -> tuple[str, ...]:
        """Keys of annotations by which pods belong to a group, sorted."""
        return tuple(sorted(self._by_annotation))

    def find(self, namespace: str, annotations: Mapping[str, str]) -> ResourceGroup | None:
        """The group of a pod, or None when it belongs to none."""
        first = self._by_namespace.get(namespace)
        for key, by_value in self._by_annotation.items():
            value = annotations.get(key)
            if value is None:
                continue
            index = by_value.get(value)
            if index is not None and (first is None or index < first):
                first = index
        return None if first is None else self.groups[first]


NO_GROUPS = ResourceGroups()
"""What holds without a file."""
