"""What queues may have and deserve, by row and column, from their specs and from the queues above them.

Without hierarchy, all queues stand side by side and share the cluster. With it, queues share what the queue above them may
have. Of a queue:

* its guarantee is what it states, or what the queues below it are guaranteed together if that is more;
* its real capability is what is above it without the guarantees of its siblings, and at most its `capability`;
* what it deserves is its `deserved`, at most its real capability and at least its guarantee.

Parts of the cluster are meant for pods on ready nodes, and `capability` is a limit for all pods. All amounts here are compared with
what all pods of a queue hold, so those of the first kind are larger by what its pods hold on other nodes.
"""

import msgspec
import numpy as np

from pumice.scheduler.model.axis import CPU, MEMORY, Bools, Ints
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.running_pods import Away


class Entitlements(msgspec.Struct, frozen=True):
    """What queues may have and deserve, by row and column.

    Attributes:
        capability: What a queue states as its limit; `UNLIMITED` where it states none.
        guarantee: What is kept for it and those below it.
        real: What it may have at most as the cluster is.
        entry: The same, to be compared with what its gangs have without what they hold beyond their minimum.
        away: What its pods, and those of queues below it, hold on nodes that are not ready.
        needed_away: The part of it that `entry` counts.
        deserved: What it deserves.
        named: Resources of which it deserves something.
        parents: Row of the queue above it by row, -1 for one that stands at the top.
        paths: Rows of a queue and of those above it, by row.
    """

    capability: Ints
    guarantee: Ints
    real: Ints
    entry: Ints
    away: Ints
    needed_away: Ints
    deserved: Ints
    named: Bools
    parents: list[int]
    paths: list[list[int]]

    @classmethod
    def of(cls, table: QueueTable, total: Ints, away: Away, *, in_tree: bool) -> "Entitlements":
        """Entitlements to what ready nodes have, by column; `in_tree`: queues share what the queue above them may have."""
        count = len(table.names)
        parents = list(table.parents) if in_tree else [-1] * count
        paths = [path.tolist() for path in table.paths] if in_tree else [[n] for n in range(count)]
        levels = table.levels if in_tree else [np.arange(count)]
        above = np.array(parents, dtype=np.int64)
        capability = _capability(table.limits.capability)
        guarantee = table.limits.guarantee.copy()
        kept = _below(guarantee, levels, above)
        held, needed = away.held, away.needed
        if in_tree and held.any():
            held, needed = table.below(held), table.below(needed)
        within = np.maximum(capability - held, 0)
        parts = np.zeros_like(capability)
        real = np.zeros_like(capability)
        for level in levels:
            have = np.where((above[level] >= 0)[:, None], real[above[level]], total)
            parts[level] = np.maximum(have - kept[above[level]], 0) + guarantee[level]
            real[level] = np.minimum(parts[level], within[level])
        deserved = np.maximum(np.minimum(table.limits.deserved, real), guarantee)
        named = deserved > 0
        return cls(
            capability,
            np.where(guarantee > 0, guarantee + held, 0),
            np.minimum(parts + held, capability),
            np.minimum(parts + needed, capability),
            held,
            needed,
            np.where(named, deserved + held, 0),
            named,
            parents,
            paths,
        )


def _capability(stated: Ints) -> Ints:
    """Limits. As in Volcano, 0 of both CPU and memory means no limit, and 0 of another resource means none of it."""
    capability = stated.copy()
    basic = capability[:, [CPU, MEMORY]]
    capability[:, [CPU, MEMORY]] = np.where(basic == 0, UNLIMITED, basic)
    return capability


def _below(guarantee: Ints, levels: list[Ints], above: Ints) -> Ints:
    """What is kept for the children of each queue; the last row is for those at the top.

    The guarantee of a queue grows to what is kept for its children.
    """
    kept = np.zeros((len(guarantee) + 1, guarantee.shape[1]), dtype=np.int64)
    for level in reversed(levels):
        guarantee[level] = np.maximum(guarantee[level], kept[level])
        np.add.at(kept, above[level], guarantee[level])
    return kept
