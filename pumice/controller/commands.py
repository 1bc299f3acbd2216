"""Commands: what users ask of a Job, `vcctl job suspend` for example.

A Command is carried out exactly once. Its uid is written to the Job's status together with the phase
that it leads to; only then is it deleted. Should the controller die in between, the uid tells the next
one that deleting is all that is left to do. Commands are taken one at a time, oldest first: by creation
time, which has whole seconds, then by resourceVersion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api.commands import Command
from pumice.api.fields import did_you_mean
from pumice.api.jobs import ACTIONS, Job
from pumice.api.kinds import JOB
from pumice.api.meta import ObjectMeta, parse_time
from pumice.controller.phases import TARGETED

__all__ = ["NOTE", "Order", "next_order", "targets"]

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


def targets(command: Command) -> str | None:
    """Name of the Job that a Command is for; None when it is for something else."""
    target = command.target
    if target is None or target.kind != JOB.kind or not target.name:
        return None
    group = target.api_version.partition("/")[0]
    return target.name if group == JOB.group else None


def next_order(job: Job, commands: Sequence[Command]) -> Order | None:
    """The oldest Command for a Job, and what to do about it."""
    pending = [command for command in commands if targets(command) == job.metadata.name]
    if not pending:
        return None
    command = min(pending, key=lambda each: _age(each.metadata))
    uid = command.target.uid if command.target else ""
    if uid and uid != job.metadata.uid:
        return Order(command, refusal=f"it is for an earlier Job {job.metadata.name} (uid {uid})")
    created, asked = (
        parse_time(each.creation_timestamp) for each in (job.metadata, command.metadata)
    )
    if created is not None and asked is not None and asked < created:
        return Order(command, refusal=f"it is older than Job {job.metadata.name}")
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
