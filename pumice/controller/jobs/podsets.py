"""Sets of a Job's pods, and their text form in its status.

A pod of a Job is identified by its task and its index, also after it is deleted. A set of pods is written as the tasks
with the ranges of their indexes, `ps/0-1 worker/0-19,25`. If a bitmap is shorter than the ranges, it is written
instead: `worker/~` with base64, where index 0 is the lowest bit. So the text for 100,000 pods never has more than
17,000 characters.
"""

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from pumice.api.jobs import Job
from pumice.api.names import pod_name

PodKey = tuple[str, int]
"""Task and index of a pod."""

_BITMAP = "~"
_NONE = 1 << 62


class PodNames:
    """Names of a Job's pods, and their tasks and indexes."""

    def __init__(self, job: Job) -> None:
        self._job = job.metadata.name
        self._tasks = {self.prefix(task.name): task.name for task in job.tasks}
        self._known: dict[str, PodKey] = {}  # parsing a name costs ten times as much
        self._sizes = {task.name: task.size for task in job.tasks}

    def key(self, name: str) -> PodKey | None:
        """Task and index of a pod; None if no task of the Job can have a pod of that name."""
        if (known := self._known.get(name)) is not None:
            return known
        prefix, _, last = name.rpartition("-")
        task = self._tasks.get(prefix)
        if task is None or not is_index(last):
            return None
        known = self._known[name] = task, int(last)
        return known

    def name(self, task: str, index: int) -> str:
        """Name of a pod."""
        name = pod_name(self._job, task, index)
        self._known[name] = task, index
        return name

    def names(self, task: str, indexes: Iterable[int]) -> list[str]:
        """Names of pods of a task."""
        found = {pod_name(self._job, task, index): (task, index) for index in indexes}
        self._known |= found
        return list(found)

    def prefix(self, task: str) -> str:
        """How the names of a task's pods begin, without the `-` before the index."""
        return f"{self._job}-{task}"

    def task(self, prefix: str) -> str | None:
        """The task whose pod names begin with this prefix; None if there is none."""
        return self._tasks.get(prefix)

    def wants(self, name: str) -> bool:
        """Whether the Job has a pod of that name, by its tasks and their sizes."""
        key = self.key(name)
        return key is not None and key[1] < self._sizes[key[0]]

    def size(self, task: str) -> int:
        """Pods of a task; 0 for a task that the Job does not have."""
        return self._sizes.get(task, 0)

    def by_task(self, pods: Iterable[str]) -> dict[str, list[int]]:
        """Indexes of pods by task, both in order, of pods that the Job can have."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for task, index in filter(None, map(self.key, pods)):
            found[task].append(index)
        return {task: sorted(found[task]) for task in sorted(found)}

    def numbers(self, pods: Collection[str]) -> dict[str, int]:
        """Numbers of pods by task, of pods that the Job can have."""
        found = Counter([key[0] for key in map(self.key, pods) if key is not None]) if pods else {}
        return dict(sorted(found.items()))


def write(pods: Iterable[str], names: PodNames) -> str:
    """The text of a set of names of pods."""
    return " ".join(write_entries(pods, names))


def write_entries(pods: Iterable[str], names: PodNames) -> Iterator[str]:
    """The text of a set of names of pods, task by task."""
    by_task = names.by_task(pods)
    return (f"{task}/{write_indexes(indexes)}" for task, indexes in by_task.items())


def read(text: str, names: PodNames) -> set[str]:
    """Names of the pods in a set; what cannot be read, and what the Job does not want, is left out."""
    if not text:
        return set()
    entries = Entries(names)
    return {name for entry in text.split() for name in names.names(*entries.read(entry))}


def fits(text: str, names: PodNames) -> bool:
    """True if the Job can have all pods of a set, so that `read` leaves none out."""
    for entry in text.split():
        task, _, indexes = entry.partition("/")
        if _highest(indexes) >= names.size(task):
            return False
    return True


class Entries:
    """Reads the entries of one note. For each task it reads at most as many indexes as the task has pods.

    In a note of the controller each pod occurs once. A note with many entries for a task was written by a user; the
    limit bounds its cost.
    """

    def __init__(self, names: PodNames) -> None:
        self._names = names
        self._left: dict[str, int] = {}

    def read(self, entry: str) -> tuple[str, list[int]]:
        """The task of one entry, and the indexes of its pods: `worker/0-19,25`."""
        task, _, indexes = entry.partition("/")
        size = self._names.size(task)
        left = self._left.get(task, size)
        found = list(islice(read_indexes(indexes, size), left))
        self._left[task] = left - len(found)
        return task, found


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
    """Indexes below a task's size, in ascending order; duplicates are left out.

    A text in a status must not produce more indexes than the Job has pods.
    """
    if text.startswith(_BITMAP):
        bits = _bits(text)
        for index in range(min(size, len(bits) * 8)):
            if bits[index // 8] >> index % 8 & 1:
                yield index
        return
    start = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if is_index(first) and is_index(last or first):
            end = min(int(last or first) + 1, size)
            yield from range(max(start, int(first)), end)
            start = max(start, end)


def _highest(text: str) -> int:
    """The highest of some indexes; a number too high for any task if they cannot be read."""
    if text.startswith(_BITMAP):
        bits = _bits(text)
        return len(bits) * 8 - 9 + bits[-1].bit_length() if bits else _NONE
    last = text.rpartition(",")[2].rpartition("-")[2]
    return int(last) if is_index(last) else _NONE


def _bits(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text[len(_BITMAP) :])
    except (ValueError, binascii.Error):
        return b""


def is_index(text: str) -> bool:
    """True if a text is an index in the form of pod names: no sign, no leading zeros."""
    return (
        len(text) < 10
        and text.isascii()
        and text.isdigit()
        and (text == "0" or not text.startswith("0"))
    )
