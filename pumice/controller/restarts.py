"""Which pods a restart replaces, noted where it outlives the controller.

The phase `Restarting` alone does not say whether the whole Job, a task, a partition or one pod is being
replaced. The note does. It is written to `status.controlledResources` together with the phase, and
erased together with it, so it is there exactly as long as it is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.pods import Pod
from pumice.controller.phases import (
    RESTART_JOB,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESUME_JOB,
    SOFT,
)

__all__ = ["NOTE", "WHOLE", "Restart", "parse", "restart_for"]

NOTE = "pumice.dev/restart"
"""Key of the note in `status.controlledResources`."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Pods that a restart replaces.

    Attributes:
        scope: `job`, `resume`, `task`, `partition` or `pod`.
        task: Name of the task, for `task` and `partition`.
        name: Name of the pod, or number of the partition.
    """

    scope: str
    task: str = ""
    name: str = ""

    @property
    def targeted(self) -> bool:
        """Whether other pods of the Job live on."""
        return self.scope not in ("job", "resume")

    def note(self) -> str:
        """The text that `parse` reads."""
        return "/".join(part for part in (self.scope, self.task, self.name) if part)

    def replaces(self, pod: Pod) -> bool:
        """Whether a pod must go."""
        match self.scope:
            case "task":
                return pod.metadata.annotation(keys.TASK_SPEC) == self.task
            case "partition":
                return (
                    pod.metadata.annotation(keys.TASK_SPEC) == self.task
                    and pod.metadata.label(keys.PARTITION_ID) == self.name
                )
            case "pod":
                return pod.metadata.name == self.name
            case "resume":
                return pod.status.phase not in SOFT
            case _:
                return True

    def remaining(self, pods: Sequence[Pod]) -> list[Pod]:
        """Pods that must go and are not yet on their way, or not known to go because of this."""
        return [pod for pod in pods if self.replaces(pod) and not self._dealt_with(pod)]

    def _dealt_with(self, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp is None:
            return False
        # In a targeted restart the version stays, so that only the mark tells these pods from evicted ones.
        return not self.targeted or bool(pod.metadata.annotation(keys.OUT_OF_SYNC))


WHOLE = Restart("job")


def restart_for(action: str, task: str = "", pod: str = "", partition: str = "") -> Restart | None:
    """The restart that an action asks for; None when it names pods of which nothing is known.

    A partition that is not known is the task: without a partition policy a task is one partition.
    """
    if action == RESTART_JOB:
        return WHOLE
    if action == RESUME_JOB:
        return Restart("resume")
    if action == RESTART_POD and pod:
        return Restart("pod", name=pod)
    if action == RESTART_PARTITION and task and partition:
        return Restart("partition", task, partition)
    if action in (RESTART_TASK, RESTART_PARTITION) and task:
        return Restart("task", task)
    return None


def parse(note: str) -> Restart:
    """Read a note; a missing or unreadable one means the whole Job."""
    match note.split("/"):
        case ["resume"]:
            return Restart("resume")
        case ["task", task]:
            return Restart("task", task)
        case ["partition", task, name]:
            return Restart("partition", task, name)
        case ["pod", name]:
            return Restart("pod", name=name)
        case _:
            return WHOLE
