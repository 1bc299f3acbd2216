"""Budgets of restarts: how often a pod, a task or a partition was restarted, and how long the next one waits.

`spec.maxRetry` bounds the restarts of the Job as a whole, counted in `status.retryCount`, and apart from them
those of each pod, each task and each partition. Resuming costs nothing. The counters are kept in
`status.controlledResources` under `pumice.dev/retries` and begin anew with each incarnation of the Job:

    pod/worker/0,3=2/1 partition/worker/2=1/1 task/ps=3/3

The first number counts restarts, the second those that followed each other without ten minutes of running in
between. A pod that fails for the first time is restarted at once; one that fails again waits 10 s, then 20 s,
up to 5 min. With `strict-upstream` every restart and every resume counts in `status.retryCount`, as in
Volcano, and nothing waits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pumice.api.jobs import Job
from pumice.controller.podsets import Entries, Names, write_indexes
from pumice.controller.restarts import Restart

__all__ = [
    "NOTE",
    "Tally",
    "Unit",
    "delay",
    "described",
    "of",
    "read",
    "restarted",
    "rested",
    "spent",
    "units",
    "write",
]

NOTE = "pumice.dev/retries"
"""Key of the note in `status.controlledResources`."""

Unit = tuple[str, str, str]
"""What is restarted: `pod`, `task` or `partition`, the task, and the index or number (empty for a task)."""

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
RUN_SECONDS = 600.0
"""A pod that ran for so long does not wait when it fails."""

_STREAK = 6
"""Restarts in a row after which the wait does not grow any more."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Restarts of one unit.

    Attributes:
        count: All of them.
        streak: Those that followed each other without ten minutes of running in between.
    """

    count: int = 0
    streak: int = 0


def units(restart: Restart, names: Names) -> list[Unit]:
    """What a targeted restart restarts, in order."""
    pods = sorted(key for name in restart.pods if (key := names.key(name)) is not None)
    return [
        *(("task", task, "") for task in sorted(restart.tasks)),
        *(("partition", task, number) for task, number in sorted(restart.partitions)),
        *(("pod", task, str(index)) for task, index in pods),
    ]


def restarted(
    tallies: Mapping[Unit, Tally], again: Iterable[Unit], failed: Mapping[Unit, bool]
) -> dict[Unit, Tally]:
    """The tallies after a restart.

    Args:
        tallies: Those before.
        again: What is restarted.
        failed: What of it failed, and whether it had run for ten minutes; what was evicted has not failed.
    """
    found = dict(tallies)
    for unit in again:
        before = found.get(unit, Tally())
        streak = 0 if failed.get(unit) else before.streak
        found[unit] = Tally(before.count + 1, min(streak + (unit in failed), _STREAK))
    return found


def spent(restart: Restart, tallies: Mapping[Unit, Tally], names: Names) -> tuple[int, str]:
    """The most restarts that a target of a restart has had, and which target that is."""
    counts = [(tallies.get(unit, Tally()).count, unit) for unit in units(restart, names)]
    count, unit = max(counts, key=lambda each: each[0], default=(0, None))
    return count, described(unit, names) if unit else ""


def rested(ran: float | None) -> bool:
    """Whether a pod that failed had run for so long that its failure counts as the first one."""
    return ran is not None and ran >= RUN_SECONDS


def delay(tally: Tally, ran: float | None) -> float:
    """Seconds to wait after a failure.

    Args:
        tally: Restarts so far.
        ran: Seconds for which the pod that failed had run; None if that is not known.
    """
    if not tally.streak or rested(ran):
        return 0.0
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (tally.streak - 1)))


def described(unit: Unit, names: Names) -> str:
    """A unit, for a message."""
    kind, task, number = unit
    if kind == "pod":
        return f"pod {names.name(task, int(number))}"
    return f"partition {number} of task {task}" if kind == "partition" else f"task {task}"


def write(tallies: Mapping[Unit, Tally]) -> str:
    """The text of the note; pods of a task with equal tallies share an entry."""
    entries: list[str] = []
    pods: dict[tuple[str, Tally], list[int]] = {}
    for unit in sorted(tallies):
        kind, task, number = unit
        if kind == "pod":
            pods.setdefault((task, tallies[unit]), []).append(int(number))
        else:
            where = f"{task}/{number}" if number else task
            entries.append(f"{kind}/{where}={_numbers(tallies[unit])}")
    entries += [
        f"pod/{task}/{write_indexes(sorted(indexes))}={_numbers(tally)}"
        for (task, tally), indexes in pods.items()
    ]
    return " ".join(entries)


def of(job: Job, names: Names) -> dict[Unit, Tally]:
    """How often pods, tasks and partitions of a Job were restarted."""
    return read((job.status.controlled_resources or {}).get(NOTE, ""), names)


def read(text: str, names: Names) -> dict[Unit, Tally]:
    """Read a note; entries that cannot be read, or that name no task of the Job, are left out."""
    found: dict[Unit, Tally] = {}
    entries = Entries(names)
    for entry in text.split():
        what, _, numbers = entry.rpartition("=")
        kind, _, where = what.partition("/")
        count, _, streak = numbers.partition("/")
        if not (count.isdecimal() and streak.isdecimal() and len(numbers) < 20):
            continue
        tally = Tally(int(count), min(int(streak), _STREAK))
        task, _, number = where.partition("/")
        if kind == "pod":
            found |= {("pod", task, str(index)): tally for task, index in entries.read(where)}
        elif kind in ("task", "partition") and names.size(task):
            found[kind, task, number] = tally
    return found


def _numbers(tally: Tally) -> str:
    return f"{tally.count}/{tally.streak}"
