"""Queries of filters about claims: which are equivalent, and on which nodes waiting claims can be bound."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from pumice.scheduler.model.attachments import Attached, More
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.claim_uses import ClaimUses
from pumice.scheduler.model.claims import WantedVolume
from pumice.scheduler.model.volume_pools import VolumeRecord

__all__ = ["ClaimTable", "Waiting"]

Waiting = tuple[str | WantedVolume, ...]
"""Claims of a pod that wait: what they ask for, or the name of one that another pod may decide about."""


class ClaimTable(ClaimUses):
    """All claims, volumes and classes, with what is decided about them."""

    # -- questions: a pod ----------------------------------------------------------------------

    def alike(self, claims: Sequence[str]) -> tuple[Hashable, ...]:
        """A key that is equal for pods whose claims allow the same nodes."""
        return tuple([self._kind(key) for key in claims])

    def _kind(self, key: str) -> Hashable:
        claim = self._claims.get(key)
        if claim is None or not self._is_private(key):
            return key
        attached = self._attached(key)
        driver = attached[0] if attached is not None else ""
        if key in self._waiting:
            return (self._wanted(key), driver)
        record = self._volume(key)
        if record is None or not claim.is_bound or self.problem(key) is not None:
            return key
        return (record.key, tuple(self.zones(key)), driver)

    def _is_private(self, key: str) -> bool:
        """Whether only one pod names a claim, and nothing has been decided about it or is attached for it."""
        if key in self._choices or key in self._users or key in self._shared:
            return False
        attached = self._attached(key)
        return attached is None or not self.attachments.is_used(attached)

    def waiting(self, claims: Sequence[str]) -> Waiting:
        """Those of a pod's claims that wait, as they are now."""
        return tuple(
            self._wanted(key) if self._is_private(key) else key
            for key in dict.fromkeys(claims)
            if key in self._waiting
        )

    def exclusive(self, claims: Sequence[str]) -> list[str]:
        """Those of a pod's claims that one pod at a time may use, and that others name."""
        return [key for key in claims if key in self._shared and self._is_exclusive(key)]

    def is_in_use(self, key: str, *, is_later: bool) -> bool:
        """Whether a pod on a node uses a claim; with `is_later` one that stays there."""
        users = self._users.get(key, {})
        return any(not leaving for leaving in users.values()) if is_later else bool(users)

    def more(self, claims: Sequence[str]) -> More:
        """Volumes of a pod that a node with limits would have to attach."""
        found: dict[str, tuple[int, tuple[Attached, ...]]] = {}
        if not self.attachments.limits:
            return found
        seen: set[Attached] = set()
        for key in claims:
            attached = self._attached(key)
            if attached is None or attached in seen or attached[0] not in self.attachments.limits:
                continue
            seen.add(attached)
            count, shared = found.get(attached[0], (0, ()))
            if self._is_private(key):
                found[attached[0]] = (count + 1, shared)
            else:
                found[attached[0]] = (count, (*shared, attached))
        return found

    # -- queries: waiting claims -----------------------------------------------------------

    def has_wide_claims(self) -> bool:
        """Whether placing a pod may change for other nodes what claims can be bound to there, or who may use one."""
        if any(key in self._waiting or self._is_exclusive(key) for key in self._shared):
            return True
        mounted = (key for key in self._waiting if key in self._mentions)
        classes = {self._claims[key].storage_class for key in mounted}
        return any(
            self._is_wide(record)
            for name in sorted(classes)
            for record in self._by_class.get(name, {}).values()
            if record.volume.spec.claim_ref is None
        )

    def _is_wide(self, record: VolumeRecord) -> bool:
        rows = self._reach.rows(record.key, record.affinity)
        return rows is None or len(rows) > 1

    def scope(self, waiting: Waiting) -> str:
        """How far placing a pod changes where claims can be bound, as a `Scope`."""
        pools = [
            self._pool(each) for each in waiting if isinstance(each, WantedVolume) and not each.node
        ]
        if any(isinstance(each, str) for each in waiting) or any(not x.is_narrow for x in pools):
            return "all"
        return "row" if any(pools) else "fixed"

    def bindable(self, waiting: Waiting, index: slice | Ints) -> Bools:
        """On which rows claims that wait can be bound all together.

        Args:
            waiting: The claims.
            index: The rows.
        """
        rows = np.arange(self._reach.count)[index]
        found = np.ones(len(rows), dtype=np.bool_)
        free: list[WantedVolume] = []
        for each in waiting:
            key = each if isinstance(each, str) else ""
            choice = self._choices.get(key)
            wanted = self._wanted(each) if isinstance(each, str) else each
            if choice is not None and choice.volume:
                record = self._volumes.get(choice.volume)
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
        found = self._classes.get(storage_class)
        if found is None or not found.provisions:
            return np.zeros(len(rows), dtype=np.bool_)
        mask = self._reach.topology(storage_class, found.allowed_topologies or ())
        return np.ones(len(rows), dtype=np.bool_) if mask is None else mask[rows]
