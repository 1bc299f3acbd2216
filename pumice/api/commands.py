"""Commands: actions that users request for a Job or a Queue, for example with `vcctl job suspend`.

Group `bus.volcano.sh/v1alpha1`. Fields stand at the top level, there is no spec. Commands are taken one at a time, oldest first: by
creation time, which has whole seconds, then by resourceVersion.
"""

from collections.abc import Iterable
from typing import Annotated

from pumice.api.kinds import JOB, Kind
from pumice.api.markers import Marker
from pumice.api.meta import ApiStruct, ObjectMeta, OwnerReference, parse_time


class Command(ApiStruct, frozen=True):
    """A requested action on a Job or a Queue. It is deleted before it is carried out, so it is carried out at most once.

    Attributes:
        action: What to do, for example `AbortJob` or `ResumeJob`.
        target: Object that is meant.
        reason: One word why.
        message: One sentence why.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    action: str = ""
    target: Annotated[OwnerReference | None, Marker(nullable=True)] = None
    reason: str = ""
    message: str = ""


def targets(command: Command, kind: Kind = JOB) -> str | None:
    """Name of the Command's target; None if the target is of another kind."""
    target = command.target
    if target is None or target.kind != kind.kind or not target.name:
        return None
    group = target.api_version.partition("/")[0]
    return target.name if group == kind.group else None


def oldest(commands: Iterable[Command]) -> Command | None:
    """The Command that is carried out first; None if there are none."""
    return min(commands, key=lambda each: _age(each.metadata), default=None)


def misdirected(command: Command, kind: Kind, meta: ObjectMeta) -> str:
    """Why a Command is not for the object that now has the name of its target; empty if it is for it."""
    uid = command.target.uid if command.target else ""
    if uid and uid != meta.uid:
        return f"it is for an earlier {kind.kind} {meta.name} (uid {uid})"
    created, asked = (parse_time(each.creation_timestamp) for each in (meta, command.metadata))
    if created is not None and asked is not None and asked < created:
        return f"it is older than {kind.kind} {meta.name}"
    return ""


def _age(meta: ObjectMeta) -> tuple[float, int, str]:
    version = meta.resource_version
    number = int(version) if version.isascii() and version.isdigit() else 0
    return parse_time(meta.creation_timestamp) or 0.0, number, meta.name
