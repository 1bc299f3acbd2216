"""The pods that a restart replaces, recorded in the Job's status.

The phase `Restarting` alone does not say whether the whole Job, tasks, partitions or single pods are being replaced.
The note does. It is written to `status.controlledResources` together with the phase, and removed together with it.

Failures that are seen in one pass are restarted together, so a restart may have several targets:
`task/ps;partition/worker/2;pods/train-worker/0,3-7`. Several partitions are `partitions/worker/0-2`. If the Job is
scaled down meanwhile and none of them is left, the note is `none`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.pods import Pod
from pumice.controller.jobs.phases import (
    RESTART_JOB,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESUME_JOB,
    SOFT,
)
from pumice.controller.jobs.pods import partition_of
from pumice.controller.jobs.podsets import Entries, PodNames, is_index, write_indexes

Target = tuple[str, str, str]
"""What one event restarts: `pod`, `task` or `partition`, the task, and the pod's name or the partition's number (empty for a task)."""

NOTE = "pumice.dev/restart"
"""Key of the note in `status.controlledResources`."""

_NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Pods that a restart replaces.

    Attributes:
        whole: `job` or `resume` when it concerns the whole Job, else empty.
        tasks: Names of tasks.
        partitions: Partitions, as task and number.
        pods: Names of pods.
    """

    whole: str = ""
    tasks: frozenset[str] = frozenset()
    partitions: frozenset[tuple[str, str]] = frozenset()
    pods: frozenset[str] = frozenset()

    @property
    def targeted(self) -> bool:
        """True if other pods of the Job stay."""
        return not self.whole

    def note(self, names: PodNames) -> str:
        """The text that `parse` reads."""
        if self.whole:
            return self.whole
        parts = [f"task/{task}" for task in sorted(self.tasks)]
        numbers: dict[str, list[int]] = {}
        for task, number in sorted(self.partitions):
            if len(self.partitions) == 1 or not is_index(number):
                parts.append(f"partition/{task}/{number}")
            else:
                numbers.setdefault(task, []).append(int(number))
        parts += [
            f"partitions/{task}/{write_indexes(sorted(found))}" for task, found in numbers.items()
        ]
        by_task = names.by_task(self.pods) if len(self.pods) > 1 else {}
        if sum(map(len, by_task.values())) < len(self.pods):
            alone = sorted(name for name in self.pods if not by_task or names.key(name) is None)
            parts += [f"pod/{name}" for name in alone]
        parts += [
            f"pods/{names.prefix(task)}/{write_indexes(found)}" for task, found in by_task.items()
        ]
        return ";".join(parts) or _NONE

    def replaces(self, pod: Pod) -> bool:
        """True if a pod must be replaced."""
        if self.whole:
            return self.whole != "resume" or pod.status.phase not in SOFT
        meta = pod.metadata
        if meta.name in self.pods:
            return True
        task = meta.annotation(keys.TASK_SPEC)
        return task in self.tasks or (
            bool(self.partitions) and (task, meta.label(keys.PARTITION_ID)) in self.partitions
        )

    def covers(self, job: Job, names: PodNames) -> Callable[[str], bool]:
        """`replaces` for names of pods, including pods that do not exist."""
        if self.whole:
            return lambda _: self.whole != "resume"
        tasks = {task.name: task for task in job.tasks}

        def covered(name: str) -> bool:
            if name in self.pods:
                return True
            key = names.key(name) if self.tasks or self.partitions else None
            if key is None:
                return False
            task, index = key
            return task in self.tasks or (task, partition_of(tasks[task], index)) in self.partitions

        return covered

    def action(self, task: str, partition: str) -> str:
        """The action that restarts a pod of a task and partition; of several the one that concerns most."""
        if task in self.tasks:
            return RESTART_TASK
        return RESTART_PARTITION if (task, partition) in self.partitions else RESTART_POD

    def remaining(self, pods: Sequence[Pod]) -> list[Pod]:
        """Pods that must be removed and are not yet terminating, or not yet marked as removed by the restart."""
        return [pod for pod in pods if self.replaces(pod) and not self._dealt_with(pod)]

    def _dealt_with(self, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp is None:
            return False
        # In a targeted restart the version stays, so that only the mark tells these pods from evicted ones.
        return not self.targeted or bool(pod.metadata.annotation(keys.OUT_OF_SYNC))


WHOLE = Restart(whole="job")
RESUME = Restart(whole="resume")


def restart_of(targets: Iterable[Target]) -> Restart:
    """One restart for several targets."""
    tasks: set[str] = set()
    partitions: set[tuple[str, str]] = set()
    pods: set[str] = set()
    for kind, task, which in targets:
        if kind == "pod":
            pods.add(which)
        elif kind == "partition":
            partitions.add((task, which))
        else:
            tasks.add(task)
    return Restart(tasks=frozenset(tasks), partitions=frozenset(partitions), pods=frozenset(pods))


def restart_for(action: str) -> Restart | None:
    """The restart of all pods that an action requests; None for any other action."""
    return {RESTART_JOB: WHOLE, RESUME_JOB: RESUME}.get(action)


def target_for(action: str, task: str = "", pod: str = "", partition: str = "") -> Target | None:
    """The target of an action that restarts a part of the Job; None if its pods are unknown.

    Without a known partition the task is restarted: a task without a partition policy is one partition.
    """
    if action == RESTART_POD and pod:
        return "pod", task, pod
    if action == RESTART_PARTITION and task and partition:
        return "partition", task, partition
    if action in (RESTART_TASK, RESTART_PARTITION) and task:
        return "task", task, ""
    return None


def parse(note: str, names: PodNames) -> Restart:
    """Read a note; a missing or unreadable one means the whole Job.

    Indexes that no pod of the Job has are left out. This bounds the cost of a note that a user wrote.
    """
    if note == "resume":
        return RESUME
    found: list[Target] = []
    pods, partitions = Entries(names), Entries(names)
    for part in note.split(";"):
        match part.split("/"):
            case ["task", task]:
                found.append(("task", task, ""))
            case ["partition", task, number]:
                found.append(("partition", task, number))
            case ["partitions", task, numbers]:
                task, read = partitions.read(f"{task}/{numbers}")
                found += [("partition", task, str(number)) for number in read]
            case ["pod", name]:
                found.append(("pod", "", name))
            case [text] if text == _NONE:
                pass
            case ["pods", prefix, indexes]:
                task, read = pods.read(f"{names.task(prefix) or ''}/{indexes}")
                found += [("pod", task, name) for name in names.names(task, read)]
            case _:
                return WHOLE
    return restart_of(found)
