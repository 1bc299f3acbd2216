"""Claims to volumes: which are bound, what those that wait may be bound to, and who uses them where.

A claim of a class with `volumeBindingMode: WaitForFirstConsumer` waits until a pod that mounts it has been given a node. It
is then bound to a volume that exists and that the node reaches, the smallest that suffices, or the provisioner of the class
is asked for one. Which of the two it is to be, its *choice*, is made when the pod is placed tentatively, counts for other
pods at once, and is given back when the placement is undone. What a cycle has decided is kept until the claim is bound, or
until the pod is forgotten.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and
https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.api.pods import Pod
from pumice.api.volumes import CsiNode
from pumice.scheduler.model.attachments import Attached, AttachmentTable
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.claim_objects import ClaimObjects
from pumice.scheduler.model.claims import (
    WantedVolume,
    ephemeral_claim_names,
)
from pumice.scheduler.model.node_selection import NodeSelection
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus, TaskInfo
from pumice.scheduler.model.volume_pools import VolumePool, suiting

__all__ = ["ClaimUses", "VolumeChoice"]


@dataclass(slots=True)
class VolumeChoice:
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


class ClaimUses(ClaimObjects):
    """Who uses claims where, and what claims that wait are to be bound to.

    Attributes:
        attachments: Volumes in use by node.
        is_binding: Whether pods are placed whose claims wait.
    """

    def __init__(self, reach: NodeSelection, *, assumes_bound: bool = False) -> None:
        """Make an empty table; see `ClaimObjects`.

        Args:
            reach: From which nodes volumes can be reached.
            assumes_bound: Whether a claim that is not known counts as bound.
        """
        super().__init__(assumes_bound=assumes_bound)
        self._reach = reach
        self._mentions: dict[str, dict[str, None]] = {}
        """Pods that name a claim, wherever they are."""
        self._shared: set[str] = set()
        """Claims that several pods name."""
        self._uses: dict[str, _Use] = {}
        self._users: dict[str, dict[str, bool]] = {}
        """Pods on nodes that use a claim, and whether they are leaving."""
        self._choices: dict[str, VolumeChoice] = {}
        self._taken: dict[str, str] = {}
        self._decided: set[str] = set()
        self._pools: dict[WantedVolume, VolumePool] = {}
        self._pooled: tuple[int, int] = (-1, -1)
        self.attachments = AttachmentTable()
        self.is_binding = True

    def set_limits(self, node: CsiNode) -> bool:
        """Take in how many volumes a node can attach; True when that changed."""
        return self.attachments.set_limits(node)

    def remove_limits(self, node: str) -> bool:
        """Forget how many volumes a node can attach."""
        return self.attachments.remove_limits(node)

    def _claim_changed(self, key: str) -> None:
        if key not in self._waiting:
            self._drop_choice(key)
        self._reattach(key)

    # -- pods --------------------------------------------------------------------------------

    def mention(self, task: TaskInfo, pod: Pod) -> None:
        """Note that a pod names claims; one that has ended does not count."""
        if task.status in (SchedulingStatus.SUCCEEDED, SchedulingStatus.FAILED):
            return
        for key in task.shape.claims:
            named = self._mentions.setdefault(key, {})
            named[task.key] = None
            if len(named) > 1:
                self._shared.add(key)
        for name in ephemeral_claim_names(task.name, pod.spec.volumes):
            self._pods[f"{task.namespace}/{name}"] = (task.name, task.uid)

    def unmention(self, task: TaskInfo) -> None:
        """Note that a pod that names claims is gone."""
        for key in task.shape.claims:
            named = self._mentions.get(key, {})
            named.pop(task.key, None)
            if len(named) < 2:
                self._shared.discard(key)
            if not named:
                self._mentions.pop(key, None)
                self._pods.pop(key, None)

    def claimants(self, key: str) -> list[str]:
        """Keys of the pods that name a claim and have not ended."""
        return list(self._mentions.get(key, ()))

    @property
    def are_mounted(self) -> bool:
        """True if a pod that has not ended refers to a claim."""
        return bool(self._mentions)

    def occupy(self, task: TaskInfo) -> None:
        """Count a pod that has been put on a node; one that waits for volumes gets its choices."""
        status = task.status
        if status in NEEDS_ROOM or status is SchedulingStatus.PIPELINED:
            is_leaving = status is SchedulingStatus.RELEASING
            for key in task.shape.claims:
                self._users.setdefault(key, {})[task.key] = is_leaving
            self._uses[task.key] = _Use(task.node, task.shape.claims, (), is_leaving)
            self._attach(task.key)
            if self._waiting and self.is_binding and status in _TENTATIVE:
                self._choose(task)

    def vacate(self, task: TaskInfo) -> None:
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

    def decide(self, task: TaskInfo) -> None:
        """Keep the choices of a pod until its claims are bound or it is forgotten."""
        if any(task.key in choice.holders for _, choice in self._choices_of(task.shape.claims)):
            self._decided.add(task.key)

    def undecide(self, task: TaskInfo) -> None:
        """Give up the choices that were decided for a pod, unless it is still on its node."""
        if task.key in self._decided:
            self._decided.discard(task.key)
            if task.key not in self._uses:
                self._release(task.key, task.shape.claims)

    def choices(self, task: TaskInfo) -> dict[str, VolumeChoice]:
        """What claims of a pod are to be bound to, by `namespace/name`; nothing for those that are bound."""
        return dict(self._choices_of(task.shape.claims))

    def chosen(self, key: str) -> str:
        """The volume that a claim is to be bound to; empty for none, or one that is to be provisioned."""
        choice = self._choices.get(key)
        return choice.volume if choice is not None else ""

    @property
    def has_choices(self) -> bool:
        """Whether any claim is to be bound."""
        return bool(self._choices)

    def reached_from(self, key: str) -> Ints | None:
        """Rows of the nodes that reach the volume of a bound claim; None for all. To be read only."""
        record = self._volume(key)
        return self._reach.rows(record.key, record.affinity) if record is not None else None

    def is_reached_by(self, key: str, node: str) -> bool:
        """Whether a node reaches the volume of a bound claim; asked between sessions."""
        self._reach.settle()
        rows = self.reached_from(key)
        return rows is None or self._reach.row(node) in rows

    def _choices_of(self, claims: Sequence[str]) -> list[tuple[str, VolumeChoice]]:
        return [(key, self._choices[key]) for key in claims if key in self._choices]

    def _attach(self, pod: str) -> None:
        use = self._uses[pod]
        found = {volume for key in use.claims if (volume := self._attached(key)) is not None}
        attached = tuple(sorted(found))
        self._uses[pod] = _Use(use.node, use.claims, attached, use.is_leaving)
        self.attachments.use(use.node, attached, 1, is_leaving=use.is_leaving)

    def _reattach(self, claim: str) -> None:
        """Count the pods that use a claim again, after it has changed."""
        for pod in list(self._users.get(claim, ())):
            use = self._uses[pod]
            self.attachments.use(use.node, use.attached, -1, is_leaving=use.is_leaving)
            self._attach(pod)

    # -- choices -----------------------------------------------------------------------------

    def _choose(self, task: TaskInfo) -> None:
        """Choose volumes for the claims of a pod that wait, the smallest claim first, as Kubernetes does."""
        waiting = [key for key in task.shape.claims if key in self._waiting]
        row = self._reach.row(task.node)
        for key in sorted(waiting, key=lambda each: self._wanted(each).size):
            choice = self._choices.get(key)
            if choice is None:
                wanted = self._wanted(key)
                volume = "" if wanted.node else self._pool(wanted).smallest(row)
                choice = self._choices[key] = VolumeChoice(volume, task.node)
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

    def _are_pools_current(self) -> bool:
        return self._pooled == (self.version, self._reach.version)

    def _pool(self, wanted: WantedVolume) -> VolumePool:
        if not self._are_pools_current():
            self._pools.clear()
            self._pooled = (self.version, self._reach.version)
        wanted = wanted._replace(node="")
        found = self._pools.get(wanted)
        if found is None:
            volumes = suiting(wanted, self._by_class.get(wanted.storage_class, {}).values())
            taken = self._taken.keys() | self._owners.keys()
            found = self._pools[wanted] = VolumePool(volumes, self._reach, taken)
        return found

    # -- for tests -----------------------------------------------------------------------------

    def snapshot(self) -> tuple[object, ...]:
        """Everything that follows from which pods are where, to compare."""
        choices = {
            key: (choice.volume, choice.node, frozenset(choice.holders))
            for key, choice in self._choices.items()
        }
        users = {key: dict(pods) for key, pods in self._users.items()}
        return (choices, dict(self._taken), users, self.attachments.snapshot())


_TENTATIVE = (SchedulingStatus.ALLOCATED, SchedulingStatus.PIPELINED)
