"""Logs of a Job's pods: which are read, how their lines are named, and the lines in the order of their times.

The API server gives each line with its time (`timestamps=true`); the text is safe on a terminal. Pure: pods and bytes in, text out.
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from pumice.api import keys
from pumice.api.failures import without_escapes
from pumice.api.fields import plain
from pumice.api.pods import ContainerState, ContainerStatus, Pod


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


LONGEST = 65_536
"""Bytes of the longest line; a longer one is shown as several."""

_PART = 16_384
"""Bytes of the parts in which container runtimes write a long line."""

_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d) ?")


class LogLine(NamedTuple):
    """A line of a log.

    Attributes:
        moment: When it was written, in nanoseconds since 1970.
        source: Number of the log; lines of the same moment are shown in this order.
        text: The line, without what controls a terminal.
    """

    moment: int
    source: int
    text: str


class Lines:
    """The lines of one log, from chunks of bytes; it can be read again from where it broke off.

    Attributes:
        source: Number of the log.
        last: Moment of the last line, in nanoseconds; 0 before the first one.
    """

    def __init__(self, source: int) -> None:
        """Begin a log with a number."""
        self.last = 0
        self.source = source
        self._rest = b""
        self._known = 0
        self._repeated: int | None = None

    def resume(self) -> str | None:
        """Begin to read again: the `sinceTime` to ask for, which has whole seconds; None before the first line.

        Lines that were read already are left out afterwards.
        """
        self._rest = b""
        self._repeated = self._known
        if not self.last:
            return None
        whole = datetime.fromtimestamp(self.last // 1_000_000_000, tz=UTC)
        return whole.strftime("%Y-%m-%dT%H:%M:%SZ")

    def feed(self, chunk: bytes) -> Iterator[LogLine]:
        """The lines that a chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            yield from self._read(line)
        while len(self._rest) > LONGEST:
            yield from self._read(self._rest[:LONGEST])
            self._rest = self._rest[LONGEST:]

    def end(self) -> Iterator[LogLine]:
        """The last line, if it has no line end."""
        rest, self._rest = self._rest, b""
        if rest:
            yield from self._read(rest)

    def _read(self, line: bytes) -> Iterator[LogLine]:
        moment, text = _timed(line)
        text = _whole(text)
        moment = self.last if moment is None else moment
        if self._repeated is not None:
            if moment < self.last:
                return
            if moment == self.last and self._repeated:
                self._repeated -= 1
                return
            self._repeated = None
        self._known = self._known + 1 if moment == self.last else 1
        self.last = max(moment, self.last)  # clocks may be set back; the order of a log counts more
        yield LogLine(self.last, self.source, shown(text))


def _whole(text: bytes) -> bytes:
    """A long line without the times that kubelets write before each part of it (kubernetes/kubernetes#77603)."""
    at = _PART
    while len(text) > at and (found := _TIME.match(text, at)) is not None:
        text = text[:at] + text[found.end() :]
        at += _PART
    return text


def in_order(logs: Iterable[Iterable[LogLine]]) -> Iterator[LogLine]:
    """Lines of several logs in the order of their times; those of one log keep their order."""
    return heapq.merge(*logs, key=lambda line: line[:2])


def shown(line: bytes) -> str:
    r"""A line as text: of a line that was overwritten (`\r`) what it showed last, without escapes and control characters."""
    text = line.decode(errors="replace").rstrip("\r").rpartition("\r")[2].expandtabs()
    return text if text.isprintable() else plain(without_escapes(text))


def _timed(line: bytes) -> tuple[int | None, bytes]:
    """The time of a line, and the rest of it."""
    found = _TIME.match(line)
    if found is None:
        return None, line
    second, fraction, zone = found.groups()
    begin = _second(second, zone)
    if begin is None:
        return None, line
    return begin + int((fraction or b"0").ljust(9, b"0")), line[found.end() :]


@lru_cache(maxsize=4096)
def _second(text: bytes, zone: bytes) -> int | None:
    try:
        moment = datetime.fromisoformat(f"{text.decode()}{zone.decode()}")
        return int(moment.timestamp()) * 1_000_000_000
    except (ValueError, OverflowError):
        return None
