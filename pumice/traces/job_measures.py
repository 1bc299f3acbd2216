"""What is measured of each job. docs/simulation.md defines every number."""

from collections.abc import Iterable
from math import fsum
from typing import Any

import msgspec

from pumice.traces.records import JobRecord, Past

BOUND = 10.0
"""Seconds that the bounded slowdown takes a shorter job to run.

Source: Feitelson, Rudolph: Metrics and Benchmarking for Parallel Job Scheduling, JSSPP 1998.
"""

_PERCENTILES = (50, 95, 99)
_DECIMALS = 6


class JobMeasures(msgspec.Struct, kw_only=True):
    """Numbers of one job, as the JSON has them. Times are seconds since the trace's zero, None for what never happened."""

    name: str
    namespace: str
    queue: str
    outcome: str
    submit: float
    start: float | None
    end: float | None
    wait: float | None
    run: float | None
    turnaround: float | None
    slowdown: float | None
    bounded_slowdown: float | None
    evictions: int
    nodes: list[str]
    reason: str


class Distribution(msgspec.Struct):
    """Numbers of a set of values; None if there are none."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


def measured_jobs(past: Past) -> list[JobMeasures]:
    """Numbers of each job, in the order of their submission."""
    return [_measured(record, past.nodes) for record in past.jobs]


def _measured(record: JobRecord, nodes: list[str]) -> JobMeasures:
    job, start, end = record.job, record.start, record.end
    wait = None if start is None else start - job.submit
    run = turnaround = slowdown = bounded = None
    if start is not None and end is not None:
        run, turnaround = end - start, end - job.submit
        work = run if job.duration is None else job.duration
        slowdown = turnaround / work if work > 0 else None
        bounded = max(turnaround / max(work, BOUND), 1.0)
    held = sorted({runs.node for runs in record.runs if runs.how != "evicted"})
    return JobMeasures(
        name=job.name,
        namespace=job.namespace,
        queue=job.queue,
        outcome=record.outcome,
        submit=job.submit,
        start=start,
        end=end,
        wait=wait,
        run=run,
        turnaround=turnaround,
        slowdown=slowdown,
        bounded_slowdown=bounded,
        evictions=record.evictions,
        nodes=[nodes[index] for index in held],
        reason=record.reason,
    )


def rounded(found: Any) -> Any:
    """Numbers as they are told, in plain containers: with six decimals, because no moment is known better than a microsecond."""
    if isinstance(found, float):
        return round(found, _DECIMALS)
    if found is None or isinstance(found, str | int):
        return found
    if isinstance(found, list):
        return [rounded(each) for each in found]
    if isinstance(found, msgspec.Struct):
        found = msgspec.to_builtins(found)
    return {key: rounded(value) for key, value in found.items()}


def distribution(values: Iterable[float | None]) -> Distribution:
    """Mean, percentiles and maximum of the values that are known.

    A percentile is a value that occurs: the smallest one to which at least that part of all values is less or equal (nearest rank).
    """
    known = sorted(value for value in values if value is not None)
    count = len(known)
    if not count:
        return Distribution(0, None, None, None, None, None)
    p50, p95, p99 = (known[-(-percent * count // 100) - 1] for percent in _PERCENTILES)
    return Distribution(count, fsum(known) / count, p50, p95, p99, known[-1])
