"""Claims to volumes: which are bound, what those that wait may be bound to, and who uses them where.

A claim of a class with `volumeBindingMode: WaitForFirstConsumer` waits until a pod that mounts it has been given a node. It
is then bound to a volume that exists and that the node reaches, the smallest that suffices, or the provisioner of the class
is asked for one. Which of the two it is to be, its *choice*, is made when the pod is placed tentatively, counts for other
pods at once, and is given back when the placement is undone. What a cycle has decided is kept until the claim is bound, or
until the pod is forgotten.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and
https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.api.meta import ObjectMeta
from pumice.api.pods import NodeSelector, Pod
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.model.attachments import Attached, AttachmentTable, More
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.claims import (
    EXCLUSIVE,
    ZONES,
    Wanted,
    Zone,
    ephemeral_claim_names,
)
from pumice.scheduler.model.reach import Reach
from pumice.scheduler.model.tasks import NEEDS_ROOM, Status, Task
from pumice.scheduler.model.volume_pools import Pool, VolumeRecord, suiting

__all__ = ["Choice", "ClaimTable", "Waiting"]

Waiting = tuple[str | Wanted, ...]
"""Claims of a pod that wait: what they ask for, or the name of one that another pod may decide about."""


@dataclass(slots=True)
class Choice:
    """What a claim is to be bound to.

    Attributes:
        volume: Name of the volume; empty when one is to be provisioned.
        node: Node of the pod for which it was chosen.
        holders: Keys of the pods for which it was chosen.
    """

    volume: str
    node: str
    holders: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Use:
    """How a pod uses claims: on which node, the volumes that are attached for it, and whether it is leaving."""

    node: str
    claims: tuple[str, ...]
    attached: tuple[Attached, ...]
    is_leaving: bool


class ClaimTable:
    """All claims, volumes and classes.

    Attributes:
        attachments: Volumes in use by node.
        version: Grows with every change of an object that matters to placement.
        is_binding: Whether pods are placed whose claims wait.
    """

    def __init__(self, reach: Reach, *, assumes_bound: bool = False) -> None:
        """Make a table.

        Args:
            reach: From which nodes volumes can be reached.
            assumes_bound: Whether a claim that is not known counts as bound, to a volume that every node reaches:
                for simulations, whose files rarely hold claims.
        """
        self._assumes_bound = assumes_bound
        self._reach = reach
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, VolumeRecord] = {}
        self._classes: dict[str, StorageClass] = {}
        self._by_class: dict[str, dict[str, VolumeRecord]] = {}
        self._reserved: dict[str, dict[str, VolumeRecord]] = {}
        """Volumes whose `claimRef` names a claim, by the claim."""
        self._owners: dict[str, str] = {}
        """Claims by the volume that they name."""
        self._waiting: set[str] = set()
        self._wants: dict[str, Wanted] = {}
        self._mentions: dict[str, dict[str, None]] = {}
        """Pods that name a claim, wherever they are."""
        self._shared: set[str] = set()
        """Claims that several pods name."""
        self._pods: dict[str, tuple[str, str]] = {}
        """Name and uid of the pods that claims of generic ephemeral volumes are for."""
        self._uses: dict[str, _Use] = {}
        self._users: dict[str, dict[str, bool]] = {}
        """Pods on nodes that use a claim, and whether they are leaving."""
        self._choices: dict[str, Choice] = {}
        self._taken: dict[str, str] = {}
        self._decided: set[str] = set()
        self._pools: dict[Wanted, Pool] = {}
        self._pooled: tuple[int, int] = (-1, -1)
        self.attachments = AttachmentTable()
        self.version = 0
        self.is_binding = True

    # -- events ------------------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Take in a claim; True when something that matters changed."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        old = self._claims.get(key)
        self._claims[key] = claim
        if old is not None and _says_the_same(old, claim):
            return False
        if old is not None:
            self._owners.pop(old.spec.volume_name, None)
        if claim.spec.volume_name:
            self._owners[claim.spec.volume_name] = key
        if old is not None and old.metadata.uid != claim.metadata.uid:
            self._drop_choice(key)
        self._reconsider(key)
        return self._changed()

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Forget a claim."""
        key = f"{namespace}/{name}"
        claim = self._claims.pop(key, None)
        if claim is None:
            return False
        self._owners.pop(claim.spec.volume_name, None)
        self._reconsider(key)
        return self._changed()

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Take in a volume; True when something that matters changed."""
        name = volume.metadata.name
        known = self._volumes.get(name)
        record = self._volumes[name] = VolumeRecord(volume)
        if known is not None:
            self._unlist(known)
        self._by_class.setdefault(volume.storage_class, {})[name] = record
        if record.claim:
            self._reserved.setdefault(record.claim, {})[name] = record
            self._wants.pop(record.claim, None)
        if known is not None:
            old = known.volume
            if (
                old.spec == volume.spec
                and old.status == volume.status
                and old.metadata.labels == volume.metadata.labels
                and old.metadata.deletion_timestamp == volume.metadata.deletion_timestamp
            ):
                return False
        self._reattach_users(name)
        return self._changed()

    def remove_volume(self, name: str) -> bool:
        """Forget a volume."""
        record = self._volumes.pop(name, None)
        if record is None:
            return False
        self._unlist(record)
        self._reattach_users(name)
        return self._changed()

    def _unlist(self, record: VolumeRecord) -> None:
        del self._by_class[record.volume.storage_class][record.name]
        reserved = self._reserved.get(record.claim, {})
        if reserved.pop(record.name, None) is not None:
            self._wants.pop(record.claim, None)
        if not reserved:
            self._reserved.pop(record.claim, None)

    def set_class(self, storage_class: StorageClass) -> bool:
        """Take in a StorageClass; True when something that matters changed."""
        name = storage_class.metadata.name
        old = self._classes.get(name)
        self._classes[name] = storage_class
        if old is not None and _facts(old) == _facts(storage_class):
            return False
        self._reconsider_class(name)
        return self._changed()

    def remove_class(self, name: str) -> bool:
        """Forget a StorageClass."""
        if self._classes.pop(name, None) is None:
            return False
        self._reconsider_class(name)
        return self._changed()

    def set_limits(self, node: CsiNode) -> bool:
        """Take in how many volumes a node can attach; True when that changed."""
        return self.attachments.set_limits(node)

    def remove_limits(self, node: str) -> bool:
        """Forget how many volumes a node can attach."""
        return self.attachments.remove_limits(node)

    def _changed(self) -> bool:
        self.version += 1
        return True

    def _reconsider(self, key: str) -> None:
        """Find out anew whether a claim waits, after it or its class has changed."""
        claim = self._claims.get(key)
        self._wants.pop(key, None)
        waits = claim is not None and self._is_waiting(claim)
        (self._waiting.add if waits else self._waiting.discard)(key)
        if not waits:
            self._drop_choice(key)
        self._reattach(key)

    def _reconsider_class(self, name: str) -> None:
        for key, claim in self._claims.items():
            if claim.storage_class == name:
                self._reconsider(key)

    def _is_waiting(self, claim: PersistentVolumeClaim) -> bool:
        found = self._classes.get(claim.storage_class)
        return (
            found is not None
            and found.waits
            and not claim.spec.volume_name
            and claim.status.phase != "Lost"
        )

    # -- pods --------------------------------------------------------------------------------

    def mention(self, task: Task, pod: Pod) -> None:
        """Note that a pod names claims."""
        for key in task.shape.claims:
            named = self._mentions.setdefault(key, {})
            named[task.key] = None
            if len(named) > 1:
                self._shared.add(key)
        for name in ephemeral_claim_names(task.name, pod.spec.volumes):
            self._pods[f"{task.namespace}/{name}"] = (task.name, task.uid)

    def unmention(self, task: Task) -> None:
        """Note that a pod that names claims is gone."""
        for key in task.shape.claims:
            named = self._mentions.get(key, {})
            named.pop(task.key, None)
            if len(named) < 2:
                self._shared.discard(key)
            if not named:
                self._mentions.pop(key, None)
                self._pods.pop(key, None)

    def occupy(self, task: Task) -> None:
        """Count a pod that has been put on a node; one that waits for volumes gets its choices."""
        status = task.status
        if status in NEEDS_ROOM or status is Status.PIPELINED:
            is_leaving = status is Status.RELEASING
            for key in task.shape.claims:
                self._users.setdefault(key, {})[task.key] = is_leaving
            self._uses[task.key] = _Use(task.node, task.shape.claims, (), is_leaving)
            self._attach(task.key)
            if self._waiting and self.is_binding and status in _TENTATIVE:
                self._choose(task)

    def vacate(self, task: Task) -> None:
        """Undo `occupy`; what a cycle has decided is kept until `undecide`."""
        use = self._uses.pop(task.key, None)
        if use is None:
            return
        self.attachments.use(use.node, use.attached, -1, is_leaving=use.is_leaving)
        for key in use.claims:
            users = self._users.get(key, {})
            users.pop(task.key, None)
            if not users:
                self._users.pop(key, None)
        if task.key not in self._decided:
            self._release(task.key, use.claims)

    def decide(self, task: Task) -> None:
        """Keep the choices of a pod until its claims are bound or it is forgotten."""
        if any(task.key in choice.holders for _, choice in self._choices_of(task.shape.claims)):
            self._decided.add(task.key)

    def undecide(self, task: Task) -> None:
        """Give up the choices that were decided for a pod, unless it is still on its node."""
        if task.key in self._decided:
            self._decided.discard(task.key)
            if task.key not in self._uses:
                self._release(task.key, task.shape.claims)

    def choices(self, task: Task) -> dict[str, Choice]:
        """What claims of a pod are to be bound to, by `namespace/name`; nothing for those that are bound."""
        return dict(self._choices_of(task.shape.claims))

    @property
    def has_choices(self) -> bool:
        """Whether any claim is to be bound."""
        return bool(self._choices)

    def is_reached_by(self, key: str, node: str) -> bool:
        """Whether a node reaches the volume of a bound claim; asked between sessions."""
        record = self._volume(key)
        if record is None or record.affinity is None:
            return True
        self._reach.settle()
        rows = self._reach.rows(record.key, record.affinity)
        return rows is None or self._reach.row(node) in rows

    def _choices_of(self, claims: Sequence[str]) -> list[tuple[str, Choice]]:
        return [(key, self._choices[key]) for key in claims if key in self._choices]

    def _attach(self, pod: str) -> None:
        use = self._uses[pod]
        found = {volume for key in use.claims if (volume := self._attached(key)) is not None}
        attached = tuple(sorted(found))
        self._uses[pod] = _Use(use.node, use.claims, attached, use.is_leaving)
        self.attachments.use(use.node, attached, 1, is_leaving=use.is_leaving)

    def _reattach(self, claim: str) -> None:
        """Count the pods that use a claim anew, after it has changed."""
        for pod in list(self._users.get(claim, ())):
            use = self._uses[pod]
            self.attachments.use(use.node, use.attached, -1, is_leaving=use.is_leaving)
            self._attach(pod)

    def _reattach_users(self, volume: str) -> None:
        owner = self._owners.get(volume)
        if owner is not None:
            self._reattach(owner)

    def _attached(self, key: str) -> Attached | None:
        """A claim's volume as nodes count it; of a claim that waits, the one that is to be."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        if claim.spec.volume_name:
            record = self._volumes.get(claim.spec.volume_name)
            csi = record.volume.spec.csi if record is not None else None
            return (csi.driver, csi.volume_handle) if csi is not None else None
        found = self._classes.get(claim.storage_class)
        return (found.provisioner, f"claim {key}") if found is not None else None

    # -- choices -----------------------------------------------------------------------------

    def _choose(self, task: Task) -> None:
        """Choose volumes for the claims of a pod that wait, the smallest claim first, as Kubernetes does."""
        waiting = [key for key in task.shape.claims if key in self._waiting]
        row = self._reach.row(task.node)
        for key in sorted(waiting, key=lambda each: self._wanted(each).size):
            choice = self._choices.get(key)
            if choice is None:
                wanted = self._wanted(key)
                volume = "" if wanted.node else self._pool(wanted).smallest(row, self._is_free)
                choice = self._choices[key] = Choice(volume, task.node)
                if volume:
                    self._take(volume, key)
            choice.holders.add(task.key)

    def _release(self, pod: str, claims: Sequence[str]) -> None:
        for key, choice in self._choices_of(claims):
            choice.holders.discard(pod)
            if not choice.holders:
                self._drop_choice(key)

    def _drop_choice(self, key: str) -> None:
        choice = self._choices.pop(key, None)
        if choice is not None and choice.volume:
            del self._taken[choice.volume]
            self._count(choice.volume, -1)

    def _take(self, volume: str, key: str) -> None:
        self._taken[volume] = key
        self._count(volume, 1)

    def _count(self, volume: str, sign: int) -> None:
        if self._are_pools_current() and volume not in self._owners:
            for pool in self._pools.values():
                if volume in pool:
                    pool.take(volume, sign)

    def _is_free(self, volume: str) -> bool:
        return volume not in self._taken and volume not in self._owners

    def _are_pools_current(self) -> bool:
        return self._pooled == (self.version, self._reach.version)

    def _pool(self, wanted: Wanted) -> Pool:
        if not self._are_pools_current():
            self._pools.clear()
            self._pooled = (self.version, self._reach.version)
        wanted = wanted._replace(node="")
        found = self._pools.get(wanted)
        if found is None:
            volumes = suiting(wanted, self._by_class.get(wanted.storage_class, {}).values())
            taken = self._taken.keys() | self._owners.keys()
            found = self._pools[wanted] = Pool(volumes, self._reach, taken)
        return found

    def _wanted(self, key: str) -> Wanted:
        found = self._wants.get(key)
        if found is None:
            claim = self._claims[key]
            found = Wanted.of(claim, "")
            reserved = [
                name
                for name, each in self._reserved.get(key, {}).items()
                if each.is_for(claim)
                and each.is_large_enough(found)
                and each.volume.storage_class == found.storage_class
            ]
            if reserved:
                found = found._replace(reserved=min(reserved))
            self._wants[key] = found
        return found

    def claim(self, key: str) -> PersistentVolumeClaim:
        """A claim that is known."""
        return self._claims[key]

    # -- questions: a claim --------------------------------------------------------------------

    def problem(self, key: str) -> str | None:
        """Why a pod with this claim, `namespace/name`, cannot be placed on any node; None when it can."""
        claim = self._claims.get(key)
        name = key.partition("/")[2]
        pod = self._pods.get(key)
        if claim is None:
            if self._assumes_bound:
                return None
            if pod is not None:
                return (
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"'
                )
            return (
                f'persistentvolumeclaim "{name}" not found; create it in the namespace of the pod'
            )
        if claim.status.phase == "Lost":
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volume_name}"; delete the claim and create it again'
            )
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if pod is not None and pod[1] and not _is_owned(claim.metadata, pod[1]):
            return (
                f"PVC {key} was not created for pod {key.partition('/')[0]}/{pod[0]} "
                "(pod is not owner); delete or rename the claim"
            )
        if claim.is_bound:
            volume = claim.spec.volume_name
            if volume in self._volumes or self._assumes_bound:
                return None
            return f'persistentvolume "{volume}" of persistentvolumeclaim "{name}" not found'
        if key in self._waiting:
            return None
        return (
            f'pod has unbound immediate PersistentVolumeClaims: persistentvolumeclaim "{name}" '
            f"{self._why_immediate(claim)}"
        )

    def _why_immediate(self, claim: PersistentVolumeClaim) -> str:
        name = claim.storage_class
        if claim.spec.volume_name:
            return f'waits for persistentvolume "{claim.spec.volume_name}"'
        if not name:
            return "has no storage class; create a PersistentVolume that suits it"
        found = self._classes.get(name)
        if found is None:
            return f'names storage class "{name}", which does not exist; create the class'
        if not found.provisions:
            return f'waits for a PersistentVolume of storage class "{name}" that suits it'
        return f'waits for its provisioner "{found.provisioner}"'

    def affinity(self, key: str) -> NodeSelector | None:
        """Nodes from which the volume of a bound claim can be reached; None when all of them."""
        record = self._volume(key)
        return record.affinity if record is not None else None

    def zones(self, key: str) -> list[Zone]:
        """Labels that nodes need for the volume of a bound claim."""
        record = self._volume(key)
        labels = (record.volume.metadata.labels if record is not None else None) or {}
        return [(name, frozenset(labels[name].split("__"))) for name in ZONES if name in labels]

    def _volume(self, key: str) -> VolumeRecord | None:
        claim = self._claims.get(key)
        return self._volumes.get(claim.spec.volume_name) if claim is not None else None

    # -- questions: a pod ----------------------------------------------------------------------

    def alike(self, claims: Sequence[str]) -> tuple[Hashable, ...]:
        """What of a pod's claims decides about nodes: equal for pods to which the same nodes are equally good."""
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
            for key in claims
            if key in self._waiting
        )

    def exclusive(self, claims: Sequence[str]) -> list[str]:
        """Those of a pod's claims that one pod at a time may use, and that others name."""
        return [key for key in claims if key in self._shared and self._is_exclusive(key)]

    def _is_exclusive(self, key: str) -> bool:
        claim = self._claims.get(key)
        return claim is not None and EXCLUSIVE in (claim.spec.access_modes or ())

    def is_in_use(self, key: str, *, is_later: bool) -> bool:
        """Whether a pod on a node uses a claim; with `is_later` one that stays there."""
        users = self._users.get(key, {})
        return any(not leaving for leaving in users.values()) if is_later else bool(users)

    def more(self, claims: Sequence[str]) -> More:
        """Volumes of a pod that a node with limits would have to attach, as they are now."""
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

    # -- questions: claims that wait -----------------------------------------------------------

    def has_wide_claims(self) -> bool:
        """Whether placing a pod may change for other nodes what claims can be bound to there, or who may use one."""
        if any(key in self._waiting or self._is_exclusive(key) for key in self._shared):
            return True
        classes = {self._claims[key].storage_class for key in self._waiting}
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
        """How far placing a pod changes where claims can be bound: as `Scope`."""
        pools = [self._pool(each) for each in waiting if isinstance(each, Wanted) and not each.node]
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
        free: list[Wanted] = []
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

    def _suffice(self, claims: Sequence[Wanted], rows: Ints) -> Bools:
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

    def _fit_together(self, claims: Sequence[Wanted], row: int) -> bool:
        """Whether claims that share volumes each find one on a node, the smallest claim first."""
        chosen: set[str] = set()
        for wanted in sorted(claims, key=lambda each: each.size):
            volume = self._pool(wanted).smallest(
                row, lambda name: self._is_free(name) and name not in chosen
            )
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

    # -- for tests -----------------------------------------------------------------------------

    def snapshot(self) -> tuple[object, ...]:
        """Everything that follows from which pods are where, to compare."""
        choices = {
            key: (choice.volume, choice.node, frozenset(choice.holders))
            for key, choice in self._choices.items()
        }
        users = {key: dict(pods) for key, pods in self._users.items()}
        return (choices, dict(self._taken), users, self.attachments.snapshot())


_TENTATIVE = (Status.ALLOCATED, Status.PIPELINED)


def _says_the_same(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return (
        old.spec == new.spec
        and old.metadata.uid == new.metadata.uid
        and old.status.phase == new.status.phase
        and old.is_bound == new.is_bound
        and old.selected_node == new.selected_node
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.metadata.owner_references == new.metadata.owner_references
        and old.storage_class == new.storage_class
    )


def _facts(storage_class: StorageClass) -> tuple[object, ...]:
    return (
        storage_class.provisioner,
        storage_class.volume_binding_mode,
        storage_class.allowed_topologies,
    )


def _is_owned(meta: ObjectMeta, uid: str) -> bool:
    return any(each.controller and each.uid == uid for each in meta.owner_references or ())
