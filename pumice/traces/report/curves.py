"""Charts of columns over time, and of the distribution of waits."""

from array import array
from collections.abc import Iterable, Mapping
from math import log10

import numpy as np

from pumice.traces.measures import Measures
from pumice.traces.records import Past, Samples
from pumice.traces.report.charts import (
    HEIGHT,
    LEFT,
    POINTS,
    RIGHT,
    WIDTH,
    Chart,
    ChartAxis,
    Floats,
    Mark,
    area,
    level_axis,
    line,
    steps,
    time_axis,
)

COLOURS = 8
"""Colours of lines and bars; what is beyond them is drawn as one, in grey."""

_WAITS = ((0, "0"), (1, "1s"), (10, "10s"), (60, "1m"), (600, "10m"), (3600, "1h"))
_LONG_WAITS = ((36_000, "10h"), (86_400, "1d"), (864_000, "10d"), (8_640_000, "100d"))

Span = tuple[float, float]


def queue_ranks(pasts: Iterable[Past]) -> dict[str, int]:
    """Queues by the pod seconds that their jobs ran, the largest first, so that a queue has one colour in all charts."""
    ran: dict[str, float] = {}
    for past in pasts:
        for record in past.jobs:
            queue = record.job.queue
            ran.setdefault(queue, 0.0)
            for runs in record.runs:
                ran[queue] += runs.pods * (
                    (past.end if runs.end is None else runs.end) - runs.start
                )
    ordered = sorted(ran, key=lambda queue: (-ran[queue], queue))
    return {queue: rank for rank, queue in enumerate(ordered)}


def utilization(past: Past, span: Span) -> Chart:
    """Utilization of each resource over time."""
    samples = past.samples
    resources = past.resources[:COLOURS]
    columns = [
        _part(samples.used, samples.capacity, each, len(samples.moments)) for each in resources
    ]
    chart = _over_time("utilization", "Utilization", span)
    chart.text = "Part of each resource that pods hold, over time."
    level, chart.up = level_axis(1, percent=True)
    edges, values = steps(samples.moments, columns, *span)
    across = time_axis(*span)[0].all_at(edges)
    for number, (resource, column) in enumerate(zip(resources, values, strict=True)):
        chart.marks.append(
            Mark(f"line c{number}", line(across, level.all_at(np.minimum(column, 1))))
        )
        chart.legend.append((f"c{number}", resource))
    return chart


def waiting(past: Past, span: Span, most: float) -> Chart:
    """Number of gangs that wait, by their reason.

    Args:
        past: The run.
        span: Begin and end of the axis.
        most: Greatest number of gangs in any run.
    """
    samples = past.samples
    columns = {cause: np.asarray(column, np.float64) for cause, column in samples.waiting.items()}
    ordered = sorted(columns, key=lambda cause: (-columns[cause].sum(), cause))
    shown = [(cause, columns[cause]) for cause in ordered[: COLOURS - 1]]
    if rest := ordered[COLOURS - 1 :]:
        shown.append(("other reasons", np.sum([columns[cause] for cause in rest], axis=0)))
    chart = _over_time("waiting", "Gangs that wait", span)
    chart.text = "Number of gangs that wait over time, one on top of the other by their reason."
    level, chart.up = level_axis(most)
    edges, values = steps(samples.moments, [column for _, column in shown], *span)
    across = time_axis(*span)[0].all_at(edges)
    below: Floats = np.zeros(len(edges) - 1)
    for number, ((cause, _), column) in enumerate(zip(shown, values, strict=True)):
        path = area(across, level.all_at(below), level.all_at(below + column))
        chart.marks.append(Mark(f"area c{number}", path))
        chart.legend.append((f"c{number}", cause))
        below = below + column
    return chart


def waits(measures: Measures, longest: float) -> Chart:
    """The distribution of waits: which part of the jobs started within a time.

    Args:
        measures: The numbers of the run.
        longest: Longest wait in any run, in seconds.
    """
    axis = ChartAxis(0.0, log10(1 + max(longest, 1.0)), LEFT, WIDTH - RIGHT)
    level, up = level_axis(1, percent=True)
    labels = [(time, text) for time, text in (*_WAITS, *_LONG_WAITS) if time <= max(longest, 1.0)]
    chart = Chart(
        "waits",
        "Waits",
        "Part of the jobs that started within a time (cumulative distribution); the axis of time is logarithmic.",
        across=[(axis.at(log10(1 + time)), text) for time, text in labels],
        up=up,
    )
    known = sorted(job.wait for job in measures.jobs if job.wait is not None)
    if known:
        count = len(known)
        ranks = sorted({*np.linspace(0, count - 1, min(count, POINTS)).astype(int).tolist()})
        across = [axis.at(log10(1 + max(known[rank], 0.0))) for rank in ranks]
        levels = [0.0, *((rank + 1) / len(measures.jobs) for rank in ranks)]
        edges = np.array([LEFT, *across, WIDTH - RIGHT], dtype=np.float64)
        chart.marks = [Mark("line c0", line(edges, level.all_at(np.array(levels))))]
        chart.legend = [("c0", "jobs that started within the time")]
    return chart


def shares(past: Past, span: Span, ranks: dict[str, int]) -> Chart:
    """Dominant share of each queue over time, and what it deserves.

    Args:
        past: The run.
        span: Begin and end of the axis.
        ranks: Rank of each queue.
    """
    samples = past.samples
    names = sorted(samples.queues, key=lambda name: (ranks.get(name, len(ranks)), name))[:COLOURS]
    columns = [_dominant(samples, samples.queues[name].used) for name in names]
    deserved = [
        (number, _dominant(samples, samples.queues[name].deserved))
        for number, name in enumerate(names)
        if samples.queues[name].deserved
    ]
    chart = _over_time("shares", "Shares of queues", span)
    chart.text = "Largest part of any resource that a queue's pods hold, over time; broken lines show what it deserves."
    level, chart.up = level_axis(1, percent=True)
    edges, values = steps(samples.moments, [*columns, *(column for _, column in deserved)], *span)
    across = time_axis(*span)[0].all_at(edges)
    paths = [line(across, level.all_at(np.minimum(column, 1))) for column in values]
    for number, name in enumerate(names):
        chart.marks.append(Mark(f"line c{number}", paths[number]))
        chart.legend.append((f"c{number}", name))
    for (number, _), path in zip(deserved, paths[len(names) :], strict=True):
        chart.marks.append(Mark(f"line deserved c{number}", path))
    if len(samples.queues) > COLOURS:
        chart.note = f"The {COLOURS} queues that ran most, of {len(samples.queues)}."
    return chart


def _over_time(name: str, title: str, span: Span) -> Chart:
    return Chart(name, title, "", HEIGHT, time_axis(*span)[1])


def _part(
    amounts: Mapping[str, "array[int]"],
    wholes: Mapping[str, "array[int]"],
    resource: str,
    count: int,
) -> Floats:
    if resource not in amounts or resource not in wholes:
        return np.zeros(count)
    amount, whole = (np.asarray(each[resource], np.float64) for each in (amounts, wholes))
    return np.divide(amount, whole, out=np.zeros(count), where=whole > 0)


def _dominant(samples: Samples, amounts: Mapping[str, "array[int]"]) -> Floats:
    count = len(samples.moments)
    parts = [_part(amounts, samples.capacity, resource, count) for resource in amounts]
    return np.max(parts, axis=0) if parts else np.zeros(count)
