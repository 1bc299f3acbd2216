"""Groups of pods that get the same on their way in, and the way from a pod to its group."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


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

    def __init__(self, groups: Iterable[ResourceGroup] = ()) -> None:
        self.groups = tuple(groups)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces whose pods belong to a group, sorted."""
        return tuple(sorted({each for group in self.groups for each in group.namespaces}))

    @property
    def annotation_keys(self) -> tuple[str, ...]:
        """Keys of annotations by which pods belong to a group, sorted."""
        return tuple(sorted({key for group in self.groups for key, _ in group.annotations}))

    def find(self, namespace: str, annotations: Mapping[str, str]) -> ResourceGroup | None:
        """The group of a pod, or None when it belongs to none."""
        for group in self.groups:
            annotated = any(annotations.get(key) == value for key, value in group.annotations)
            if annotated or namespace in group.namespaces:
                return group
        return None


NO_GROUPS = ResourceGroups()
"""What holds without a file."""
