"""Counts of PodGroups of each queue by phase. They are updated with each change, so the cost does not depend on the size of a queue."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from pumice.api.keys import DEFAULT_QUEUE
from pumice.api.meta import Raw
from pumice.api.podgroups import PHASES

__all__ = ["GroupCounts", "queue_and_phase"]

_NONE: Mapping[str, int] = MappingProxyType({})


def queue_and_phase(group: Raw) -> tuple[str, str]:
    """Queue and phase of a PodGroup; one without a phase is Pending."""
    queue = (group.get("spec") or {}).get("queue") or DEFAULT_QUEUE
    phase = (group.get("status") or {}).get("phase")
    return queue, phase if phase in PHASES else PHASES[0]


class GroupCounts:
    """PodGroups by queue and phase, also for queues that do not exist."""

    def __init__(self) -> None:
        self._queues: dict[str, Counter[str]] = {}
        self._counted: dict[tuple[str, str], tuple[str, str]] = {}
        """How each PodGroup is counted, so that a change that comes twice counts once."""

    def of(self, queue: str) -> Mapping[str, int]:
        """PodGroups of a queue by phase, without phases that have none."""
        return self._queues.get(queue, _NONE)

    def change(self, old: Raw | None, new: Raw | None) -> tuple[str, ...]:
        """Update the counts for a changed PodGroup; None means that it does not exist.

        Returns:
            The queues whose counts changed.
        """
        if (either := new or old) is None:
            return ()
        after = queue_and_phase(new) if new is not None else None
        meta = either["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        before = self._counted.get(key)
        if before == after:
            return ()
        if after is None:
            del self._counted[key]
        else:
            self._counted[key] = after
        if before is not None:
            self._add(*before, -1)
        if after is not None:
            self._add(*after, 1)
        return tuple(dict.fromkeys(each[0] for each in (before, after) if each is not None))

    def _add(self, queue: str, phase: str, number: int) -> None:
        counts = self._queues.setdefault(queue, Counter())
        counts[phase] += number
        if not counts[phase]:
            del counts[phase]
        if not counts:
            del self._queues[queue]
