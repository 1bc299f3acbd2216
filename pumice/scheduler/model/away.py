"""What pods of queues hold on nodes that are not ready, or not there.

The size of the cluster is that of its ready nodes. What a queue may have as a part of it is therefore compared with what its
pods hold on these nodes. A limit that does not depend on the cluster counts all pods: those on other nodes may still run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.running_pods import RunningTable

__all__ = ["Away", "are_away"]


@dataclass(frozen=True, slots=True)
class Away:
    """Amounts of queues, by row and column.

    Attributes:
        held: What pods on nodes that are not ready hold; part of `QueueTable.allocated`.
        needed: The part of it that is not beyond the `minResources` of its gangs.
        gangs: What pods of a gang hold there, by its key.
    """

    held: Ints
    needed: Ints
    gangs: Mapping[str, Ints]

    @classmethod
    def of(cls, running: RunningTable, unready: Bools, queues: QueueTable) -> "Away":
        """Amounts on nodes that are not ready.

        Args:
            running: Pods of gangs that run or are bound.
            unready: Nodes that are not ready, by row.
            queues: The queues.
        """
        held = np.zeros_like(queues.allocated)
        needed = held
        gangs: dict[str, Ints] = {}
        rows = np.flatnonzero(are_away(running, unready))
        if len(rows):
            needed = held.copy()
            numbers, places = np.unique(running.gang[rows], return_inverse=True)
            sums = np.zeros((len(numbers), running.vectors.shape[1]), dtype=np.int64)
            np.add.at(sums, places, running.vectors[rows])
            for number, away in zip(numbers.tolist(), sums, strict=True):
                job = running.gangs[number]
                if job is not None:
                    gangs[job.key] = away
                    if job.row >= 0:
                        held[job.row] += away
                        needed[job.row] += _needed(job.allocated, job.minimum, away)
        return cls(held, needed, gangs)


def are_away(running: RunningTable, unready: Bools) -> Bools:
    """Pods of gangs that are on nodes that are not ready, or not there, by row of `running`."""
    node = running.node
    are_lost = node < 0
    if unready.any():
        are_lost |= unready[np.maximum(node, 0)]
    found: Bools = running.used & are_lost
    return found


def _needed(held: Ints, minimum: Ints, away: Ints) -> Ints:
    beyond = np.maximum(held - minimum, 0)
    found: Ints = away - (beyond - np.maximum(held - away - minimum, 0))
    return found
