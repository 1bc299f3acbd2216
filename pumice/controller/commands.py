"""Commands: what users ask of a Job, `vcctl job suspend` for example.

A Command is carried out exactly once. Its uid is written to the Job's status together with the phase
that it leads to; only then is it deleted. Should the controller die in between, the uid tells the next
one that deleting is all that is left to do. Commands are taken one at a time, oldest first: by creation
time, which has whole seconds, then by resourceVersion.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pumice.api.commands import Command
from pumice.api.fields import did_you_mean
from pumice.api.jobs import ACTIONS, Job
from pumice.api.kinds import JOB, Kind
from pumice.api.meta import ObjectMeta, parse_time
from pumice.controller.phases import TARGETED

__all__ = ["NOTE", "Order", "misdirected", "next_order", "oldest", "targets"]

NOTE = "pumice.dev/command"
"""Key in `status.controlledResources` of the last Command that was carried out."""


@dataclass(frozen=True, slots=True)
class Order:
    """The Command to deal with now.

    Attributes:
        command: The Command.
        action: Action to take; empty when there is nothing to do but delete it.
        refusal: Why it is refused, empty when it is not.
    """

    command: Command
    action: str = ""
    refusal: str = ""


def targets(command: Command, kind: Kind = JOB) -> str | None:
    """Name of the object of a kind that a Command is for; None when it is for something else."""
    target = command.target
    if target is None or target.kind != kind.kind or not target.name:
        return None
    group = target.api_version.partition("/")[0]
    return target.name if group == kind.group else None


def oldest(commands: Iterable[Command]) -> Command | None:
    """The Command that comes first; None when there are none."""
    return min(commands, key=lambda each: _age(each.metadata), default=None)


def misdirected(command: Command, kind: Kind, meta: ObjectMeta) -> str:
    """Why a Command is not for the object that has the name of its target now; empty when it is.

    Args:
        command: The Command.
        kind: Kind of the object.
        meta: Metadata of the object.
    """
    uid = command.target.uid if command.target else ""
    if uid and uid != meta.uid:
        return f"it is for an earlier {kind.kind} {meta.name} (uid {uid})"
    created, asked = (parse_time(each.creation_timestamp) for each in (meta, command.metadata))
    if created is not None and asked is not None and asked < created:
        return f"it is older than {kind.kind} {meta.name}"
    return ""


def next_order(job: Job, commands: Sequence[Command]) -> Order | None:
    """The oldest Command for a Job, and what to do about it."""
    command = oldest(each for each in commands if targets(each) == job.metadata.name)
    if command is None:
        return None
    if refusal := misdirected(command, JOB, job.metadata):
        return Order(command, refusal=refusal)
    if (job.status.controlled_resources or {}).get(NOTE) == command.metadata.uid:
        return Order(command)
    if command.action in TARGETED:
        return Order(
            command, refusal=f"action {command.action} needs a pod and a Command names none"
        )
    if command.action not in ACTIONS:
        hint = did_you_mean(command.action, ACTIONS)
        return Order(command, refusal=f"action {command.action!r} is unknown{hint}")
    return Order(command, action=command.action)


def _age(meta: ObjectMeta) -> tuple[float, int, str]:
    version = meta.resource_version
    number = int(version) if version.isascii() and version.isdigit() else 0
    return parse_time(meta.creation_timestamp) or 0.0, number, meta.name
