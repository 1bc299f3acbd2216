"""Which logs of a Job's pods are read, and how their lines are named.

Pure: pods in, sources out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.pods import ContainerState, ContainerStatus, Pod

__all__ = ["LogSource", "position", "sources_of", "task_of"]


@dataclass(frozen=True, slots=True)
class LogSource:
    """A container whose log is read.

    Attributes:
        pod: Name of its pod.
        container: Its name.
        uid: uid of its pod.
        run: How often it was restarted in this pod.
        runs: Whether it runs.
        former: Whether its log before the last restart is read, in which it failed.
        title: The prefix of its lines: the pod, with the container if the pod has several.
    """

    pod: str
    container: str
    uid: str
    run: int
    runs: bool
    former: bool
    title: str

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells this log from all others."""
        return self.uid, self.container, self.run

    def titled(self, before: int = 0) -> str:
        """The prefix of its lines, with `#2` for the second run and so on.

        Args:
            before: Runs of the container in earlier pods of this name.
        """
        run = before + self.run + 1
        return self.title if run == 1 else f"{self.title}#{run}"


def task_of(pod: Pod) -> str:
    """The task of a pod."""
    return pod.metadata.annotation(keys.TASK_SPEC) or pod.metadata.label(keys.TASK_SPEC)


def position(pod: Pod) -> tuple[str, int, str]:
    """The place of a pod: by task, then by index."""
    name = pod.metadata.name
    last = name.rpartition("-")[2]
    return task_of(pod), int(last) if last.isdecimal() and len(last) < 10 else 0, name


def sources_of(
    pods: Sequence[Pod], task: str | None = None, *, failed: bool = False
) -> list[LogSource]:
    """Containers that have started; init containers only if they failed.

    Args:
        pods: The pods of the Job.
        task: Only pods of this task.
        failed: Only containers that failed, with the log of the run that did.
    """
    found = []
    for pod in pods:
        if task and task_of(pod) != task:
            continue
        regular = pod.status.container_statuses or ()
        chosen = [each for each in regular if _has_started(each)]
        chosen += [each for each in pod.status.init_container_statuses or () if _has_failed(each)]
        several = len(pod.spec.containers or ()) > 1 or len(chosen) > len(regular)
        for each in chosen:
            if failed and not _has_failed(each):
                continue
            state = each.state or ContainerState()
            former = failed and not (state.terminated and state.terminated.exit_code)
            meta = pod.metadata
            runs = pod.status.phase == "Running" and not (state.terminated or state.waiting)
            # Of a container that waits for its next start, kubelet gives the last run in either case.
            run = each.restart_count - (former and not state.waiting)
            title = f"{meta.name}/{each.name}" if several else meta.name
            found.append(
                LogSource(
                    meta.name, each.name, meta.uid, max(run, 0), runs and not former, former, title
                )
            )
    return found


def _has_started(status: ContainerStatus) -> bool:
    if status.last_state and status.last_state.terminated:
        return True
    return not (status.state and status.state.waiting)


def _has_failed(status: ContainerStatus) -> bool:
    states = (status.state, status.last_state)
    return any(each and each.terminated and each.terminated.exit_code for each in states)
