"""Writes that the controller wants: small steps, in stages.

Stages are carried out one after the other, the steps of a stage side by side. A step that fails ends its stage and the
plan; the next pass makes a new plan from what is then observed. So each stage must be safe without the later ones.
There are two exceptions. If a quota refuses a pod, other pods are still tried. If a Job is refused, the other Jobs of
its stage are still created, and then the plan ends.

A merge patch brings an object to the wanted state (`difference`). An API server adds defaults to what it stores, and other
controllers add fields of their own. So the stored object must *contain* the wanted one, and need not equal it. Only from maps that
belong to Pumice as a whole (a ConfigMap's `data`) are unwanted keys removed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import Raw
from pumice.plugins import KeySecret


class CreateObject(msgspec.Struct, frozen=True):
    """Create an object. An object of that name may already exist.

    Attributes:
        kind: Its kind.
        manifest: The object, without its key pair.
        keys: The key pair to create for it; None for none.
    """

    kind: Kind
    manifest: Raw
    keys: KeySecret | None = None

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.manifest["metadata"]["name"])


class UpdateObject(msgspec.Struct, frozen=True):
    """Change fields of an object by a merge patch.

    Attributes:
        kind: Its kind.
        namespace: Its namespace; empty for kinds that have none.
        name: Its name.
        patch: The patch; `metadata.uid`, and where it matters `metadata.resourceVersion`, guard it.
    """

    kind: Kind
    namespace: str
    name: str
    patch: Raw


class DeleteObject(msgspec.Struct, frozen=True):
    """Delete an object with this uid; it is not an error if the object does not exist.

    Attributes:
        kind: Its kind.
        namespace: Its namespace; empty for kinds that have none.
        name: Its name.
        uid: Its uid.
        propagation: Deletion propagation of its dependents; the default of the kind if None.
        resource_version: Delete only this version; None for any version.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    propagation: str | None = None
    resource_version: str | None = None


class RequireObject(msgspec.Struct, frozen=True):
    """Continue only if an object exists that the Job needs and others create.

    Attributes:
        kind: Its kind.
        namespace: Its namespace; empty for kinds that have none.
        name: Its name.
        reason: One word for the user if it does not exist.
        message: One sentence.
    """

    kind: Kind
    namespace: str
    name: str
    reason: str
    message: str


class RequireAbsent(msgspec.Struct, frozen=True):
    """Continue only if an owned object that the caches do not show does not exist, or has another owner.

    A cache may be older than the owner.

    Attributes:
        kind: Its kind.
        namespace: Its namespace; empty for kinds that have none.
        name: Its name.
    """

    kind: Kind
    namespace: str
    name: str


class PatchStatus(msgspec.Struct, frozen=True):
    """Replace the status of the object that the plan is for, unless the object has changed.

    The request is a merge patch of the differences, with the resourceVersion.

    Attributes:
        status: All of the new status.
    """

    status: Raw


class RecordEvent(msgspec.Struct, frozen=True):
    """Record an event about the object that the plan is for.

    Attributes:
        type: `Normal` or `Warning`.
        reason: One word.
        message: One sentence.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class RequeueAfter(msgspec.Struct, frozen=True):
    """Run another pass for the object, even if nothing changes.

    Attributes:
        seconds: Seconds until then.
    """

    seconds: float


Step = (
    CreateObject
    | UpdateObject
    | DeleteObject
    | RequireObject
    | RequireAbsent
    | PatchStatus
    | RecordEvent
    | RequeueAfter
)


class Stage(Protocol):
    """Steps that may be carried out concurrently; a stage may build each step when it is needed."""

    def __len__(self) -> int:
        """Number of steps."""
        ...

    def __iter__(self) -> Iterator[Step]:
        """The steps, in order.

        Raises:
            UnbuildableError: The next step cannot be built.
        """
        ...


class UnbuildableError(Exception):
    """A step that cannot be built; the message says why."""


class Plan(msgspec.Struct, frozen=True):
    """Steps in stages; an empty plan means that everything is as it should be.

    Attributes:
        stages: The stages, in order.
    """

    stages: tuple[Stage, ...] = ()

    @classmethod
    def of(cls, *stages: Sequence[Step] | Stage) -> "Plan":
        """A plan of those stages that have steps."""
        return cls(
            tuple(tuple(each) if isinstance(each, list) else each for each in stages if len(each))
        )

    @property
    def steps(self) -> Iterator[Step]:
        """All steps, in order."""
        return (step for stage in self.stages for step in stage)

    @property
    def built(self) -> Iterator[Step]:
        """The steps of stages that need not be built, so all but the creations of a Job's pods."""
        return (step for stage in self.stages if isinstance(stage, tuple) for step in stage)

    @property
    def status(self) -> Raw | None:
        """The status that it writes; None if it writes none."""
        return next((step.status for step in self.built if isinstance(step, PatchStatus)), None)

    def without(self, unwanted: Callable[[Step], bool]) -> "Plan":
        """The plan without some of the steps that need not be built."""
        return Plan.of(
            *(
                [step for step in stage if not unwanted(step)]
                if isinstance(stage, tuple)
                else stage
                for stage in self.stages
            )
        )

    @property
    def wake(self) -> float | None:
        """Seconds until the earliest `RequeueAfter`, also if a step before it is refused."""
        later = (step.seconds for step in self.built if isinstance(step, RequeueAfter))
        return min(filter(None, later), default=None)  # 0 continues with this plan

    def __bool__(self) -> bool:
        return any(not isinstance(step, RequeueAfter) for step in self.steps)


def contains(stored: Any, wanted: Any) -> bool:
    """True if a stored value contains all that is wanted; lists are compared item by item."""
    if stored is None:
        return not wanted  # servers do not store empty values
    if isinstance(wanted, Mapping):
        return isinstance(stored, Mapping) and all(
            contains(stored.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(stored, list)
            and len(stored) == len(wanted)
            and all(contains(left, right) for left, right in zip(stored, wanted, strict=True))
        )
    return bool(stored == wanted)


def difference(stored: Raw, wanted: Raw, whole: Iterable[str] = ()) -> Raw:
    """The JSON merge patch from what is stored to what is wanted.

    Args:
        stored: The object, or a part of it.
        wanted: Values that it must contain.
        whole: Fields at this level whose maps must equal, not only contain, what is wanted.

    Returns:
        The patch; empty if nothing differs.
    """
    patch: Raw = {}
    whole = frozenset(whole)
    for key, value in wanted.items():
        present = stored.get(key)
        if present == value and present is not None:
            continue  # as in most passes; comparing whole values costs little
        if isinstance(value, dict):
            inner = difference(present if isinstance(present, dict) else {}, value)
            if key in whole and isinstance(present, dict):
                inner |= dict.fromkeys(name for name in present if name not in value)
            if inner:
                patch[key] = inner
        elif not contains(present, value):
            patch[key] = value
    return patch


def changes(stored: Raw, wanted: Raw) -> Raw:
    """The JSON merge patch that makes what is stored equal to what is wanted.

    Args:
        stored: The object, or a part of it.
        wanted: The new value; null is the same as a missing field.
    """
    patch: Raw = dict.fromkeys(key for key in stored if key not in wanted)
    for key, value in wanted.items():
        present = stored.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            if inner := changes(present, value):
                patch[key] = inner
        elif key not in stored or present != value:
            patch[key] = value
    return patch
