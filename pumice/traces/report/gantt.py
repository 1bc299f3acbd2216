"""Gantt charts: what ran on which node, and when jobs of which queue waited and ran.

Small runs are drawn bar by bar. Large ones are drawn as cells: a group of rows in a step of time, in the colour of the queue that
ran most there, the darker the more ran.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from pumice.traces.places import PodPlaces
from pumice.traces.records import Past
from pumice.traces.report.charts import BOTTOM, TOP, Chart, ChartAxis, Mark, time_axis
from pumice.traces.report.curves import COLOURS, Span

_BARS = 1500
_LANES = 320
"""Most bars, and places on which they lie, that are drawn one by one."""
_ROWS = 48
_STEPS = 160
"""Rows and steps of time of a chart of cells."""
_LEVELS = 5
_ROW = 12
"""Height of a row of cells, and least height of a row with a name."""
_LANE = 5


@dataclass(slots=True)
class _Bar:
    row: int
    lane: int
    lanes: int
    start: float
    end: float
    queue: str
    is_wait: bool = False


def by_node(past: Past, span: Span, ranks: dict[str, int]) -> Chart:
    """What ran on each node.

    Args:
        past: The run.
        span: Begin and end of the axis.
        ranks: Rank of each queue.
    """
    places = PodPlaces(past)
    chart = Chart("nodes", "Nodes", "Pods on each node over time, in the colour of their queue.")
    bars = [*_on_nodes(past, places, span)]
    rows = [max(count, 1) for count in places.counts]
    if len(bars) <= _BARS and sum(rows) <= _LANES:
        _draw_bars(chart, past.nodes, rows, bars, span, ranks)
    else:
        _draw_cells(chart, past.nodes, [float(count) for count in places.counts], bars, span, ranks)
    return chart


def by_queue(past: Past, span: Span, ranks: dict[str, int]) -> Chart:
    """When the jobs of each queue waited and ran.

    Args:
        past: The run.
        span: Begin and end of the axis.
        ranks: Rank of each queue.
    """
    names = sorted({record.job.queue for record in past.jobs}, key=ranks.__getitem__)
    if len(names) > _ROWS:
        names = [*names[: _ROWS - 1], "other queues"]
    chart = Chart(
        "queues",
        "Queues",
        "Jobs of each queue over time: thin while they wait, thick while they run.",
    )
    rows = {queue: min(ranks[queue], len(names) - 1) for queue in ranks}
    lanes, bars = _in_lanes(past, rows, len(names), span)
    if len(bars) <= _BARS and sum(lanes) <= _LANES:
        _draw_bars(chart, names, lanes, bars, span, ranks)
        return chart
    chart.text = "Pods of each queue over time: the darker, the more ran, compared with the most of that queue."
    running = [
        _Bar(
            rows[record.job.queue],
            0,
            runs.pods,
            runs.start,
            span[1] if runs.end is None else runs.end,
            record.job.queue,
        )
        for record in past.jobs
        for runs in record.runs
    ]
    _draw_cells(chart, names, [0.0] * len(names), running, span, ranks)
    return chart


def _on_nodes(past: Past, places: PodPlaces, span: Span) -> Iterator[_Bar]:
    for number, record in enumerate(past.jobs):
        for index, runs in enumerate(record.runs):
            end = span[1] if runs.end is None else runs.end
            held = sorted(places.of(number, index))
            first = 0
            for at, place in enumerate(held):
                if at + 1 == len(held) or held[at + 1] != place + 1:
                    yield _Bar(
                        runs.node, held[first], at + 1 - first, runs.start, end, record.job.queue
                    )
                    first = at + 1


def _in_lanes(
    past: Past, rows: dict[str, int], count: int, span: Span
) -> tuple[list[int], list[_Bar]]:
    """Each job in the free lane of its queue with the lowest number."""
    free: list[list[int]] = [[] for _ in range(count)]
    busy: list[list[tuple[float, int]]] = [[] for _ in range(count)]
    lanes = [0] * count
    bars = []
    for record in sorted(past.jobs, key=lambda each: each.job.submit):
        if record.outcome in ("Refused", "Unreached"):
            continue
        job, row = record.job, rows[record.job.queue]
        while busy[row] and busy[row][0][0] <= job.submit:
            heappush(free[row], heappop(busy[row])[1])
        if not free[row]:
            free[row].append(lanes[row])
            lanes[row] += 1
        lane = heappop(free[row])
        end = span[1] if record.end is None else record.end
        start = end if record.start is None else record.start
        heappush(busy[row], (end, lane))
        bars.append(_Bar(row, lane, 1, job.submit, start, job.queue, is_wait=True))
        bars.append(_Bar(row, lane, 1, start, end, job.queue))
    return [max(each, 1) for each in lanes], bars


def _draw_bars(
    chart: Chart,
    names: list[str],
    lanes: list[int],
    bars: list[_Bar],
    span: Span,
    ranks: dict[str, int],
) -> None:
    axis, chart.across = time_axis(*span)
    heights = [max(count * _LANE, _ROW) for count in lanes]
    tops = [float(TOP)]
    for row in heights:
        tops.append(tops[-1] + row + 2)
    chart.height = int(tops[-1]) + BOTTOM
    chart.up = [
        (top + height / 2, name) for top, height, name in zip(tops, heights, names, strict=False)
    ]
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for bar in bars:
        lane = heights[bar.row] / lanes[bar.row]
        height: float = bar.lanes * lane
        top = tops[bar.row] + bar.lane * lane
        if bar.is_wait:
            top, height = top + height * 0.4, height * 0.2
        else:
            height = max(height - 0.6, 0.6)
        paths[_colour(bar.queue, ranks)].append(_box(axis, bar, top, height))
    _add_paths(chart, paths, ranks)


def _draw_cells(
    chart: Chart,
    names: list[str],
    places: list[float],
    bars: list[_Bar],
    span: Span,
    ranks: dict[str, int],
) -> None:
    """Draw cells.

    Args:
        chart: Where to.
        names: Of the rows.
        places: What each row has room for; 0 if its fullest cell counts.
        bars: What ran.
        span: Begin and end of the axis.
        ranks: Rank of each queue.
    """
    axis, chart.across = time_axis(*span)
    joined = -(-len(names) // _ROWS)
    count = -(-len(names) // joined)
    width = (axis.high - axis.low) / _STEPS
    busy = _busy(bars, joined, span[0], width)
    room = [width * sum(places[row * joined : (row + 1) * joined]) for row in range(count)]
    for (row, _), queues in busy.items():
        if not any(places):
            room[row] = max(room[row], sum(queues.values()))
    chart.height = TOP + count * _ROW + BOTTOM
    chart.up = [
        (TOP + row * _ROW + _ROW / 2, names[row * joined])
        for row in range(0, count, 1 if joined == 1 else 4)
    ]
    if joined > 1:
        chart.note = (
            f"Each row is {joined} nodes, named after the first; the darker, the more pods ran."
        )
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for row, first, last, style in _joined_cells(busy, room, ranks):
        left, right = axis.at(span[0] + first * width), axis.at(span[0] + last * width)
        top = TOP + row * _ROW
        paths[style].append(f"M{left:.1f} {top}H{right:.1f}v{_ROW - 1}H{left:.1f}z")
    _add_paths(chart, paths, ranks)


def _busy(
    bars: Iterable[_Bar], joined: int, begin: float, width: float
) -> dict[tuple[int, int], dict[str, float]]:
    """Pod seconds of each queue, by row and step of time."""
    busy: dict[tuple[int, int], dict[str, float]] = {}
    for bar in bars:
        row = bar.row // joined
        first = max(int((bar.start - begin) / width), 0)
        last = min(int((bar.end - begin) / width), _STEPS - 1)
        for step in range(first, last + 1):
            low = begin + step * width
            seconds = min(bar.end, low + width) - max(bar.start, low)
            if seconds > 0:
                queues = busy.setdefault((row, step), {})
                queues[bar.queue] = queues.get(bar.queue, 0.0) + seconds * bar.lanes
    return busy


def _joined_cells(
    busy: dict[tuple[int, int], dict[str, float]], room: list[float], ranks: dict[str, int]
) -> Iterator[tuple[int, int, int, str]]:
    """Row, first step, step after the last, and style of neighbours that look the same."""
    row, first, last, style = -1, 0, 0, ""
    for (at, step), queues in sorted(busy.items()):
        most = max(queues, key=lambda queue: (queues[queue], -ranks[queue]))
        part = sum(queues.values()) / room[at] if room[at] else 1.0
        looks = f"{_colour(most, ranks)} l{min(max(round(part * _LEVELS), 1), _LEVELS)}"
        if (at, step, looks) == (row, last, style):
            last += 1
            continue
        if style:
            yield row, first, last, style
        row, first, last, style = at, step, step + 1, looks
    if style:
        yield row, first, last, style


def _add_paths(chart: Chart, paths: dict[str, list[str]], ranks: dict[str, int]) -> None:
    chart.marks = [Mark(f"area {style}", "".join(parts)) for style, parts in sorted(paths.items())]
    chart.legend = [(f"c{rank}", queue) for queue, rank in ranks.items() if rank < COLOURS]
    if len(ranks) > COLOURS:
        chart.legend.append(("rest", f"{len(ranks) - COLOURS} other queues"))


def _box(axis: ChartAxis, bar: _Bar, top: float, height: float) -> str:
    left, right = axis.at(bar.start), axis.at(bar.end)
    return f"M{left:.1f} {top:.1f}H{max(right, left + 0.3):.1f}v{height:.1f}H{left:.1f}z"


def _colour(queue: str, ranks: dict[str, int]) -> str:
    return f"c{ranks[queue]}" if ranks[queue] < COLOURS else "rest"
