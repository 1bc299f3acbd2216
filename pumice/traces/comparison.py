"""One trace in two runs: what differs.

A difference is the other run's number without the base's; None where one of them has none.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pumice.traces.job_measures import JobMeasures, rounded
from pumice.traces.measures import Measures

_MOST = 10
"""Jobs that are listed as gaining, and as losing, most."""

_NOT_COMPARED = ("cost", "is_whole")
"""Parts of the summary that are not numbers of the simulated cluster, or not the same each time."""


class ChangedJob(msgspec.Struct):
    """A job whose turnaround differs.

    Attributes:
        name: The job.
        namespace: Its namespace.
        queue: Its queue.
        base: Its turnaround in the base; None if it was not over.
        other: That in the other run.
        difference: The other without the base; None if one of them has none.
    """

    name: str
    namespace: str
    queue: str
    base: float | None
    other: float | None
    difference: float | None


class Differences(msgspec.Struct):
    """What differs between two runs.

    Attributes:
        summary: Differences of the numbers of the summary.
        gained: Up to ten jobs that were over sooner, the largest gain first.
        lost: Up to ten jobs that were over later, the largest loss first. A job that was over in one run alone comes before all others.
    """

    summary: dict[str, Any]
    gained: list[ChangedJob]
    lost: list[ChangedJob]


def differences(base: Measures, other: Measures) -> Differences:
    """Compare two runs of one trace."""
    summaries = [
        {name: value for name, value in each.summary.items() if name not in _NOT_COMPARED}
        for each in (base, other)
    ]
    changed = [*_changed(base.jobs, other.jobs)]
    return Differences(
        _difference(*summaries),
        _most([each for each in changed if _gain(each) > 0], -1),
        _most([each for each in changed if _gain(each) < 0], 1),
    )


def _difference(base: Any, other: Any) -> Any:
    if isinstance(base, Mapping) or isinstance(other, Mapping):
        names = dict.fromkeys([*(base or {}), *(other or {})])
        return {name: _difference(_part(base, name), _part(other, name)) for name in names}
    return None if base is None or other is None else rounded(other - base)


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _changed(base: Iterable[JobMeasures], other: Iterable[JobMeasures]) -> Iterable[ChangedJob]:
    for one, two in zip(base, other, strict=True):
        before, after = one.turnaround, two.turnaround
        if before != after:
            difference = _difference(before, after)
            yield ChangedJob(one.name, one.namespace, one.queue, before, after, difference)


def _gain(job: ChangedJob) -> float:
    if job.difference is not None:
        return -job.difference
    return float("inf") if job.base is None else float("-inf")


def _most(jobs: list[ChangedJob], sign: int) -> list[ChangedJob]:
    """Those that changed most; of equal ones, the earlier submitted come first."""
    return sorted(jobs, key=lambda job: sign * _gain(job))[:_MOST]
