"""Restart budgets: how often a pod, a task or a partition was restarted, and how long the next restart waits.

`spec.maxRetry` bounds the restarts of the Job as a whole, counted in `status.retryCount`, and apart from them
those of each pod, each task and each partition. Resuming costs nothing. The counters are kept in
`status.controlledResources` under `pumice.dev/retries` and begin again with each incarnation of the Job:

    task/ps=3/3 partition/worker/2=1/1 pod/worker/0,3=2/1

The first number counts restarts, the second those that followed each other without ten minutes of running in
between. A pod that fails for the first time is restarted at once; one that fails again waits 10 s, then 20 s,
up to 5 min. With `strict-upstream` every restart and every resume counts in `status.retryCount`, as in
Volcano, and nothing waits.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from pumice.api.jobs import Job
from pumice.controller.jobs.podsets import Entries, PodNames, is_index, read_indexes, write_indexes
from pumice.controller.jobs.restart_targets import Restart, Target

NOTE = "pumice.dev/retries"
"""Key of the note in `status.controlledResources`."""

RestartUnit = tuple[str, str, str]
"""What is restarted: `pod`, `task` or `partition`, the task, and the index or number (empty for a task)."""

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
RUN_SECONDS = 600.0
"""Seconds of running after which a failed pod is restarted without delay."""

LONGEST = 131_072
"""Maximum length of the note, in addition to one entry for each task. It holds five sets of 100,000 pods, which is the number of distinct tallies with the usual `maxRetry` of 3."""

_NUMBERED = ("partition", "pod")
_STREAK = 6
"""Consecutive restarts after which the delay does not grow any more."""


class RestartCount(msgspec.Struct, frozen=True, order=True, gc=False):
    """Restarts of one restart unit; there may be one for each pod.

    Attributes:
        count: All of them.
        streak: Those that followed each other without ten minutes of running in between.
    """

    count: int = 0
    streak: int = 0


_NONE = RestartCount()


def restart_unit(target: Target, names: PodNames) -> RestartUnit | None:
    """The restart unit that a target restarts, as in `restart_units`; None for a pod that the Job cannot have."""
    kind, task, which = target
    if kind == "pod":
        key = names.key(which)
        return None if key is None else ("pod", key[0], str(key[1]))
    return target if kind == "task" or is_index(which) else ("task", task, "")


def restart_units(restart: Restart, names: PodNames) -> list[RestartUnit]:
    """The restart units that a targeted restart restarts, in order; a partition whose name a user changed counts as its task."""
    pods = names.by_task(restart.pods)
    named = {task for task, number in restart.partitions if not is_index(number)}
    numbered = sorted(each for each in restart.partitions if is_index(each[1]))
    return [
        *(("task", task, "") for task in sorted(restart.tasks | named)),
        *(("partition", task, number) for task, number in numbered),
        *(("pod", task, str(index)) for task, indexes in pods.items() for index in indexes),
    ]


def restarted(
    tallies: Mapping[RestartUnit, RestartCount],
    again: Iterable[RestartUnit],
    failed: Mapping[RestartUnit, bool],
) -> dict[RestartUnit, RestartCount]:
    """The tallies after a restart.

    Args:
        tallies: Those before.
        again: The restarted units.
        failed: Failed pods, each with whether it had run for ten minutes; evicted pods have not failed.
    """
    found = dict(tallies)
    for unit in again:
        before = found.get(unit, _NONE)
        had_run = failed.get(unit)
        streak = (0 if had_run else before.streak) + (had_run is not None)
        found[unit] = RestartCount(before.count + 1, min(streak, _STREAK))
    return found


def spent(
    again: Sequence[RestartUnit], tallies: Mapping[RestartUnit, RestartCount], names: PodNames
) -> tuple[int, str]:
    """The highest restart count among the restarted units, and that unit."""
    counts = [tallies.get(unit, _NONE).count for unit in again]
    count = max(counts, default=0)
    return count, described(again[counts.index(count)], names) if counts else ""


def rested(ran: float | None) -> bool:
    """True if a failed pod had run long enough that its failure counts as the first one."""
    return ran is not None and ran >= RUN_SECONDS


def delay(tally: RestartCount, ran: float | None) -> float:
    """Seconds to wait after a failure.

    Args:
        tally: Restarts so far.
        ran: Seconds for which the pod that failed had run; None if that is not known.
    """
    if not tally.streak or rested(ran):
        return 0.0
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (tally.streak - 1)))


def described(unit: RestartUnit, names: PodNames) -> str:
    """A unit as text for a message."""
    kind, task, number = unit
    if kind == "pod":
        return f"pod {names.name(task, int(number))}"
    return f"partition {number} of task {task}" if kind == "partition" else f"task {task}"


def write(tallies: Mapping[RestartUnit, RestartCount]) -> str:
    """The text of the note; pods of a task, and its partitions, with equal tallies share an entry.

    If tallies differ so much that the text would be too long, the lowest are raised. So restarts stay bounded, and no
    tally becomes higher than the highest one of its task.
    """
    tasks = [
        f"{unit[0]}/{unit[1]}={_numbers(tallies[unit])}"
        for unit in sorted(unit for unit in tallies if not unit[2])
    ]
    sets: dict[tuple[str, str], dict[RestartCount, list[int]]] = {}
    for (kind, task, number), tally in tallies.items():
        if number:
            sets.setdefault((kind, task), {}).setdefault(tally, []).append(int(number))

    def text(least: RestartCount) -> str:
        return " ".join([*tasks, *_entries(sets, least)])

    levels = sorted({RestartCount(), *(tally for by_tally in sets.values() for tally in by_tally)})
    del levels[: -LONGEST // len("pod/a/0=1/0 ")]  # more entries than that have no room
    if len(whole := text(levels[0])) <= LONGEST:
        return whole
    at = bisect_left(levels, True, key=lambda least: len(text(least)) <= LONGEST)
    return text(levels[min(at, len(levels) - 1)])


def _entries(
    sets: Mapping[tuple[str, str], Mapping[RestartCount, list[int]]], least: RestartCount
) -> Iterator[str]:
    """Entries of pods and partitions, whose tallies are raised to the least one, or to the highest of their task."""
    for (kind, task), by_tally in sorted(sets.items()):
        level = min(least, max(by_tally))
        streak = max((each.streak for each in by_tally if each <= level), default=0)
        raised: dict[RestartCount, list[int]] = {}
        for tally, indexes in by_tally.items():
            now = RestartCount(level.count, streak) if tally <= level else tally
            raised.setdefault(now, []).extend(indexes)
        for tally, indexes in sorted(raised.items(), key=lambda each: min(each[1])):
            yield f"{kind}/{task}/{write_indexes(sorted(indexes))}={_numbers(tally)}"


def of(job: Job, names: PodNames) -> dict[RestartUnit, RestartCount]:
    """The restart counts of a Job's pods, tasks and partitions."""
    return read((job.status.controlled_resources or {}).get(NOTE, ""), names)


def read(text: str, names: PodNames) -> dict[RestartUnit, RestartCount]:
    """Read a note; entries that cannot be read, or that name no task of the Job, are left out."""
    found: dict[RestartUnit, RestartCount] = {}
    entries = {kind: Entries(names) for kind in _NUMBERED}
    for kind, where, tally in _read(text):
        if kind in entries:
            task, indexes = entries[kind].read(where)
            found |= dict.fromkeys([(kind, task, str(index)) for index in indexes], tally)
        elif kind == "task" and names.size(where):
            found[kind, where, ""] = tally
    return found


def most_restarted(text: str, names: PodNames) -> tuple[int, str]:
    """The highest restart count in a note, and the first unit that has it; only that unit is read, since a task may have many pods."""
    count, found = 0, ""
    for kind, where, tally in _read(text):
        task, _, indexes = where.partition("/")
        first = next(read_indexes(indexes, names.size(task)), None)
        if tally.count <= count or not names.size(task):
            continue
        if kind in _NUMBERED and first is not None:
            count, found = tally.count, described((kind, task, str(first)), names)
        elif kind == "task" and not indexes:
            count, found = tally.count, described((kind, task, ""), names)
    return count, found


def _read(text: str) -> Iterator[tuple[str, str, RestartCount]]:
    """The entries of a note that can be read: kind, task with indexes, and tally."""
    for entry in text.split():
        what, _, numbers = entry.rpartition("=")
        kind, _, where = what.partition("/")
        count, _, streak = numbers.partition("/")
        if count.isdecimal() and streak.isdecimal() and len(numbers) < 20:
            yield kind, where, RestartCount(int(count), min(int(streak), _STREAK))


def _numbers(tally: RestartCount) -> str:
    return f"{tally.count}/{tally.streak}"
