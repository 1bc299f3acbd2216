"""Resource groups of pods, and finding the group of a pod."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Values that the pods of a group get.

    Attributes:
        name: For messages; may be empty.
        namespaces: Namespaces whose pods belong to it.
        annotations: Annotations, as key and value; pods with one of them belong to it.
        labels: Labels of nodes that its pods select.
        affinity: Affinity for pods without one; as JSON.
        tolerations: Taints that its pods tolerate; as JSON.
        scheduler_name: Scheduler of its pods; empty keeps their own.
    """

    name: str = ""
    namespaces: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    labels: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    scheduler_name: str = ""


class ResourceGroups:
    """All groups in order; a pod gets the first one that claims it.

    A group with an annotation claims only pods that have the annotation.
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
"""The groups without a file."""
