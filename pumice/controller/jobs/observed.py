"""The observed state of a Job at one moment: the input of `reconcile`."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from pumice.api.commands import Command
from pumice.api.messages import shortened
from pumice.api.meta import Raw
from pumice.api.pods import Pod
from pumice.api.queues import Queue

__all__ = ["Observed", "PlanFailure"]


@dataclass(frozen=True, slots=True)
class PlanFailure:
    """Why the last plan could not be carried out.

    Attributes:
        reason: One word, `FailedCreate` for example.
        message: One sentence, with what the API server said.
    """

    reason: str
    message: str

    def __post_init__(self) -> None:
        """Shorten the message: what the API server said may have a line for each field of an object."""
        object.__setattr__(self, "message", shortened(self.message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A Job and everything around it.

    Listed objects may have other owners; `reconcile` looks at the owners itself.

    Attributes:
        job: The Job as stored.
        pods: Pods that carry the Job's name in a label.
        ended: Pods with that label that had succeeded or failed by themselves, as far as that was seen (`lifetimes`), and
            since the status was last written were removed, or are being removed.
        group: The Job's PodGroup, when there is one.
        objects: Further objects: those with the Job's name in a label, and those whose names the Job
            needs, whatever their kind.
        commands: Commands that name the Job as their target.
        queue: The Job's queue, when it exists.
        priorities: PriorityClass values by name.
        absent: Names of pods of which the API server has said since the status was last written that they do not exist.
        trouble: Why the last plan could not be carried out.
        awaited: Whether the Job's JobFlow has not yet recorded its end, or its CronJob its run. If the Job were removed
            now, it would run again.
    """

    job: Raw
    pods: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()
    group: Raw | None = None
    objects: tuple[Raw, ...] = ()
    commands: tuple[Command, ...] = ()
    queue: Queue | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)
    absent: Set[str] = frozenset()
    trouble: PlanFailure | None = None
    awaited: bool = False
