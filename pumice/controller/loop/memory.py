"""State of Jobs that the loop keeps between passes. All of it may be lost at any time.

*Own writes.* See `own_writes`.

*Finds.* Existing objects whose name a creation needed. The caches do not show them because they have another owner or
are very new.

*Ends.* Pods that succeeded or failed by themselves and were removed before a pass recorded it in the status.

*Requests.* When the removal of pods was first requested; later requests hide that (`lifetimes`).

*Absences.* Pods of which the API server has said that they do not exist: it is asked about a window of them in a pass.

*Counts.* When the status was last written, and the next one if it waits; see `coalescing`.

*Trouble.* Refusals of the API server, to report them, and their number in a row, to wait longer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pumice.api import keys
from pumice.api.kinds import Kind
from pumice.api.meta import Raw, controller_of
from pumice.api.pods import Pod
from pumice.controller.jobs.job_pods import has_ended
from pumice.controller.jobs.lifetimes import first_request
from pumice.controller.jobs.observed import PlanFailure
from pumice.controller.jobs.phases import RESTARTING
from pumice.controller.jobs.sync import CONFLICT_SECONDS
from pumice.controller.loop.caches import JobKey
from pumice.controller.loop.own_writes import OwnWrites
from pumice.controller.plan import PatchStatus

__all__ = ["JobMemory", "Memory"]

FIND_SECONDS = CONFLICT_SECONDS - 5.0
"""How long a find is valid; less than the time after which a taken name is tried again."""


@dataclass(slots=True)
class JobMemory:
    """State of one Job.

    Attributes:
        uid: Uid of the Job.
        writes: Own writes that the caches may not show yet.
        finds: Objects with a name that was needed, and when (monotonic) they were found.
        claims: Claims that exist; they are not watched.
        plugins: The plugins of the Job when `secrets` were found out.
        secrets: Names of the Secrets that they want.
        ended: Pods that had succeeded or failed by themselves and were removed since the status was last composed and
            written.
        requested: When the removal of pods was first requested, by uid.
        absent: Names of pods that the API server does not have, asked for since the status was last written.
        trouble: What the API server refused.
        refusals: How often in a row the API server refused something.
        outages: How often in a row the API server did not answer, or had a newer state.
        creates: Whether the last pass created pods and nothing was refused.
        held: Status that is written later, because only counts have changed.
        held_over: Status as stored when that was made.
        overdue: Whether that status must be written before anything else: a pod that it counts was removed.
        cost: Seconds that the last plan took.
        held_at: Moment (monotonic) when the counts began to differ from those that are stored.
    """

    uid: str = ""
    writes: OwnWrites = field(default_factory=OwnWrites)
    finds: dict[tuple[Kind, str], tuple[Raw, float]] = field(default_factory=dict)
    claims: dict[str, Raw] = field(default_factory=dict)
    plugins: object = None
    secrets: tuple[str, ...] = ()
    ended: dict[str, Pod] = field(default_factory=dict)
    requested: dict[str, float] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    trouble: PlanFailure | None = None
    refusals: int = 0
    outages: int = 0
    creates: bool = False
    held: PatchStatus | None = None
    held_over: Raw = field(default_factory=dict)
    overdue: bool = False
    cost: float = 0.0
    held_at: float = 0.0

    def hold(self, status: PatchStatus, stored: Raw) -> None:
        """Delay the write of a status."""
        self.held, self.held_over = status, stored

    def let_go(self) -> None:
        """Drop the delayed status."""
        self.held, self.held_over, self.overdue = None, {}, False

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

    def due(self, stored: Raw) -> PatchStatus | None:
        """The delayed status if it must be written now; None if the stored status is newer."""
        if self.held is not None and self.held_over != stored:
            self.let_go()
        return self.held if self.overdue else None

    def found(self, now: float) -> Iterator[tuple[tuple[Kind, str], Raw]]:
        """Finds that are still valid."""
        self.finds = {
            key: (obj, at) for key, (obj, at) in self.finds.items() if now - at < FIND_SECONDS
        }
        return ((key, obj) for key, (obj, _) in self.finds.items())


class Memory:
    """State of all Jobs."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, JobMemory] = {}

    def of(self, key: JobKey, uid: str) -> JobMemory:
        """State of a Job; empty if it is about an earlier Job of the same name."""
        found = self._jobs.get(key)
        if found is None or found.uid not in ("", uid):
            found = self._jobs[key] = JobMemory()
        found.uid = uid
        return found

    def changed(self, key: JobKey, old: Pod, new: Pod, *, watched: bool) -> None:
        """Record when the removal of a pod was first requested.

        Args:
            key: The Job whose name it carries.
            old: Its state before the change.
            new: Its state after the change.
            watched: Whether a watch showed the change; a list may leave out states in between.
        """
        if old.metadata.deletion_timestamp is not None or new.metadata.deletion_timestamp is None:
            return
        found = self._with_pod(key, new)
        if found is None:
            return
        found.requested.pop(new.metadata.uid, None)  # from before the API server was restored
        if (moment := first_request(old, new, watched=watched)) is not None:
            found.requested[new.metadata.uid] = moment

    def removed(self, key: JobKey, pod: Pod) -> None:
        """Record that a pod was removed.

        Args:
            key: The Job whose name it carries.
            pod: Its last state.
        """
        found = self._jobs.get(key)
        if found is not None:
            found.overdue |= found.held is not None
        found = self._with_pod(key, pod)
        if found is None:
            return
        requested = found.requested.pop(pod.metadata.uid, None)
        if not pod.metadata.annotation(keys.OUT_OF_SYNC) and has_ended(pod, requested):
            found.ended[pod.metadata.name] = pod

    def _with_pod(self, key: JobKey, pod: Pod) -> JobMemory | None:
        """State of the Job of a pod; None if the pod has another owner."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        found = self._jobs.get(key) or self.of(key, owner.uid)
        return found if found.uid == owner.uid else None

    def cost(self, key: JobKey) -> float:
        """Seconds that the last plan took; 0 for a Job without one."""
        return self._jobs[key].cost if key in self._jobs else 0.0

    def waits(self, key: JobKey) -> bool:
        """True if the caches do not show a write to a Job yet."""
        return key in self._jobs and bool(self._jobs[key].writes)

    def refused(self) -> list[JobKey]:
        """Jobs for which the API server refused something at the last pass."""
        return [key for key, found in self._jobs.items() if found.trouble is not None]

    def forget(self, key: JobKey) -> JobMemory | None:
        """Drop the state of a deleted Job, and return it."""
        return self._jobs.pop(key, None)
