"""How many PodGroups each queue has, by phase: kept by their changes, so that a change costs the same in any queue."""

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
    """PodGroups by queue and phase, also of queues that do not exist (yet)."""

    def __init__(self) -> None:
        self._queues: dict[str, Counter[str]] = {}

    def of(self, queue: str) -> Mapping[str, int]:
        """PodGroups of a queue by phase, without phases of which there are none."""
        return self._queues.get(queue, _NONE)

    def change(self, old: Raw | None, new: Raw | None) -> tuple[str, ...]:
        """Take in that a PodGroup became another; None stands for one that does not exist.

        Returns:
            The queues whose counts changed.
        """
        before = queue_and_phase(old) if old is not None else None
        after = queue_and_phase(new) if new is not None else None
        if before == after:
            return ()
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
