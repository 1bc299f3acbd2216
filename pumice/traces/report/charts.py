"""What a chart is made of: axes, marks and a legend, in the coordinates of its SVG.

The template writes the SVG, so that every text is escaped there.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pumice.api.durations import human_duration

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 110, 12, 10, 26
"""Space around the drawing: names of rows on the left, times below."""

POINTS = 400
"""Most points of a line: about as many as pixels that a reader can tell apart."""

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_DAY = 86400


@dataclass
class Mark:
    """A path of a chart.

    Attributes:
        style: Classes of CSS.
        path: Its `d`.
    """

    style: str
    path: str


@dataclass
class Chart:
    """A chart.

    Attributes:
        name: Part of ids in the page.
        title: Its heading.
        text: What it shows, for those who do not see it.
        height: Height of the SVG; its width is always the same.
        across: Positions and labels of the horizontal axis.
        up: Positions and labels of the vertical axis.
        marks: What is drawn, in order.
        legend: Classes of CSS and what they stand for.
        note: A remark below the chart.
    """

    name: str
    title: str
    text: str
    height: int = HEIGHT
    across: list[tuple[float, str]] = field(default_factory=list)
    up: list[tuple[float, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
    note: str = ""


class ChartAxis:
    """A linear scale from values to positions, the same in all runs."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        """A scale.

        Args:
            low: Least value.
            high: Greatest value.
            first: Position of the least value.
            last: Position of the greatest one.
        """
        self.low = low
        self.high = high if high > low else low + 1.0
        self._first = first
        self._factor = (last - first) / (self.high - low)

    def at(self, value: float) -> float:
        """The position of a value."""
        return self._first + (value - self.low) * self._factor

    def all_at(self, values: Floats) -> Floats:
        """The positions of values."""
        return self._first + (values - self.low) * self._factor


def time_axis(begin: float, end: float) -> tuple[ChartAxis, list[tuple[float, str]]]:
    """The horizontal axis of time, and its labels."""
    axis = ChartAxis(begin, end, LEFT, WIDTH - RIGHT)
    span = axis.high - axis.low
    step = next((each for each in _STEPS if span / each <= 8), None)
    if step is None:
        step = _DAY * math.ceil(span / _DAY / 8)
    first = math.ceil(axis.low / step)
    times = [number * step for number in range(first, math.floor(axis.high / step) + 1)]
    return axis, [(axis.at(each), human_duration(each)) for each in times]


def level_axis(most: float, *, percent: bool = False) -> tuple[ChartAxis, list[tuple[float, str]]]:
    """The vertical axis from 0, and its labels."""
    axis = ChartAxis(0.0, 1.0 if percent else most, HEIGHT - BOTTOM, TOP)
    if percent:
        return axis, [(axis.at(part), f"{part:.0%}") for part in (0, 0.25, 0.5, 0.75, 1)]
    levels = {0, round(axis.high / 2, 2), axis.high}
    return axis, [(axis.at(level), f"{level:g}") for level in sorted(levels)]


def steps(
    moments: Sequence[float], columns: Iterable[Floats], begin: float, end: float
) -> tuple[Floats, list[Floats]]:
    """Edges of time, and the values of columns between them: as sampled, or means if these are too many.

    Args:
        moments: When the samples were taken; each holds until the next one, the last until the end.
        columns: Their values.
        begin: First edge.
        end: Last edge.
    """
    end = max(end, begin + 1e-9)
    taken = np.asarray(moments, dtype=np.float64)
    if not len(taken):
        return np.array([begin, end]), [np.zeros(1) for _ in columns]
    edges = np.clip(np.append(taken, end), begin, end)
    if len(taken) <= POINTS:
        return edges, [*columns]
    lengths = np.diff(edges)
    bins = np.linspace(begin, end, POINTS + 1)
    means = []
    for column in columns:
        integral = np.concatenate([[0.0], np.cumsum(column * lengths)])
        means.append(np.diff(np.interp(bins, edges, integral)) / np.diff(bins))
    return bins, means


def line(across: Floats, up: Floats) -> str:
    """The path of a line in steps.

    Args:
        across: Positions of the edges, one more than levels.
        up: Positions of the levels.
    """
    parts = [f"M{_short(across[0])} {_short(up[0])}"] if len(up) else []
    for index in range(len(up)):
        if index and up[index] != up[index - 1]:
            parts.append(f"V{_short(up[index])}")
        if index + 1 == len(up) or up[index + 1] != up[index]:
            parts.append(f"H{_short(across[index + 1])}")
    return "".join(parts)


def area(across: Floats, low: Floats, high: Floats) -> str:
    """The path of the area between two lines in steps."""
    back = line(across[::-1], low[::-1])
    return f"{line(across, high)}{back.replace('M', 'L', 1)}Z" if back else ""


def _short(position: float) -> str:
    return f"{position:.1f}".removesuffix(".0")
