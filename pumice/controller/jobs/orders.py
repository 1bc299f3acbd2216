"""Commands for a Job.

A Command is carried out exactly once. Its uid is written to the Job's status together with the phase that it leads to;
only then is it deleted. If the controller stops in between, the next one sees the uid and only deletes the Command.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api.commands import Command
from pumice.api.fields import did_you_mean
from pumice.api.jobs import ACTIONS, Job
from pumice.api.kinds import JOB
from pumice.controller.commands import misdirected, oldest, targets
from pumice.controller.jobs.phases import TARGETED

__all__ = ["NOTE", "Order", "next_order"]

NOTE = "pumice.dev/command"
"""Key in `status.controlledResources` of the last Command that was carried out."""


@dataclass(frozen=True, slots=True)
class Order:
    """The Command to handle now.

    Attributes:
        command: The Command.
        action: Action to take; empty when there is nothing to do but delete it.
        refusal: Why it is refused, empty when it is not.
    """

    command: Command
    action: str = ""
    refusal: str = ""


def next_order(job: Job, commands: Sequence[Command]) -> Order | None:
    """The oldest Command for a Job, and the action to take."""
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
