"""A Job under the controller of a simulation, with what it owns."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod, PodSpec
from pumice.controller.jobs.phases import ABORTED, FINISHED, phase_of
from pumice.controller.podgroups import ADMITTED, BROKEN, condition_of
from pumice.controller.render import NO_UID


class SeenByPass(NamedTuple):
    """What a pass sees of a Job.

    Attributes:
        pods: Its pods.
        group: Its PodGroup.
        status: The newest status of that; None if it is not known.
        moment: When, UNIX seconds.
    """

    pods: tuple[Pod, ...]
    group: Raw | None
    status: PodGroupStatus | None
    moment: float


class PlainKind:
    """Plain Jobs (`plain_jobs`) that differ in metadata at most.

    Attributes:
        job: One of them, complete.
        group: The PodGroup of one of them, once one was made.
        pods: The first pod of each task that has no partitions, of the last Job, by task.
    """

    __slots__ = ("group", "job", "pods")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.group: Raw | None = None
        self.pods: dict[str, Pod] = {}


_HINDRANCES = ("NameConflict", "PluginError")
"""Reasons in statuses of Jobs with which the controller says why it makes no pods."""


class ControlledJob:
    """A Job and what it owns.

    Attributes:
        key: `namespace/name`.
        raw: The Job, with a uid.
        pods: Its pods, by key.
        group: Its PodGroup.
        group_key: `namespace/name` that this has or will have.
        objects: The objects of its plugins.
        due: When it is to be worked on although nothing has changed, UNIX seconds; None if it is not.
        is_gone: Whether its time to live is over and it was removed.
        specs: Specs of its pods, as they are built and as they are read; equal ones are read once.
        group_status: Newest status of its PodGroup; None if it is not known.
        read_status: The one that its last pass has read, or would have. `group` has it if no pass was put off.
        plain: Its kind while it is plain; else None.
        seen: What passes would have seen that were put off, in order.
    """

    __slots__ = (
        "due",
        "group",
        "group_key",
        "group_status",
        "is_gone",
        "key",
        "objects",
        "plain",
        "pods",
        "raw",
        "read_status",
        "seen",
        "specs",
    )

    def __init__(self, raw: Raw, groups: Mapping[str, Raw], plain: PlainKind | None = None) -> None:
        """Take in a Job, and its PodGroup if it is among those that exist."""
        metadata = {"namespace": "default", "uid": NO_UID} | raw["metadata"]
        name = pod_group_name(metadata["name"], metadata["uid"])
        self.group_key = f"{metadata['namespace']}/{name}"
        self.raw = raw | {"metadata": metadata}
        self.key = f"{metadata['namespace']}/{metadata['name']}"
        self.pods: dict[str, Pod] = {}
        self.group = groups.get(self.group_key)
        self.objects: list[Raw] = []
        self.due: float | None = None
        self.is_gone = False
        self.specs: list[tuple[Raw, PodSpec]] = []
        self.group_status: PodGroupStatus | None = None
        self.read_status: PodGroupStatus | None = None
        self.plain = plain
        self.seen: list[SeenByPass] = []

    @property
    def phase(self) -> str:
        """Phase of its status; empty for a new Job."""
        return phase_of(self.raw.get("status"))

    @property
    def message(self) -> str:
        """Why it is in its phase."""
        state = (self.raw.get("status") or {}).get("state") or {}
        return str(state.get("message") or state.get("reason") or "")

    @property
    def hindrance(self) -> str:
        """Why the controller makes no pods that are missing; empty if it is not that."""
        state = (self.raw.get("status") or {}).get("state") or {}
        return self.message if state.get("reason") in _HINDRANCES else ""

    @property
    def is_finished(self) -> bool:
        """Whether it is over; an aborted one is, since no user resumes it here."""
        return self.phase in FINISHED or self.phase == ABORTED

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return str((self.raw.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)

    def set_group_status(self, status: PodGroupStatus) -> bool:
        """Take in the status of its PodGroup; whether another pass is needed: the phase has changed, and so has what passes read."""
        before, self.group_status = self.group_status, status
        if before is not None and before.phase == status.phase:
            return False
        read = self.read_status
        return read is None or self.due is not None or not _are_read_alike(read, status)

    def pass_begins(self) -> None:
        """Show the newest status of its PodGroup."""
        if self.group is not None and self.group_status is not self.read_status:
            self.group = with_status(self.group, self.group_status)
            self.read_status = self.group_status

    def put_group(self, raw: Raw) -> PodGroup:
        """Take in its PodGroup, and read it."""
        group = msgspec.convert(raw, PodGroup)
        self.group = raw
        self.group_status = self.read_status = group.status
        return group

    def drop_group(self) -> None:
        """Take in that its PodGroup is gone."""
        self.group = self.group_status = self.read_status = None


def with_status(group: Raw | None, status: PodGroupStatus | None) -> Raw | None:
    """A PodGroup with a status, if both are known."""
    if group is None or status is None:
        return group
    return group | {"status": msgspec.to_builtins(status)}


def _are_read_alike(one: PodGroupStatus, other: PodGroupStatus) -> bool:
    """Whether two of its statuses are the same in what decides about the Job: whether it may have pods, whether it is broken, and why it waits."""
    if (one.phase in ADMITTED) != (other.phase in ADMITTED):
        return False
    return (one.phase == BROKEN) == (other.phase == BROKEN) and _why(one) == _why(other)


def _why(status: PodGroupStatus) -> tuple[str, str] | None:
    return condition_of({"status": {"conditions": msgspec.to_builtins(status.conditions)}})


def job_of(pod: Pod) -> str:
    """Key of the Job whose name a pod carries."""
    return f"{pod.metadata.namespace}/{pod.metadata.label(keys.JOB_NAME)}"


def without_uids(text: str) -> str:
    """A text in which PodGroups of new Jobs have the names of these."""
    return text.replace(f"-{NO_UID}", "")
