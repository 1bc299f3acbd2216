"""Tables of the report: the numbers of the summary, exact as data and short for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pumice.api.durations import human_duration
from pumice.traces.job_measures import JobMeasures
from pumice.traces.thresholds import paths_of

_RATIOS = ("utilization", "fragmentation", "goodput")
_TIMES = ("makespan", "wait", "turnaround", "below_deserved", "wait_by")
_GROUPS = {
    "queue": "Wait by queue",
    "size": "Wait by pods of the job",
    "priority": "Wait by priority",
}
_ROWS = 50
"""Rows of a table of groups, and of jobs that never started."""
_MINUTE = 120


@dataclass
class Cell:
    """A number.

    Attributes:
        value: The number exactly as the JSON has it; empty if there is none.
        text: The same for people.
    """

    value: str
    text: str


@dataclass
class FigureRow:
    """A row of numbers.

    Attributes:
        path: The path of the first number in the summary.
        name: What the row is about.
        cells: The numbers.
    """

    path: str
    name: str
    cells: list[Cell]


def rows_of_summary(
    summaries: Sequence[Mapping[str, Any]], differences: Mapping[str, Any] | None
) -> list[FigureRow]:
    """A row for each number that is not about a group of jobs: in each run, and the difference. Of many queues the first 50."""
    paths: dict[tuple[str, ...], None] = {}
    many: Counter[str] = Counter()
    for path in (path for each in summaries for path in paths_of(each)):
        if path[0] != "wait_by" and path not in paths and many[path[0]] < _ROWS:
            paths[path] = None
            many[path[0]] += 1
    rows = []
    for path in paths:
        cells = [cell_of(path, _at(each, path)) for each in summaries]
        if differences is not None:
            cells.append(cell_of(path, _at(differences, path), sign=True))
        rows.append(FigureRow(".".join(path), " ".join(path), cells))
    return rows


def groups(summaries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[FigureRow], int]]:
    """Waits by groups of jobs: title, a row for each group with its numbers in all runs, and how many groups are left out."""
    for name, title in _GROUPS.items():
        tables = [each["wait_by"][name] for each in summaries]
        names = [*dict.fromkeys(group for each in tables for group in each)]
        rows = []
        for group in names[:_ROWS]:
            path = ("wait_by", name, group)
            cells = [
                cell_of((*path, number), each.get(group, {}).get(number))
                for each in tables
                for number in ("count", "mean", "p50", "p95", "max")
            ]
            rows.append(FigureRow(".".join(path), group, cells))
        yield title, rows, max(len(names) - _ROWS, 0)


def never_started(jobs: Iterable[JobMeasures]) -> tuple[list[JobMeasures], int]:
    """The first jobs that never started, and how many are left out."""
    found = [job for job in jobs if job.start is None]
    return found[:_ROWS], max(len(found) - _ROWS, 0)


def shown(seconds: float | None, *, sign: bool = False) -> str:
    """A time for people."""
    if seconds is None:
        return "–"
    mark = "-" if seconds < 0 else "+" if sign and seconds > 0 else ""
    size = abs(seconds)
    return f"{mark}{f'{size:.3g}s' if 0 < size < _MINUTE else human_duration(size)}"


def _at(summary: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        summary = summary.get(name) if isinstance(summary, Mapping) else None
    return summary


def cell_of(path: tuple[str, ...], value: float | None, *, sign: bool = False) -> Cell:
    """A number of the summary.

    Args:
        path: Its path, which says what it counts.
        value: The number; None if there is none.
        sign: Write the sign of a positive number, too.
    """
    if value is None:
        return Cell("", "–")
    if path[-1] == "count":
        return Cell(repr(value), f"{value:{'+' if sign and value else ''},}")
    if path[0] in _RATIOS:
        return Cell(repr(value), f"{value:{'+' if sign and value else ''}.2%}")
    if path[0] in _TIMES:
        return Cell(repr(value), shown(value, sign=sign))
    text = f"{value:+}" if isinstance(value, int) and sign and value else f"{value}"
    if isinstance(value, float):
        text = f"{value:{'+' if sign and value else ''}.4g}"
    return Cell(repr(value), text)
