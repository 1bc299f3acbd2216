"""Sets of a Job's pods, and how they are written into its status.

A pod of a Job is known by its task and its index, whatever became of it. A set of pods is written as the
tasks with the ranges of their indexes, `ps/0-1 worker/0-19,25`. Where a bitmap is shorter than ranges, it is
written instead: `worker/~` with base64, index 0 being the lowest bit. So the text of 100,000 pods never has
more than 17,000 characters, whichever of them are in the set.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator

from pumice.api.jobs import Job
from pumice.api.names import pod_name

__all__ = [
    "Names",
    "PodKey",
    "read",
    "read_entry",
    "read_indexes",
    "write",
    "write_entries",
    "write_indexes",
]

PodKey = tuple[str, int]
"""Task and index of a pod."""

_BITMAP = "~"


class Names:
    """From names of a Job's pods to their keys and back."""

    def __init__(self, job: Job) -> None:
        self._job = job.metadata.name
        self._tasks = {f"{self._job}-{task.name}": task.name for task in job.tasks}
        self._sizes = {task.name: task.size for task in job.tasks}

    def key(self, name: str) -> PodKey | None:
        """Key of a pod; None if no task of the Job can have a pod of that name."""
        prefix, _, last = name.rpartition("-")
        task = self._tasks.get(prefix)
        if task is None or not _is_index(last) or (last[0] == "0" and last != "0"):
            return None
        return task, int(last)

    def name(self, key: PodKey) -> str:
        """Name of a pod."""
        return pod_name(self._job, *key)

    def wants(self, key: PodKey) -> bool:
        """Whether the Job is large enough for a pod."""
        return key[1] < self._sizes.get(key[0], 0)

    def size(self, task: str) -> int:
        """Pods of a task; 0 for a task that the Job does not have."""
        return self._sizes.get(task, 0)


def write(keys: Iterable[PodKey]) -> str:
    """The text of a set."""
    return " ".join(write_entries(keys))


def write_entries(keys: Iterable[PodKey]) -> Iterator[str]:
    """The text of a set, task by task."""
    by_task: dict[str, list[int]] = {}
    for task, index in keys:
        by_task.setdefault(task, []).append(index)
    return (f"{task}/{write_indexes(sorted(by_task[task]))}" for task in sorted(by_task))


def read(text: str, names: Names) -> set[PodKey]:
    """The set that a text stands for; what cannot be read, and what the Job does not want, is left out."""
    return {key for entry in text.split() for key in read_entry(entry, names)}


def read_entry(entry: str, names: Names) -> Iterator[PodKey]:
    """The pods of one task."""
    task, _, indexes = entry.partition("/")
    return ((task, index) for index in read_indexes(indexes, names.size(task)))


def write_indexes(indexes: list[int]) -> str:
    """Indexes of one task, sorted, as text."""
    parts: list[str] = []
    start = previous = indexes[0]
    for index in [*indexes[1:], -1]:
        if index == previous + 1:
            previous = index
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = index
    text = ",".join(parts)
    if len(text) <= indexes[-1] // 6 + 8:
        return text
    bits = bytearray(indexes[-1] // 8 + 1)
    for index in indexes:
        bits[index // 8] |= 1 << index % 8
    return _BITMAP + base64.urlsafe_b64encode(bits).decode()


def read_indexes(text: str, size: int) -> Iterator[int]:
    """Indexes below a task's size: a text in a status must not ask for more of them than the Job has."""
    if text.startswith(_BITMAP):
        try:
            bits = base64.urlsafe_b64decode(text[len(_BITMAP) :])
        except (ValueError, binascii.Error):
            return
        for index in range(min(size, len(bits) * 8)):
            if bits[index // 8] >> index % 8 & 1:
                yield index
        return
    for part in text.split(","):
        first, _, last = part.partition("-")
        if _is_index(first) and _is_index(last or first):
            yield from range(int(first), min(int(last or first) + 1, size))


def _is_index(text: str) -> bool:
    return len(text) < 10 and text.isascii() and text.isdigit()
