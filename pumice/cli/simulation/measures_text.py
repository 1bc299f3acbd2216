"""Measures of simulated runs as tables for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pumice.api.messages import shortened
from pumice.cli.output import table
from pumice.traces.comparison import ChangedJob, Differences
from pumice.traces.measures import Measures
from pumice.traces.report.figures import cell_of, rows_of_summary, shown

_DISTRIBUTIONS = ("wait", "turnaround", "slowdown", "bounded_slowdown")
_NUMBERS = ("count", "mean", "p50", "p95", "p99", "max")
_OF_RESOURCES = ("utilization", "fragmentation", "goodput", "lost_hours")
_QUEUES = 20
_NOT_STARTED, _REASON = 5, 300
"""Jobs of which is said why they did not start, and bytes of what is said."""


def measures_text(measures: Measures) -> str:
    """The numbers of one run."""
    summary = msgspec.to_builtins(measures.summary)
    counts = [f"{count:,} {name}" for name, count in summary["jobs"].items() if count]
    parts = [_jobs(measures) + (f": {', '.join(counts)}" if counts else "")]
    parts.append(
        table(
            ("time", *(name if name != "count" else "jobs" for name in _NUMBERS)),
            [(name, *_texts(summary, name, _NUMBERS)) for name in _DISTRIBUTIONS],
        )
    )
    if resources := [*summary["utilization"]]:
        header = ("resource", *(name.replace("_", " ") for name in _OF_RESOURCES))
        rows = [
            (each, *(cell_of((name, each), summary[name][each]).text for name in _OF_RESOURCES))
            for each in resources
        ]
        parts.append(table(header, rows))
    if queues := [*_queues(summary)]:
        parts.append(table(("queue", "jobs", "wait mean", "p95", "below deserved"), queues))
    others = ("makespan", "jain", "evictions", "broken_gangs", "skipped")
    parts.append(
        table(
            ("measure", "value"), [(name, cell_of((name,), summary[name]).text) for name in others]
        )
    )
    return "\n\n".join([*parts, *_not_started(measures, ("Refused", "Waiting"))])


def comparison_text(base: Measures, other: Measures, found: Differences) -> str:
    """The numbers of two runs that differ, and the jobs that gained and lost most."""
    summaries = [msgspec.to_builtins(each.summary) for each in (base, other)]
    rows = [
        (row.path, *(cell.text for cell in row.cells))
        for row in rows_of_summary(summaries, found.summary)
        if not row.path.startswith("cost.") and len({cell.value for cell in row.cells[:2]}) > 1
    ]
    parts = [f"{_jobs(base)} in two runs"]
    header = ("measure", "base", "other", "difference")
    parts.append(table(header, rows) if rows else "all numbers are equal")
    for title, jobs in (("gained", found.gained), ("lost", found.lost)):
        if jobs:
            parts.append(table((title, "queue", *header[1:]), map(_changed, jobs)))
    return "\n\n".join([*parts, *_not_started(base, ("Refused",))])


def _not_started(measures: Measures, outcomes: Sequence[str]) -> Iterator[str]:
    """A table of why jobs with these outcomes did not start."""
    jobs = [job for job in measures.jobs if job.outcome in outcomes and job.start is None]
    rows = [
        (f"{job.namespace}/{job.name}", job.queue, shortened(job.reason or "–", _REASON))
        for job in jobs[:_NOT_STARTED]
    ]
    if len(jobs) > len(rows):
        rows.append((f"{len(jobs) - len(rows):,} more", "", ""))
    if rows:
        yield table(("not started", "queue", "why"), rows)


def _jobs(measures: Measures) -> str:
    count = len(measures.jobs)
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def _texts(summary: Mapping[str, Any], name: str, numbers: Sequence[str]) -> list[str]:
    return [cell_of((name, number), summary[name][number]).text for number in numbers]


def _queues(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    waits: Mapping[str, Any] = summary["wait_by"]["queue"]
    for queue in [*waits][:_QUEUES]:
        texts = _texts(waits, queue, ("count", "mean", "p95"))
        below = shown(summary["below_deserved"].get(queue))
        yield queue, texts[0], *(shown(waits[queue][each]) for each in ("mean", "p95")), below
    if len(waits) > _QUEUES:
        yield f"{len(waits) - _QUEUES} more", "", "", "", ""


def _changed(job: ChangedJob) -> tuple[str, ...]:
    name = f"{job.namespace}/{job.name}"
    difference = shown(job.difference, sign=True)
    return name, job.queue, shown(job.base), shown(job.other), difference
