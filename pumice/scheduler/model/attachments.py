"""Volumes that pods use on nodes, and how many of a CSI driver each node can attach.

A volume that several pods of a node use is attached once. `CSINode` says how many volumes of a driver fit:
https://kubernetes.io/docs/concepts/storage/storage-limits/.
"""

from collections.abc import Iterable, Mapping

from pumice.api.volumes import CsiNode

Attached = tuple[str, str]
"""A volume as nodes count it: its CSI driver, and its name there."""

More = Mapping[str, tuple[int, tuple[Attached, ...]]]
"""Volumes to be attached, by driver: how many that nothing uses, and others that may be attached already."""

_NONE = (0, 0)


class AttachmentTable:
    """Volumes in use by node.

    Attributes:
        limits: How many volumes a node can attach, by driver and node.
    """

    def __init__(self) -> None:
        self.limits: dict[str, dict[str, int]] = {}
        self._users: dict[tuple[str, Attached], list[int]] = {}
        self._counts: dict[str, dict[str, list[int]]] = {}
        self._nodes: dict[Attached, int] = {}

    # -- limits ------------------------------------------------------------------------------

    def set_limits(self, node: CsiNode) -> bool:
        """Set how many volumes a node can attach; True if that changed."""
        name = node.metadata.name
        new = {
            driver.name: driver.allocatable.count
            for driver in node.spec.drivers or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if new == {driver: nodes[name] for driver, nodes in self.limits.items() if name in nodes}:
            return False
        self.remove_limits(name)
        for driver, count in new.items():
            self.limits.setdefault(driver, {})[name] = count
        return True

    def remove_limits(self, node: str) -> bool:
        """Remove the limits of a node; True if it had some."""
        known = [driver for driver, nodes in self.limits.items() if node in nodes]
        for driver in known:
            del self.limits[driver][node]
            if not self.limits[driver]:
                del self.limits[driver]
        return bool(known)

    # -- use ---------------------------------------------------------------------------------

    def use(self, node: str, volumes: Iterable[Attached], sign: int, *, is_leaving: bool) -> None:
        """Count a pod that uses volumes on a node, each named once, or one less (-1)."""
        for volume in volumes:
            key = (node, volume)
            users = self._users.setdefault(key, [0, 0])
            before = (users[0] > 0, users[0] > users[1])
            users[0] += sign
            users[1] += sign * is_leaving
            after = (users[0] > 0, users[0] > users[1])
            if not users[0]:
                del self._users[key]
            if before[0] != after[0]:
                self._nodes[volume] = self._nodes.get(volume, 0) + sign
                if not self._nodes[volume]:
                    del self._nodes[volume]
            if before != after:
                self._count(volume[0], node, after[0] - before[0], after[1] - before[1])

    def _count(self, driver: str, node: str, used: int, staying: int) -> None:
        nodes = self._counts.setdefault(driver, {})
        counts = nodes.setdefault(node, [0, 0])
        counts[0] += used
        counts[1] += staying
        if not counts[0]:
            del nodes[node]
            if not nodes:
                del self._counts[driver]

    def exceeds(self, node: str, more: "More", *, is_later: bool) -> bool:
        """Whether a node cannot attach more volumes; `is_later`: once terminating pods are gone."""
        for driver, (count, shared) in more.items():
            limit = self.limits.get(driver, {}).get(node)
            if limit is None:
                continue
            new = count + sum(not self._is_attached(node, each, is_later) for each in shared)
            if new and self._counts.get(driver, {}).get(node, _NONE)[is_later] + new > limit:
                return True
        return False

    def is_used(self, volume: Attached) -> bool:
        """Whether a pod on any node uses a volume."""
        return volume in self._nodes

    def _is_attached(self, node: str, volume: Attached, is_later: bool) -> bool:
        users = self._users.get((node, volume))
        return users is not None and (not is_later or users[0] > users[1])
