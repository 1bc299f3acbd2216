"""What claims that wait are to be bound to.

A claim is bound to a volume that exists and that the node reaches, the smallest that suffices, or the provisioner of its
class is asked for one. Which of the two it is to be, its *choice*, is made when the pod is placed tentatively, counts for
other pods at once, and is given back when the placement is undone. What a cycle has decided is kept until the claim is
bound, or until the pod is forgotten.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.claim_objects import ClaimObjects
from pumice.scheduler.model.claims import WantedVolume
from pumice.scheduler.model.node_selection import NodeSelection
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.model.volume_pools import VolumePool, suiting

Waiting = tuple[str | WantedVolume, ...]
"""Claims of a pod that wait: what they ask for, or the name of one that another pod may decide about."""


class VolumeChoice(msgspec.Struct):
    """What a claim is to be bound to.

    Attributes:
        volume: Name of the volume; empty when one is to be provisioned.
        node: Node of the pod for which it was chosen.
        holders: Keys of the pods for which it was chosen.
    """

    volume: str
    node: str
    holders: set[str] = msgspec.field(default_factory=set)


class ClaimChoices:
    """The choices, and the volumes that are left.

    Attributes:
        by_claim: The choices by `namespace/name` of their claims; to be read only.
    """

    def __init__(self, objects: ClaimObjects, reach: NodeSelection) -> None:
        self._objects = objects
        self._reach = reach
        self.by_claim: dict[str, VolumeChoice] = {}
        self._taken: dict[str, str] = {}
        self._decided: set[str] = set()
        self._pools: dict[WantedVolume, VolumePool] = {}
        self._pooled: tuple[int, int] = (-1, -1)

    def of(self, claims: Iterable[str]) -> dict[str, VolumeChoice]:
        """The choices of some claims, by `namespace/name`; nothing for those that are bound."""
        return {key: self.by_claim[key] for key in claims if key in self.by_claim}

    def choose(self, task: TaskInfo) -> None:
        """Choose volumes for the claims of a pod that wait, the smallest claim first, as Kubernetes does."""
        waiting = [key for key in task.shape.claims if key in self._objects.waiting]
        row = self._reach.row(task.node)
        for key in sorted(waiting, key=lambda each: self._objects.wanted(each).size):
            choice = self.by_claim.get(key)
            if choice is None:
                wanted = self._objects.wanted(key)
                volume = "" if wanted.node else self._pool(wanted).smallest(row)
                choice = self.by_claim[key] = VolumeChoice(volume, task.node)
                if volume:
                    self._taken[volume] = key
                    self._count(volume, 1)
            choice.holders.add(task.key)

    def decide(self, task: TaskInfo) -> None:
        """Keep the choices of a pod until its claims are bound or the pod is gone."""
        if any(task.key in choice.holders for choice in self.of(task.shape.claims).values()):
            self._decided.add(task.key)

    def undecide(self, pod: str) -> bool:
        """Decide nothing for a pod any more; True if something was decided, which it has still to release."""
        was_decided = pod in self._decided
        self._decided.discard(pod)
        return was_decided

    def release(self, pod: str, claims: Sequence[str]) -> None:
        """Give back what was chosen for a pod, unless a cycle has decided it."""
        if pod in self._decided:
            return
        for key, choice in self.of(claims).items():
            choice.holders.discard(pod)
            if not choice.holders:
                self.drop(key)

    def drop(self, key: str) -> None:
        """Give back what was chosen for a claim."""
        choice = self.by_claim.pop(key, None)
        if choice is not None and choice.volume:
            del self._taken[choice.volume]
            self._count(choice.volume, -1)

    # -- queries ---------------------------------------------------------------------------

    def scope(self, waiting: Waiting) -> str:
        """How far placing a pod changes where claims can be bound, as a `Scope`."""
        pools = [
            self._pool(each) for each in waiting if isinstance(each, WantedVolume) and not each.node
        ]
        if any(isinstance(each, str) for each in waiting) or any(not x.is_narrow for x in pools):
            return "all"
        return "row" if any(pools) else "fixed"

    def bindable(self, waiting: Waiting, index: slice | Ints) -> Bools:
        """On which rows claims that wait can be bound all together."""
        rows = np.arange(self._reach.count)[index]
        found = np.ones(len(rows), dtype=np.bool_)
        free: list[WantedVolume] = []
        for each in waiting:
            choice = self.by_claim.get(each) if isinstance(each, str) else None
            wanted = self._objects.wanted(each) if isinstance(each, str) else each
            if choice is not None and choice.volume:
                record = self._objects.volumes.get(choice.volume)
                reached = self._reach.rows(record.key, record.affinity) if record else None
                found &= np.isin(rows, reached) if reached is not None else record is not None
            elif choice is not None or wanted.node:
                node = choice.node if choice is not None else wanted.node
                found &= rows == self._reach.row(node)
                found &= self._provisions(wanted.storage_class, rows)
            else:
                free.append(wanted)
        for storage_class in dict.fromkeys(each.storage_class for each in free):
            claims = [each for each in free if each.storage_class == storage_class]
            found &= self._provisions(storage_class, rows) | self._suffice(claims, rows)
        return found

    def _suffice(self, claims: Sequence[WantedVolume], rows: Ints) -> Bools:
        """Rows that reach enough free volumes for all claims of one class."""
        pools = [(self._pool(wanted), count) for wanted, count in Counter(claims).items()]
        enough = np.ones(len(rows), dtype=np.bool_)
        for pool, count in pools:
            enough &= pool.counts[rows] + pool.everywhere >= count
        if len(pools) > 1 and len(set().union(*[set(pool) for pool, _ in pools])) < sum(
            len(set(pool)) for pool, _ in pools
        ):
            for place in np.flatnonzero(enough).tolist():
                enough[place] = self._fit_together(claims, int(rows[place]))
        return enough

    def _fit_together(self, claims: Sequence[WantedVolume], row: int) -> bool:
        """True if each of several claims finds a volume of its own on a node; volumes are assigned to the smallest claim first."""
        chosen: set[str] = set()
        for wanted in sorted(claims, key=lambda each: each.size):
            volume = self._pool(wanted).smallest(row, chosen)
            if not volume:
                return False
            chosen.add(volume)
        return True

    def _provisions(self, storage_class: str, rows: Ints) -> Bools:
        """Rows on which a class makes volumes on demand."""
        found = self._objects.classes.get(storage_class)
        if found is None or not found.provisions:
            return np.zeros(len(rows), dtype=np.bool_)
        mask = self._reach.topology(storage_class, found.allowed_topologies or ())
        return np.ones(len(rows), dtype=np.bool_) if mask is None else mask[rows]

    # -- pools of volumes --------------------------------------------------------------------

    def _count(self, volume: str, sign: int) -> None:
        if self._are_pools_current() and volume not in self._objects.owners:
            for pool in self._pools.values():
                if volume in pool:
                    pool.take(volume, sign)

    def _are_pools_current(self) -> bool:
        return self._pooled == (self._objects.version, self._reach.version)

    def _pool(self, wanted: WantedVolume) -> VolumePool:
        if not self._are_pools_current():
            self._pools.clear()
            self._pooled = (self._objects.version, self._reach.version)
        wanted = wanted._replace(node="")
        found = self._pools.get(wanted)
        if found is None:
            of_class = self._objects.by_class.get(wanted.storage_class, {})
            taken = self._taken.keys() | self._objects.owners.keys()
            volumes = suiting(wanted, of_class.values())
            found = self._pools[wanted] = VolumePool(volumes, self._reach, taken)
        return found
