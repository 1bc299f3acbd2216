"""Sums over time without rounding.

Moments are floats, and each float is a whole number divided by a power of two. So there is a scale on which all moments of a run are
whole numbers: ticks. Amounts are whole milli-units, and integrals of them over ticks are, too. A measure is one division at the
end, which Python rounds correctly, so it does not depend on the order of a sum.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import mul


class Ticks:
    """A scale on which given moments are whole numbers.

    Attributes:
        second: Ticks of a second, a power of two.
    """

    def __init__(self, moments: Iterable[float]) -> None:
        """The scale for these moments.

        Args:
            moments: All moments and lengths of time that are to be converted.
        """
        self.second = max((moment.as_integer_ratio()[1] for moment in moments), default=1)

    def of(self, moment: float) -> int:
        """A moment in ticks."""
        numerator, denominator = moment.as_integer_ratio()
        return numerator * (self.second // denominator)

    def seconds(self, ticks: int) -> float:
        """Ticks in seconds."""
        return ticks / self.second


class Period:
    """The period that is measured, cut into the steps of samples.

    Attributes:
        lengths: The ticks within the period for which each sample holds.
    """

    def __init__(self, ticks: Ticks, moments: Sequence[float], begin: float, end: float) -> None:
        """Cut a period.

        Args:
            ticks: The scale.
            moments: When samples were taken, ascending; the last one holds until the end.
            begin: Begin of the period.
            end: Its end.
        """
        first, last = ticks.of(begin), ticks.of(end)
        cuts = [min(max(ticks.of(each), first), last) for each in moments]
        self.lengths = [after - before for before, after in pairwise([*cuts, last])]

    def integral(self, column: Iterable[int]) -> int:
        """The sum of a column's values, each multiplied by the ticks for which it holds."""
        return sum(map(mul, column, self.lengths))
