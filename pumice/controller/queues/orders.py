"""Commands for queues; `vcctl queue operate --action close` creates one.

They are taken one at a time, the oldest first. A Command is removed once it is carried out; if the controller stops in
between, the next one carries it out again, which changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api.commands import Command
from pumice.api.fields import did_you_mean
from pumice.api.keys import ROOT_QUEUE
from pumice.api.kinds import QUEUE
from pumice.api.queues import Queue
from pumice.controller.commands import misdirected, oldest, targets

__all__ = ["CLOSE", "OPEN", "QueueOrder", "next_queue_order"]

CLOSE = "CloseQueue"
OPEN = "OpenQueue"


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The Command to handle now.

    Attributes:
        command: The Command.
        refusal: Why it is refused, empty when it is not.
        reason: Reason of the event about the refusal.
    """

    command: Command
    refusal: str = ""
    reason: str = "CommandRefused"

    @property
    def action(self) -> str:
        """The action to take."""
        return self.command.action

    @property
    def why(self) -> str:
        """The Command as text for a message."""
        text = self.command.message
        return f"Command {self.command.metadata.name}" + (f": {text}" if text else "")


def next_queue_order(queue: Queue, commands: Sequence[Command]) -> QueueOrder | None:
    """The oldest Command for a queue, and why it is refused if it is."""
    command = oldest(each for each in commands if targets(each, QUEUE) == queue.metadata.name)
    if command is None:
        return None
    if refusal := misdirected(command, QUEUE, queue.metadata):
        return QueueOrder(command, refusal)
    action = command.action
    if action not in (CLOSE, OPEN):
        hint = did_you_mean(action, (CLOSE, OPEN))
        return QueueOrder(
            command, f"action {action!r} is unknown for a queue{hint}; use {CLOSE} or {OPEN}"
        )
    if action == CLOSE and queue.metadata.name == ROOT_QUEUE:
        refusal = f"queue {ROOT_QUEUE} holds all other queues; close those that are to be closed"
        return QueueOrder(command, refusal, CLOSE)
    if action == OPEN and queue.metadata.deletion_timestamp is not None:
        return QueueOrder(command, "the queue is being deleted", OPEN)
    return QueueOrder(command)
