"""State that a pass over an object leaves for the next one. All of it may be lost at any time.

*Own writes.* A cache shows a write after a short time; until then a pass would see an outdated state. So the next pass
over an object waits until the caches show its writes, or until a few seconds have passed. This only saves work: names,
uids and resourceVersions prevent harm from an outdated state.

*Finds.* Existing objects whose name a creation needed. The caches do not show them because they have another owner or
are very new.

*Trouble.* What the API server refused, to report it, and failures in a row, to wait longer.

Of a Job there is more (`JobMemory`):

*Ends.* Pods that succeeded or failed by themselves and were removed, or are being removed, before a pass recorded it in
the status.

*Requests.* When the removal of pods was first requested; later requests hide that (`lifetimes`).

*Absences.* Pods of which the API server has said that they do not exist: it is asked about a window of them in a pass.

*Counts.* Since when they differ from the stored ones; see `jobs.status`.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from pumice.api import keys
from pumice.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, SECRET, Kind
from pumice.api.meta import Raw, controller_of, version_number
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache, identity_of
from pumice.controller.jobs.lifetimes import ended_by_itself, first_request
from pumice.controller.jobs.phases import RESTARTING
from pumice.controller.jobs.situation import Observed, PlanFailure
from pumice.controller.plan import RecordEvent

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound="ObjectMemory")

ObjectKey = tuple[str, str]
"""Namespace and name."""

WRITE_SECONDS = 5.0
"""How long to wait until the caches show a write."""

CacheOf = Callable[[Kind], WatchCache[Any] | None]
"""The cache of a kind; None for kinds that are not watched."""


_READ_AT_ONCE = (JOB, PERSISTENT_VOLUME_CLAIM, SECRET)
"""Kinds whose objects are read from the responses to their creation."""


class OwnWrite(NamedTuple):
    """A write of this process.

    Attributes:
        kind: Kind of the object.
        namespace: Its namespace; empty for kinds that have none.
        name: Its name.
        uid: Its uid.
        version: The resourceVersion of the result; empty for a deletion.
        made: The object in the response, of kinds that are read before a cache shows them; of thousands of pods it would be
            the largest part of what a process remembers.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: str
    made: Raw | None = None

    @classmethod
    def of(cls, kind: Kind, namespace: str, made: Raw) -> "OwnWrite":
        """The write of an object that was created or changed."""
        meta = made["metadata"]
        kept = made if kind in _READ_AT_ONCE else None
        return cls(kind, namespace, meta["name"], meta["uid"], meta["resourceVersion"], kept)


@dataclass(slots=True)
class PlanOutcome:
    """The outcome of a plan.

    Attributes:
        written: Successful writes, in the order of the responses.
        finds: Existing objects with a name that was to be created.
        absent: Names of objects that do not exist, as was required, or that belong to another owner.
        after: Seconds until the next pass, even if nothing changes.
        outdated: Whether the plan was made from an outdated state.
        confirmed: Whether the server confirmed that the Job is in the state that was observed.
        wrote_status: Whether the status of the Job was written.
        trouble: The refusal of the server.
        over_quota: Tasks whose pods a quota refuses.
        refused: Why a Job cannot be created; the others of the stage are created all the same.
        broken: Whether the server could not be reached.
        busy: Seconds for which an overloaded server wants no requests; None if it is not overloaded.
        interrupted: Whether the rest is left to the next pass, so that others have their turn.
    """

    written: list[OwnWrite] = field(default_factory=list)
    finds: list[tuple[Kind, Raw]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    after: float | None = None
    outdated: bool = False
    confirmed: bool = False
    wrote_status: bool = False
    trouble: PlanFailure | None = None
    over_quota: dict[str, PlanFailure] = field(default_factory=dict)
    refused: PlanFailure | None = None
    broken: bool = False
    busy: float | None = None
    interrupted: bool = False

    @property
    def progress(self) -> int:
        """Number of steps whose result the next plan starts from."""
        return len(self.written) + len(self.absent)

    @property
    def complete(self) -> bool:
        """True if every step was carried out."""
        return self.goes_on and not self.over_quota and self.refused is None

    @property
    def goes_on(self) -> bool:
        """True if further steps may be carried out."""
        return not (
            self.outdated
            or self.trouble
            or self.broken
            or self.busy is not None
            or self.interrupted
        )


@dataclass(slots=True)
class OwnWrites:
    """Writes for one object, in their order."""

    _writes: deque[tuple[OwnWrite, float]] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._writes)

    def add(self, written: OwnWrite, now: float) -> None:
        """Add a write to wait for."""
        self._writes.append((written, now + WRITE_SECONDS))

    def unseen(self, cache_of: CacheOf, now: float) -> float | None:
        """Seconds for which a write may still be waited for; None if the caches show all of them."""
        writes = self._writes
        while writes and (writes[0][1] <= now or _shows(writes[0][0], cache_of)):
            writes.popleft()  # a write that is visible is not checked again
        return writes[-1][1] - now if writes else None


@dataclass(slots=True)
class ObjectMemory:
    """State of one object.

    Attributes:
        uid: Which incarnation of the object.
        writes: Own writes that the caches may not show yet.
        finds: Objects with a name that was needed, by kind and name, and when (monotonic) they were found.
        recorded: Events of the last plan that was carried out; these are not recorded again by the next.
        trouble: What the API server refused, until a plan is carried out completely.
        failures: Passes in a row whose plan was not carried out completely.
        creates_pods: Whether the last pass created pods and nothing was refused.
    """

    uid: str = ""
    writes: OwnWrites = field(default_factory=OwnWrites)
    finds: dict[tuple[Kind, str], tuple[Raw, float]] = field(default_factory=dict)
    recorded: frozenset[RecordEvent] = frozenset()
    trouble: PlanFailure | None = None
    failures: int = 0
    creates_pods: bool = False

    def found(self, now: float, seconds: float) -> list[Raw]:
        """Finds that are still valid.

        Args:
            now: This moment (monotonic).
            seconds: How long a find is valid.
        """
        self.finds = {key: (obj, at) for key, (obj, at) in self.finds.items() if now - at < seconds}
        return [obj for obj, _ in self.finds.values()]

    def learn(self, outcome: PlanOutcome, now: float) -> None:
        """Take in what a pass wrote and found, and what was refused."""
        for kind, obj in outcome.finds:
            self.finds[kind, obj["metadata"]["name"]] = obj, now
        for each in outcome.written:
            self.finds.pop((each.kind, each.name), None)
            self.writes.add(each, now)
        self.trouble = outcome.trouble or self.trouble


class Memories(Generic[K, M]):
    """State of all objects of a controller."""

    def __init__(self, empty: Callable[[], M]) -> None:
        """Know nothing; `empty` makes the state of an object."""
        self._empty = empty
        self._known: dict[K, M] = {}

    def get(self, key: K) -> M | None:
        """State of an object; None if there is none."""
        return self._known.get(key)

    def of(self, key: K, uid: str) -> M:
        """State of an object; empty if it is about an earlier object of the same name."""
        found = self._known.get(key)
        if found is None or found.uid not in ("", uid):
            found = self._known[key] = self._empty()
        found.uid = uid
        return found

    def refused(self) -> list[K]:
        """Objects for which the API server refused something at the last pass."""
        return [key for key, found in self._known.items() if found.trouble is not None]

    def forget(self, key: K) -> None:
        """Drop the state of a deleted object."""
        self._known.pop(key, None)


def _shows(written: OwnWrite, cache_of: CacheOf) -> bool:
    cache = cache_of(written.kind)
    version = written.version
    if (
        cache is None
        or version_number(cache.reflector.resource_version) >= version_number(version) > 0
    ):
        return True
    stored = cache.get(written.name, written.namespace)
    if stored is None:
        return not version
    uid, stored_version, leaving = identity_of(stored)
    if uid != written.uid:
        return not version or version_number(stored_version) > version_number(version)
    return version_number(stored_version) >= version_number(version) if version else leaving


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
        """Record that a pod was removed."""
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
