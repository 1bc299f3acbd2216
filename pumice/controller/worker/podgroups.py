"""The controller of PodGroups of pods that other controllers make.

It watches pods of Pumice's schedulers that are not pods of Volcano Jobs, their PodGroups, and owners of Kubernetes' own
kinds. Owners of other kinds are looked up.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pumice.api import keys, kinds
from pumice.api.kinds import POD_GROUP
from pumice.api.meta import Raw, controller_of
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.errors import ApiError, TooManyRequests
from pumice.cluster.events import Reference
from pumice.cluster.turns import first_part
from pumice.controller.objects import refers_to
from pumice.controller.other_owners import (
    OWNER_KINDS,
    ObservedGroup,
    OwnedGang,
    PodOwner,
    gang_of,
    plan_group,
)
from pumice.controller.other_owners.owners import GROUP_PREFIX
from pumice.controller.plan import Plan, RecordEvent, RequeueAfter
from pumice.controller.worker.controller import Controller, PlannedObject, Source
from pumice.controller.worker.owner_lookup import FoundOwner, OwnerLookup
from pumice.controller.worker.process import ControllerProcess, Watches

GangKey = tuple[str, str]
"""Namespace, and the uid of the owner."""

_BY_GANG = "gang"
_BY_GROUP = "group"

_FEW_PODS = 100
UNREADABLE_SECONDS = 5.0
"""How long until an owner that could not be read is read again."""

_PAUSE_SECONDS = 0.0001
"""Pause before a pass, in seconds for each pod of the gang: 20 times what the pass takes."""


class PodGroupCaches:
    """Watches for PodGroups of other owners.

    Attributes:
        pods: Pods that Pumice schedules, without those of Volcano Jobs.
        pod_groups: PodGroups, raw.
        queues: Queues, because a PodGroup of a closed one is refused.
        owners: Owners by kind.
    """

    def __init__(self, watches: Watches, scheduler_names: Sequence[str]) -> None:
        """Create the caches."""
        self.queues = watches.of(kinds.QUEUE, Queue)
        self.pod_groups: WatchCache[Raw] = watches.of(POD_GROUP, dict)
        self.owners = {kind: watches.of(kind, PodOwner) for kind in OWNER_KINDS}
        self.pods = _pods(watches, frozenset(scheduler_names))
        self.pods.index(_BY_GANG, lambda pod: (_key(pod),))
        self.pods.index(_BY_GROUP, lambda pod: ((pod.metadata.namespace, pod.group),))

    @property
    def all(self) -> tuple[WatchCache[Any], ...]:
        """Every cache."""
        return (self.queues, self.pod_groups, *self.owners.values(), self.pods)

    def gang(self, key: GangKey) -> OwnedGang | None:
        """A gang that has pods or a PodGroup."""
        pods = self.pods.indexed(_BY_GANG, key)
        if pods:
            return gang_of(pods[0].metadata)
        group = self.group(key)
        for owner in (group or {}).get("metadata", {}).get("ownerReferences") or ():
            kind = next((each for each in OWNER_KINDS if refers_to(owner, each)), None)
            if kind is not None and owner.get("uid") == key[1]:
                return OwnedGang(kind, owner["name"], *key)
        return None

    def count(self, key: GangKey) -> int:
        """Number of pods of a gang."""
        return len(self.pods.indexed(_BY_GANG, key))

    def group(self, key: GangKey) -> Raw | None:
        """The PodGroup of a gang."""
        namespace, uid = key
        return self.pod_groups.get(f"{GROUP_PREFIX}{uid}", namespace)

    def picture(self, gang: OwnedGang) -> ObservedGroup:
        """The observed state of a gang."""
        key = gang.namespace, gang.uid
        owners = self.owners.get(gang.kind)
        owner = owners.get(gang.name, gang.namespace) if owners is not None else None
        if owner is not None and owner.metadata.uid != gang.uid:
            owner = None
        return ObservedGroup(gang, self.pods.indexed(_BY_GANG, key), owner, self.group(key))


class PodGroupController(Controller[GangKey]):
    """The controller for PodGroups of other owners' pods, while this process is the leader."""

    def __init__(
        self,
        worker: ControllerProcess,
        caches: PodGroupCaches,
    ) -> None:
        """Create a controller; it must `run`."""
        settings = worker.settings
        super().__init__(worker, "pods of other owners", caches.all, first_part)
        self._caches = caches
        self._inherit = settings.inherit_owner_annotations
        self._owners = OwnerLookup(worker.client, worker.clock)

    def sources(self) -> Iterable[Source]:
        """Owners, PodGroups, pods and queues."""
        caches = self._caches
        for owners in caches.owners.values():
            yield owners, self._owner_changed
        yield caches.pod_groups, self._group_changed
        yield caches.pods, self._pod_changed
        yield caches.queues, self._queue_changed

    def keys(self) -> Iterable[GangKey]:
        """All gangs of which there are pods, and all that have a PodGroup."""
        found = dict.fromkeys(self._caches.pods.index_keys(_BY_GANG))
        for namespace, name in self._caches.pod_groups.identities():
            if name.startswith(GROUP_PREFIX):
                found[namespace, name.removeprefix(GROUP_PREFIX)] = None
        return found

    def about(self, key: GangKey) -> Reference:
        """The PodGroup of a gang, whether it exists or not."""
        return self._caches.pod_groups.reference(f"{GROUP_PREFIX}{key[1]}", key[0])

    def look(self, key: GangKey) -> PlannedObject | None:
        """The owner of a gang."""
        gang = self._caches.gang(key)
        if gang is None:
            return None
        return PlannedObject.named(gang.kind, gang.name, gang.namespace, gang.uid)

    async def plan(self, key: GangKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """The plan for the PodGroup of a gang."""
        del subject
        gang = self._caches.gang(key)
        if gang is None:
            return Plan()
        if (count := self._caches.count(key)) > _FEW_PODS:
            # Each pod of a burst is an event, and a pass reads all pods: collect some events first.
            await self.clock.sleep(count * _PAUSE_SECONDS)
        exists = self._has_group(key[0])
        picture = self._caches.picture(gang)
        found = FoundOwner(picture.owner)
        if self._inherit and gang.is_looked_up and picture.members(exists):
            try:
                found = await self._owners.read(gang)
            except ApiError as error:
                return _unreadable(gang, error)
            picture = self._caches.picture(gang)
        group = picture.group or (finds[0] if finds else None)
        return plan_group(
            ObservedGroup(gang, picture.pods, found.owner, group, found.unread),
            exists,
            inherit=self._inherit,
            was_refused=self.was_refused(key),
        )

    def forget(self, key: GangKey) -> None:
        """Drop the state of a gang that is gone."""
        self._owners.forget(*key)

    def _has_group(self, namespace: str) -> Callable[[str], bool]:
        return lambda name: self._caches.pod_groups.get(name, namespace) is not None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and _read(old) == _read(new):
            return
        for each in (old, new):
            if each is not None:
                self.queue.add(_key(each))

    def _group_changed(self, old: Raw | None, new: Raw | None) -> None:
        meta = (new or old or {})["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if not name.startswith(GROUP_PREFIX) or (old and new and _ours(old) == _ours(new)):
            return
        self.queue.add((namespace, name.removeprefix(GROUP_PREFIX)))
        if new is None:
            for pod in self._caches.pods.indexed(_BY_GROUP, (namespace, name)):
                self.queue.add(_key(pod))

    def _owner_changed(self, old: PodOwner | None, new: PodOwner | None) -> None:
        if new is None or new == old:
            return
        key = new.metadata.namespace, new.metadata.uid
        if self._caches.group(key) is not None or self._caches.pods.indexed(_BY_GANG, key):
            self.queue.add(key)

    def _queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        if new is not None and (old is None or old.status.state != new.status.state):
            self.add_refused()


def _pods(watches: Watches, names: frozenset[str]) -> WatchCache[Pod]:
    """The pods of the given schedulers. A field selector can name one; with several names, other pods are dropped on arrival."""
    others = f"!{keys.JOB_NAME}"
    if len(names) == 1:
        selector = f"spec.schedulerName={next(iter(names))}"
        return watches.of(
            kinds.POD,
            Pod,
            label_selector=others,
            field_selector=selector,
            trim=Pod.drop_unread,
        )
    return watches.of(
        kinds.POD,
        Pod,
        label_selector=others,
        keep=lambda pod: pod.spec.scheduler_name in names,
        trim=Pod.drop_unread,
    )


def _unreadable(gang: OwnedGang, error: ApiError) -> Plan:
    """Wait for an owner that cannot be read: without its annotations, pods of a gang could start one by one."""
    if isinstance(error, TooManyRequests):
        return Plan.of([RequeueAfter(error.patience)])
    message = (
        f"its pods wait for their PodGroup until {gang.kind.kind} {gang.name} can be read: {error}"
    )
    return Plan.of(
        [RecordEvent("Warning", "OwnerUnreadable", message), RequeueAfter(UNREADABLE_SECONDS)]
    )


def _key(pod: Pod) -> GangKey:
    owner = controller_of(pod.metadata)
    return pod.metadata.namespace, pod.metadata.uid if owner is None else owner.uid


def _read(pod: Pod) -> tuple[object, ...]:
    """The fields on which a plan depends."""
    meta = pod.metadata
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        meta.deletion_timestamp is None,
        pod.status.phase in ("Succeeded", "Failed"),
    )


def _ours(group: Raw) -> tuple[object, ...]:
    """The fields of a PodGroup on which a plan depends; its status belongs to the scheduler."""
    meta = group["metadata"]
    parts = (meta.get(key) for key in ("uid", "labels", "annotations", "ownerReferences"))
    return (*parts, "deletionTimestamp" in meta, group.get("spec"))
