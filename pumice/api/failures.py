"""Why pods failed, in words: from the ends of their containers, and from what kubelet says of the pod.

The Job's `status.state.message`, events and `pumice explain` use these words. Equal failures are one part of a message:

    task worker: 3 pods (train-worker-0, train-worker-2, train-worker-5) failed with exit code 137 (OOMKilled: out of memory)

The container that ended first is named as the cause; the others of the pod often end because of it. Reasons and
termination messages come from the program, so control characters and terminal escapes are removed, and
each text is cut.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pumice.api import keys
from pumice.api.fields import plain
from pumice.api.messages import LONGEST, LONGEST_LIST, listed, shortened
from pumice.api.pods import ContainerStatus, Pod, Terminated

PODS_FAILED = "PodsFailed"
"""Reason of a Job in which pods have failed and that waits for nothing."""

_CODES = {126: "the command cannot be executed", 127: "the command was not found"}
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT: interrupted",
    3: "SIGQUIT",
    4: "SIGILL: illegal instruction",
    6: "SIGABRT: aborted by the program itself",
    7: "SIGBUS: invalid memory access",
    8: "SIGFPE: arithmetic error",
    9: "SIGKILL: killed",
    11: "SIGSEGV: invalid memory access",
    13: "SIGPIPE: its reader was gone",
    15: "SIGTERM: told to stop",
    24: "SIGXCPU: limit of CPU time",
    25: "SIGXFSZ: limit of file size",
}
_REASONS = {"OOMKilled": "out of memory"}
_SAY_NOTHING = frozenset({"", "Error", "Completed"})

_NO_END = Terminated()
_LONGEST_SAYING = 256
_LONGEST_WORD = 64
_NAMES = 3
"""Pods of a group that are named."""

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?"
)
_PART = re.compile(r"(?:^|; )task [^ ]{1,80}: (?:pod [^ ]+|\d+ pods \([^)]*\)) failed")


class Failure(NamedTuple):
    """How one pod failed.

    Attributes:
        task: Its task; empty if the pod names none.
        pod: Its name.
        container: The container that failed first; empty if no container did.
        init: Whether that is an init container.
        alone: Whether the pod has no other container.
        exit_code: Its exit code; None if no container failed.
        reason: Its reason, such as `OOMKilled`; empty for `Error`, which says nothing.
        saying: Its termination message, or what the container runtime said; one line, cut.
        pod_reason: The pod's own reason, such as `Evicted`.
        pod_saying: The pod's own message.
    """

    task: str
    pod: str
    container: str = ""
    init: bool = False
    alone: bool = True
    exit_code: int | None = None
    reason: str = ""
    saying: str = ""
    pod_reason: str = ""
    pod_saying: str = ""

    @property
    def cause(self) -> str:
        """`failed with exit code 137 (OOMKilled: out of memory)`, without the messages."""
        text = "failed"
        if self.exit_code is not None:
            text += f" {ended(self.exit_code, self.reason)}"
            if not self.alone:
                text += f" in {'init ' if self.init else ''}container {self.container}"
        if self.pod_reason:
            text += f"{',' if self.exit_code is not None else ':'} {self.pod_reason}"
        return text

    @property
    def said(self) -> str:
        """The message that belongs to it: that of the container, else that of the pod."""
        return self.saying or self.pod_saying

    def __str__(self) -> str:
        """The cause with its message."""
        return f'{self.cause}: "{self.said}"' if self.said else self.cause


class FailureGroup(NamedTuple):
    """Pods of a task that failed for the same cause.

    Attributes:
        first: The first of them.
        pods: Names of all.
        alike: Whether all of them have the same message.
    """

    first: Failure
    pods: tuple[str, ...]
    alike: bool

    def __str__(self) -> str:
        """One part of a message."""
        first, number = self.first, len(self.pods)
        where = f"task {first.task}: " if first.task else ""
        if number == 1:
            return f"{where}pod {first.pod} {first}"
        names = ", ".join(self.pods[:_NAMES]) + (", …" if number > _NAMES else "")
        text = f"{where}{number} pods ({names}) {first.cause}"
        if not first.said:
            return text
        return f'{text}: "{first.said}"' if self.alike else f'{text}; {first.pod}: "{first.said}"'


def failure_of(pod: Pod) -> Failure | None:
    """How a pod failed; None for one that did not."""
    if pod.status.phase != "Failed":
        return None
    status = pod.status
    task = cleaned((pod.metadata.annotations or {}).get(keys.TASK_SPEC, ""), _LONGEST_WORD)
    whole = Failure(
        task,
        pod.metadata.name,
        pod_reason=cleaned(status.reason, _LONGEST_WORD),
        pod_saying=cleaned(status.message),
    )
    cause = _first_end(pod)
    if cause is None:
        return whole
    container, terminated = cause
    regular, init = status.container_statuses or (), status.init_container_statuses or ()
    return whole._replace(
        container=cleaned(container.name, _LONGEST_WORD),
        init=any(each is container for each in init),
        alone=len(regular) + len(init) == 1,
        exit_code=terminated.exit_code,
        reason=_reason(terminated),
        saying=cleaned(terminated.message, end=True),
    )


def grouped(pods: Iterable[Pod]) -> list[FailureGroup]:
    """Failed pods by task and cause, in the order of the pods; others are left out.

    All pods of a Job may have failed at once, so only the first of each group is read in full.
    """
    found: dict[tuple[object, ...], tuple[Pod, list[str], str]] = {}
    differing: set[tuple[object, ...]] = set()
    for pod in pods:
        status = pod.status
        if status.phase != "Failed":
            continue
        cause = _first_end(pod)
        name, end = (cause[0].name, cause[1]) if cause else ("", _NO_END)
        annotations = pod.metadata.annotations
        task = annotations[keys.TASK_SPEC] if annotations and keys.TASK_SPEC in annotations else ""
        alike = task, name, end.exit_code, end.reason, status.reason
        message = end.message or status.message
        if alike not in found:
            found[alike] = pod, [], message
        _, names, first = found[alike]
        names.append(pod.metadata.name)
        if message != first:
            differing.add(alike)
    return [
        FailureGroup(failure, tuple(names), alike not in differing)
        for alike, (pod, names, _) in found.items()
        if (failure := failure_of(pod)) is not None
    ]


def _first_end(pod: Pod) -> tuple[ContainerStatus, Terminated] | None:
    """The container of a pod that failed first, and its end."""
    found: tuple[ContainerStatus, Terminated] | None = None
    status = pod.status
    for statuses in (status.container_statuses, status.init_container_statuses):
        for each in statuses or ():
            terminated = each.state and each.state.terminated
            if not terminated or not terminated.exit_code:
                continue
            if found is None or (terminated.finished_at or "~") < (found[1].finished_at or "~"):
                found = each, terminated
    return found


def sentence(groups: Sequence[FailureGroup], most: int = LONGEST_LIST) -> str:
    """Groups as one text of at most so many bytes; empty if there is none."""
    return listed(map(str, groups), "; ", most)


def with_failures(message: str, groups: Sequence[FailureGroup]) -> str:
    """A message with the failures after it, if there is room for them."""
    if not groups or len(message.encode(errors="replace")) + LONGEST_LIST + 2 > LONGEST:
        return message
    return f"{message}; {sentence(groups)}" if message else sentence(groups)


def without_failures(message: str) -> str:
    """A message without the failures that `with_failures` has added."""
    found = _PART.search(message)
    return message if found is None else message[: found.start()]


def ended(exit_code: int, reason: str = "") -> str:
    """`with exit code 137 (SIGKILL: killed)`: an exit code and what it means."""
    means = meaning(exit_code, reason)
    return f"with exit code {exit_code}{means and f' ({means})'}"


def meaning(exit_code: int, reason: str = "") -> str:
    """What an exit code means; empty if only the program knows.

    Args:
        exit_code: The exit code.
        reason: The container's reason, which counts more: 137 is also the exit code of a program that was killed for
            another cause than memory.
    """
    if reason not in _SAY_NOTHING:
        return f"{reason}: {_REASONS[reason]}" if reason in _REASONS else reason
    if 128 < exit_code <= 128 + 64:
        return _SIGNALS.get(exit_code - 128, f"signal {exit_code - 128}")
    return _CODES.get(exit_code, "")


def trouble_of(pod: Pod) -> str:
    """What keeps a container of a pod that has not ended from running, or how it ended the last time; empty if nothing.

    The first container with such a state counts, init containers first.
    """
    status = pod.status
    for each in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
        waiting = each.state and each.state.waiting
        last = each.last_state and each.last_state.terminated
        parts: list[str] = []
        if waiting and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
            saying = cleaned(waiting.message)
            parts.append(
                f"waits: {cleaned(waiting.reason, _LONGEST_WORD)}{saying and f': {saying}'}"
            )
        if last and last.exit_code:
            saying = cleaned(last.message, end=True)
            how = ended(last.exit_code, _reason(last)) + (saying and f': "{saying}"')
            parts.append(f"failed {how} and was restarted {_times(each.restart_count)}")
        if parts:
            return f"container {cleaned(each.name, _LONGEST_WORD)} {'; '.join(reversed(parts))}"
    return ""


def attempts(used: int, limit: int, unit: str = "") -> str:
    """How many attempts are used: `attempts used: 1 of 3 (maxRetry)`.

    Args:
        used: Attempts that failed or were ended.
        limit: `maxRetry`; there is a first attempt in any case.
        unit: The pod, task or partition; empty for the whole Job.
    """
    return f"attempts{unit and f' of {unit}'} used: {used} of {max(limit, 1)} (maxRetry)"


def cleaned(text: str, most: int = _LONGEST_SAYING, *, end: bool = False) -> str:
    """A text of others as one line without terminal escapes, of at most so many bytes.

    Args:
        text: The text.
        most: Maximum number of bytes, at least 8.
        end: Whether a long text loses its beginning: a traceback ends with what matters.
    """
    if not text:
        return ""
    bound = 16 * most
    taken = text[-bound:] if end else text[:bound]
    line = plain(" ".join(without_escapes(taken).split()))
    if not end:
        return shortened(line, most)
    raw = line.encode(errors="replace")
    return line if len(raw) <= most else "…" + raw[3 - most :].decode(errors="ignore")


def without_escapes(text: str) -> str:
    """A text without sequences that control a terminal."""
    return _ESCAPES.sub("", text)


def _reason(terminated: Terminated) -> str:
    return "" if terminated.reason in _SAY_NOTHING else cleaned(terminated.reason, _LONGEST_WORD)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
