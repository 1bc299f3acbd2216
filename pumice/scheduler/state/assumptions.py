"""Decisions of cycles that the API server does not show yet: for which object, and until when they are assumed.

A cycle does not wait for the API server. Its decisions are assumed immediately. This file defines for how long:

| assumed | identified by | counts until |
|---|---|---|
| a pod is bound (`Binding`) | uid | the pod is shown with a node, terminating or finished |
| a pod is evicted (`Releasing`) | uid | the pod is shown terminating or finished |
| a pod is nominated for a node, or for none | uid | the pod is shown so, or with a node, terminating or finished |
| a PodGroup has a status | uid and resourceVersion | a later version of the PodGroup is shown |

The removal of the object and a refusal of the write by the API server end each of them, too. An object with another uid
is another object.

A nomination that is decided later takes the place of the one before.

The last row works because a status is written with the resourceVersion of the object that it was computed from: a later
version is either the result of that write, or the write will be refused with a conflict. In both cases the object as it is
shown is what the next cycle must begin with.

resourceVersions are compared as integers, which Kubernetes allows for objects of one kind. Objects without one (manifests
from files) always count as the latest.
"""

import msgspec

from pumice.api.meta import ObjectMeta, version_number
from pumice.api.podgroups import PodGroupStatus
from pumice.scheduler.model.tasks import PLACED, SchedulingStatus, TaskInfo


class _AssumedPod(msgspec.Struct, frozen=True):
    """A decision about one pod: its status, its node, and the queue under which it is bound."""

    uid: str
    status: SchedulingStatus
    node: str
    charge: str

    def counts(self, shown: TaskInfo) -> bool:
        """Whether the API server does not show the decision's result yet."""
        if shown.uid != self.uid:
            return False
        if self.status is SchedulingStatus.BINDING:
            return shown.shown is SchedulingStatus.PENDING
        return shown.shown in PLACED


class AssumedStatus(msgspec.Struct):
    """A status that a PodGroup has, or is about to have.

    Attributes:
        version: resourceVersion that the write must carry; once it is written, the version that the write made.
        is_written: Whether the API server has accepted the write.
    """

    uid: str
    version: str
    status: PodGroupStatus
    is_written: bool = False

    def counts(self, shown: ObjectMeta) -> bool:
        """Whether the PodGroup is shown as it was before the write."""
        if shown.uid != self.uid or not shown.resource_version:
            return False
        number, own = version_number(shown.resource_version), version_number(self.version)
        return number < own if self.is_written else number <= own


class Assumptions:
    """All decisions whose results the API server does not show yet."""

    def __init__(self) -> None:
        self._pods: dict[str, _AssumedPod] = {}
        self._nominations: dict[str, tuple[str, str]] = {}
        self._statuses: dict[str, AssumedStatus] = {}

    # -- pods --------------------------------------------------------------------------------

    def assume_pod(self, task: TaskInfo) -> None:
        """Count a pod as it was decided: `Binding` or `Releasing`, on its node."""
        self._pods[task.key] = _AssumedPod(task.uid, task.status, task.node, task.charge)

    @property
    def evicted(self) -> list[str]:
        """Pods that are assumed to leave, by key."""
        return [key for key, pod in self._pods.items() if pod.status is SchedulingStatus.RELEASING]

    def correct_pod(self, task: TaskInfo, node: str) -> str:
        """Set the assumed status of a pod that was just read; returns the assumed node."""
        assumed = self._pods.get(task.key)
        if assumed is None:
            return node
        if not assumed.counts(task):
            del self._pods[task.key]
            return node
        task.status = assumed.status
        if assumed.status is SchedulingStatus.BINDING:
            task.charge = assumed.charge
        return assumed.node

    def assume_nomination(self, task: TaskInfo, node: str) -> None:
        """Count a waiting pod as nominated for a node; for none if it is empty."""
        self._nominations[task.key] = task.uid, node

    def correct_nomination(self, task: TaskInfo) -> None:
        """Set the assumed nomination of a pod that was just read."""
        assumed = self._nominations.get(task.key)
        if assumed is None:
            return
        uid, node = assumed
        if uid != task.uid or node == task.nominated or task.status is not SchedulingStatus.PENDING:
            del self._nominations[task.key]
        else:
            task.nominated = node

    def end_nomination(self, key: str) -> None:
        """End the assumed nomination of a pod."""
        self._nominations.pop(key, None)

    def end_pod(self, key: str, uid: str | None = None) -> bool:
        """End the assumptions about a pod; False if there was none for that uid."""
        assumed = self._pods.get(key)
        if assumed is None or (uid is not None and assumed.uid != uid):
            return False
        del self._pods[key]
        return True

    @property
    def pods(self) -> list[str]:
        """Pods about which anything is assumed, by key."""
        return [*(self._pods | self._nominations)]

    # -- PodGroups ---------------------------------------------------------------------------

    def assume_status(self, key: str, meta: ObjectMeta, status: PodGroupStatus) -> None:
        """Count a status as written that was computed from a PodGroup with this metadata."""
        before = self._statuses.get(key)
        version = meta.resource_version
        if before is not None and before.counts(meta):
            version = before.version  # of the write before, which the watch does not show yet
        self._statuses[key] = AssumedStatus(meta.uid, version, status)

    def correct_status(self, key: str, meta: ObjectMeta, status: PodGroupStatus) -> PodGroupStatus:
        """The status that a PodGroup that was just read is assumed to have."""
        assumed = self._statuses.get(key)
        if assumed is None:
            return status
        if not assumed.counts(meta):
            del self._statuses[key]
            return status
        return assumed.status

    @property
    def statuses(self) -> list[str]:
        """PodGroups of which a status is assumed, by key."""
        return [*self._statuses]

    def end_status(self, key: str) -> None:
        """End the assumption about a PodGroup."""
        self._statuses.pop(key, None)

    def status_to_write(self, key: str) -> AssumedStatus | None:
        """The assumed status of a PodGroup that is not written yet, if there is one."""
        assumed = self._statuses.get(key)
        return None if assumed is None or assumed.is_written else assumed

    def status_written(self, key: str, written: AssumedStatus, version: str) -> None:
        """Note that the API server accepted a write, and the resourceVersion that it made."""
        written.is_written = True
        written.version = version
        current = self._statuses.get(key)
        if (
            current is not None
            and current.uid == written.uid
            and version_number(current.version) < version_number(version)
        ):
            current.version = version  # computed before the write was finished


def is_older(version: str, known: str) -> bool:
    """Whether a resourceVersion comes before another one of the same object; unknown ones do not."""
    return bool(version) and version_number(version) < version_number(known)
