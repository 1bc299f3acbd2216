"""Which pods use which claims, whether they can, and on which nodes; with the claims, and what is chosen for those that wait."""

from collections.abc import Hashable, Sequence

import msgspec

from pumice.api.meta import ObjectMeta
from pumice.api.not_here_yet import LONGEST_ABOUT_PODS
from pumice.api.pods import Pod
from pumice.api.volumes import PersistentVolumeClaim
from pumice.scheduler.model.affinity_terms import is_too_long
from pumice.scheduler.model.attachments import Attached, AttachmentTable, More
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.claim_choices import ClaimChoices, Waiting
from pumice.scheduler.model.claim_objects import ClaimObjects
from pumice.scheduler.model.claims import ZONES, Zone, claim_names
from pumice.scheduler.model.node_selection import NodeSelection
from pumice.scheduler.model.tasks import NEEDS_ROOM, TENTATIVE, SchedulingStatus, TaskInfo


class _Use(msgspec.Struct, frozen=True):
    """How a pod uses claims: on which node, the volumes that are attached for it, and whether it is leaving."""

    node: str
    claims: tuple[str, ...]
    attached: tuple[Attached, ...]
    is_leaving: bool


class ClaimTable:
    """Pods by the claims that they name and use.

    Attributes:
        is_binding: Whether pods are placed whose claims wait.
    """

    def __init__(self, reach: NodeSelection, *, assumes_bound: bool = False) -> None:
        """Make an empty table.

        With `assumes_bound`, for simulations, whose files rarely hold claims, a claim that is not known counts as bound to a volume
        that every node reaches.
        """
        self._reach = reach
        self._assumes_bound = assumes_bound
        self.objects = ClaimObjects(self._claim_changed)
        self.choices = ClaimChoices(self.objects, reach)
        self._mentions: dict[str, dict[str, None]] = {}
        """Pods that name a claim, wherever they are."""
        self._shared: set[str] = set()
        """Claims that several pods name."""
        self._pods: dict[str, tuple[str, str]] = {}
        """Name and uid of the pods that claims of generic ephemeral volumes are for."""
        self._uses: dict[str, _Use] = {}
        self._users: dict[str, dict[str, bool]] = {}
        """Pods on nodes that use a claim, and whether they are leaving."""
        self.attachments = AttachmentTable()
        self.is_binding = True

    # -- events --------------------------------------------------------------------------------

    def _claim_changed(self, key: str) -> None:
        if key not in self.objects.waiting:
            self.choices.drop(key)
        for pod in list(self._users.get(key, ())):
            use = self._uses[pod]
            self.attachments.use(use.node, use.attached, -1, is_leaving=use.is_leaving)
            self._attach(pod)

    def mention(self, task: TaskInfo, pod: Pod) -> None:
        """Record that a pod names claims; a pod that has ended does not count."""
        if task.status in (SchedulingStatus.SUCCEEDED, SchedulingStatus.FAILED):
            return
        for key in task.shape.claims:
            named = self._mentions.setdefault(key, {})
            named[task.key] = None
            if len(named) > 1:
                self._shared.add(key)
        for name, is_ephemeral in claim_names(task.name, pod.spec.volumes):
            if is_ephemeral:
                self._pods[f"{task.namespace}/{name}"] = (task.name, task.uid)

    def unmention(self, task: TaskInfo) -> None:
        """Record that a pod with claims is gone."""
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
        """Add a pod that was put on a node; a pod that waits for volumes gets its choices."""
        status = task.status
        if status in NEEDS_ROOM or status is SchedulingStatus.PIPELINED:
            is_leaving = status is SchedulingStatus.RELEASING
            for key in task.shape.claims:
                self._users.setdefault(key, {})[task.key] = is_leaving
            self._uses[task.key] = _Use(task.node, task.shape.claims, (), is_leaving)
            self._attach(task.key)
            if self.is_binding and status in TENTATIVE and self.objects.waiting:
                self.choices.choose(task)

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
        self.choices.release(task.key, use.claims)

    def undecide(self, task: TaskInfo) -> None:
        """Drop the choices that were decided for a pod, unless it is still on its node."""
        if self.choices.undecide(task.key) and task.key not in self._uses:
            self.choices.release(task.key, task.shape.claims)

    def _attach(self, pod: str) -> None:
        use = self._uses[pod]
        found = {volume for key in use.claims if (volume := self.objects.attached(key)) is not None}
        attached = tuple(sorted(found))
        self._uses[pod] = _Use(use.node, use.claims, attached, use.is_leaving)
        self.attachments.use(use.node, attached, 1, is_leaving=use.is_leaving)

    # -- queries: a claim ----------------------------------------------------------------------

    def problem(self, key: str) -> str | None:
        """Why a pod with this claim, `namespace/name`, cannot be placed on any node; None when it can."""
        claim = self.objects.claims.get(key)
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
            if volume in self.objects.volumes or self._assumes_bound:
                return None
            return f'persistentvolume "{volume}" of persistentvolumeclaim "{name}" not found'
        if key in self.objects.waiting:
            return None
        return (
            f'pod has unbound immediate PersistentVolumeClaims: persistentvolumeclaim "{name}" '
            f"{self._why_immediate(claim)}"
        )

    def _why_immediate(self, claim: PersistentVolumeClaim) -> str:
        name = claim.storage_class
        if claim.spec.volume_name:
            return self._why_not_named(claim)
        if is_too_long(claim.spec.selector):
            return f"has a selector of more than {LONGEST_ABOUT_PODS // 1024} KiB, which is not read; shorten it"
        if not name:
            return "has no storage class; create a PersistentVolume that suits it"
        found = self.objects.classes.get(name)
        if found is None:
            return f'names storage class "{name}", which does not exist; create the class'
        if not found.provisions:
            return f'waits for a PersistentVolume of storage class "{name}" that suits it'
        return f'waits for its provisioner "{found.provisioner}"'

    def _why_not_named(self, claim: PersistentVolumeClaim) -> str:
        """Why a claim is not bound that names its volume itself; the first that names one gets it."""
        volume = self.objects.volumes.get(claim.spec.volume_name)
        if volume is None or not volume.claim or volume.is_for(claim):
            return f'waits for persistentvolume "{claim.spec.volume_name}"'
        if volume.claim == claim.metadata.key:
            return (
                f'names persistentvolume "{volume.name}", which is for a deleted persistentvolumeclaim '
                "of the same name; remove the uid from the volume's claimRef, or name another volume"
            )
        return (
            f'names persistentvolume "{volume.name}", which is for persistentvolumeclaim '
            f'"{volume.claim}"; name another volume'
        )

    def zones(self, key: str) -> list[Zone]:
        """Labels that nodes need for the volume of a bound claim; as in kube-scheduler, none for that of an ephemeral volume."""
        if key in self._pods:
            return []
        record = self.objects.volume_of(key)
        labels = (record.volume.metadata.labels if record is not None else None) or {}
        return [(name, frozenset(labels[name].split("__"))) for name in ZONES if name in labels]

    def reached_from(self, key: str) -> Ints | None:
        """Rows of the nodes that reach the volume of a bound claim; None for all. To be read only."""
        record = self.objects.volume_of(key)
        return self._reach.rows(record.key, record.affinity) if record is not None else None

    def is_reached_by(self, key: str, node: str) -> bool:
        """Whether a node reaches the volume of a bound claim; asked between sessions."""
        self._reach.settle()
        rows = self.reached_from(key)
        return rows is None or self._reach.row(node) in rows

    def is_in_use(self, key: str, *, is_later: bool) -> bool:
        """Whether a pod on a node uses a claim; with `is_later` one that stays there."""
        users = self._users.get(key, {})
        return any(not leaving for leaving in users.values()) if is_later else bool(users)

    def _is_private(self, key: str) -> bool:
        """Whether only one pod names a claim, and nothing has been decided about it or is attached for it."""
        if key in self.choices.by_claim or key in self._users or key in self._shared:
            return False
        attached = self.objects.attached(key)
        return attached is None or not self.attachments.is_used(attached)

    # -- queries: the claims of a pod ----------------------------------------------------------

    def alike(self, claims: Sequence[str]) -> tuple[Hashable, ...]:
        """A key that is equal for pods whose claims allow the same nodes."""
        return tuple([self._kind(key) for key in claims])

    def _kind(self, key: str) -> Hashable:
        claim = self.objects.claims.get(key)
        if claim is None or not self._is_private(key):
            return key
        attached = self.objects.attached(key)
        driver = attached[0] if attached is not None else ""
        if key in self.objects.waiting:
            return (self.objects.wanted(key), driver)
        record = self.objects.volume_of(key)
        if record is None or not claim.is_bound or self.problem(key) is not None:
            return key
        return (record.key, tuple(self.zones(key)), driver)

    def waiting(self, claims: Sequence[str]) -> Waiting:
        """Those of a pod's claims that wait, as they are now."""
        return tuple(
            self.objects.wanted(key) if self._is_private(key) else key
            for key in dict.fromkeys(claims)
            if key in self.objects.waiting
        )

    def exclusive(self, claims: Sequence[str]) -> list[str]:
        """Those of a pod's claims that one pod at a time may use, and that others name."""
        return [key for key in claims if key in self._shared and self.objects.is_exclusive(key)]

    def more(self, claims: Sequence[str]) -> More:
        """Volumes of a pod that a node with limits would have to attach."""
        found: dict[str, tuple[int, tuple[Attached, ...]]] = {}
        if not self.attachments.limits:
            return found
        seen: set[Attached] = set()
        for key in claims:
            attached = self.objects.attached(key)
            if attached is None or attached in seen or attached[0] not in self.attachments.limits:
                continue
            seen.add(attached)
            count, shared = found.get(attached[0], (0, ()))
            if self._is_private(key):
                found[attached[0]] = (count + 1, shared)
            else:
                found[attached[0]] = (count, (*shared, attached))
        return found

    def has_wide_claims(self) -> bool:
        """Whether placing a pod may change for other nodes what claims can be bound to there, or who may use one."""
        objects = self.objects
        if any(key in objects.waiting or objects.is_exclusive(key) for key in self._shared):
            return True
        mounted = (key for key in objects.waiting if key in self._mentions)
        classes = {objects.claims[key].storage_class for key in mounted}
        free = (
            record
            for name in sorted(classes)
            for record in objects.by_class.get(name, {}).values()
            if record.volume.spec.claim_ref is None
        )
        reached = (self._reach.rows(record.key, record.affinity) for record in free)
        return any(rows is None or len(rows) > 1 for rows in reached)


def _is_owned(meta: ObjectMeta, uid: str) -> bool:
    return any(each.controller and each.uid == uid for each in meta.owner_references or ())
