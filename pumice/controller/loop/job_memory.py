"""State of Jobs that the loop keeps between passes, in addition to that of all objects (`memory`).

*Ends.* Pods that succeeded or failed by themselves and were removed, or are being removed, before a pass recorded it in
the status.

*Requests.* When the removal of pods was first requested; later requests hide that (`lifetimes`).

*Absences.* Pods of which the API server has said that they do not exist: it is asked about a window of them in a pass.

*Counts.* Since when they differ from the stored ones; see `coalescing`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pumice.api import keys
from pumice.api.meta import Raw, controller_of
from pumice.api.pods import Pod
from pumice.controller.jobs.lifetimes import ended_by_itself, first_request
from pumice.controller.jobs.phases import RESTARTING
from pumice.controller.jobs.situation import Observed
from pumice.controller.loop.controller import ObjectKey
from pumice.controller.loop.memory import Memories, ObjectMemory

__all__ = ["JobMemories", "JobMemory"]


@dataclass(slots=True)
class JobMemory(ObjectMemory):
    """State of one Job.

    Attributes:
        observed: The input of the plan that is being carried out.
        began: Moment (monotonic) when that pass began.
        claims: Claims that exist; they are not watched.
        plugins: The plugins of the Job when `secrets` were found out.
        secrets: Names of the Secrets that they want.
        ended: Pods that had succeeded or failed by themselves and were removed, or are being removed, since the status was
            last composed and written.
        requested: When the removal of pods was first requested, by uid.
        absent: Names of pods that the API server does not have, asked for since the status was last written.
        differs_since: Moment (monotonic) when the counts began to differ from those that are stored; None if they do not.
        cost: Seconds that the last plan took.
    """

    observed: Observed | None = None
    began: float = 0.0
    claims: dict[str, Raw] = field(default_factory=dict)
    plugins: object = None
    secrets: tuple[str, ...] = ()
    ended: dict[str, Pod] = field(default_factory=dict)
    requested: dict[str, float] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    differs_since: float | None = None
    cost: float = 0.0

    def leaves(self, pod: Pod, requested: float | None) -> None:
        """Remember a pod that is being removed, or is gone, if it had ended by itself.

        Args:
            pod: The pod, in its last state.
            requested: When its removal was first requested, as `first_request` tells.
        """
        if not pod.metadata.annotation(keys.OUT_OF_SYNC) and ended_by_itself(pod, requested):
            self.ended[pod.metadata.name] = pod

    def noted(self, pods: Iterable[Pod], *phases: str) -> None:
        """Drop ended pods that the status takes into account now.

        Args:
            pods: The pods.
            phases: The Job's phase in the pass, and the one that was written. Failed pods stay while it is `Restarting`:
                no policy is asked then, and the write that begins a restart notes none for which a policy waits.
        """
        for pod in pods:
            waits = RESTARTING in phases and pod.status.phase == "Failed"
            if not waits and self.ended.get(pod.metadata.name) is pod:
                del self.ended[pod.metadata.name]


class JobMemories(Memories[ObjectKey, JobMemory]):
    """State of all Jobs."""

    def __init__(self) -> None:
        """Know nothing."""
        super().__init__(JobMemory)

    def changed(self, key: ObjectKey, old: Pod, new: Pod, *, watched: bool) -> None:
        """Record when the removal of a pod was first requested, and whether the pod had ended before.

        Args:
            key: The Job whose name it carries.
            old: Its state before the change.
            new: Its state after the change.
            watched: Whether a watch showed the change; a list may leave out states in between.
        """
        found = self._with_pod(key, new) if new.metadata.deletion_timestamp is not None else None
        if found is None:
            return
        if old.metadata.deletion_timestamp is None:
            found.requested.pop(new.metadata.uid, None)  # from before the API server was restored
            if (moment := first_request(old, new, watched=watched)) is not None:
                found.requested[new.metadata.uid] = moment
        found.leaves(new, found.requested.get(new.metadata.uid))

    def removed(self, key: ObjectKey, pod: Pod) -> None:
        """Record that a pod was removed.

        Args:
            key: The Job whose name it carries.
            pod: Its last state.
        """
        if (found := self._with_pod(key, pod)) is not None:
            found.leaves(pod, found.requested.pop(pod.metadata.uid, None))

    def _with_pod(self, key: ObjectKey, pod: Pod) -> JobMemory | None:
        """State of the Job of a pod; None if the pod has another owner."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        found = self._known.get(key) or self.of(key, owner.uid)
        return found if found.uid == owner.uid else None

    def cost(self, key: ObjectKey) -> float:
        """Seconds that the last plan took; 0 for a Job without one."""
        return self._known[key].cost if key in self._known else 0.0

    def waits(self, key: ObjectKey) -> bool:
        """True if the caches do not show a write to a Job yet."""
        return key in self._known and bool(self._known[key].writes)
