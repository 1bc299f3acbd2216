"""What is measured of a run as a whole. docs/simulation.md defines every number and names its source.

Sums over time are exact. Moments are floats, and each float is a whole number divided by a power of two. So there is a scale on which all moments of a run are
whole numbers: ticks. Amounts are whole milli-units, and integrals of them over ticks are, too. A measure is one division at the
end, which Python rounds correctly, so it does not depend on the order of a sum. Only then is it rounded to the decimals that are told.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import compress, pairwise
from math import inf
from operator import mul
from typing import Any, get_args

import numpy as np

from pumice.traces.job_measures import (
    Distribution,
    JobMeasures,
    distribution,
    measured_jobs,
    rounded,
)
from pumice.traces.records import JobRecord, Outcome, Past, QueueSamples

_MILLI_HOUR = 1000 * 3600
_OVER: tuple[Outcome, ...] = ("Completed", "Failed", "Refused")
_NOT_TAKEN: tuple[Outcome, ...] = ("Refused", "Unreached")


class Measures:
    """The numbers of a run.

    Attributes:
        jobs: Those of each job, in the order of their submission.
        summary: Those of the whole, as the JSON has them: plain data.
    """

    def __init__(self, jobs: list[JobMeasures], summary: dict[str, Any]) -> None:
        self.jobs = jobs
        self.summary = summary


def measure(past: Past) -> Measures:
    """Measure a run. Numbers are rounded here, so that all that is told, compared or tested is made of the same ones."""
    jobs = measured_jobs(past)
    summary = _Summary(past, jobs).numbers()
    return Measures([JobMeasures(**rounded(job)) for job in jobs], rounded(summary))


def measured_period(past: Past) -> tuple[float, float]:
    """From the first submission until the last job was over; if some are not, until the end of the run."""
    begin = min((record.job.submit for record in past.jobs), default=0.0)
    ends = [record.end for record in past.jobs if record.end is not None]
    if ends and all(record.outcome in _OVER for record in past.jobs):
        return begin, max(ends)
    return begin, max(past.end, begin)


def size_class(replicas: int) -> int:
    """The smallest power of two that is not less than the number of pods."""
    return 1 << max(replicas - 1, 0).bit_length()


class _Summary:
    """Computes the numbers of a run."""

    def __init__(self, past: Past, jobs: list[JobMeasures]) -> None:
        self._past = past
        self._jobs = jobs
        self._begin, self._end = measured_period(past)
        self._ticks = Ticks(self._lengths_of_time())
        samples = past.samples
        self._period = Period(self._ticks, samples.moments, self._begin, self._end)
        self._capacity = {
            resource: self._period.integral(samples.capacity.get(resource, ()))
            for resource in past.resources
        }
        self._work = [self._ticks_of_pods(record) for record in past.jobs]

    def _lengths_of_time(self) -> Iterator[float]:
        yield from self._past.samples.moments
        yield from (self._begin, self._end)
        for record in self._past.jobs:
            yield from (record.job.submit, *record.lost.values())
            if record.end is not None:
                yield record.end
            for runs in record.runs:
                yield runs.start
                if runs.end is not None:
                    yield runs.end

    def numbers(self) -> dict[str, Any]:
        """The numbers, in the order of the JSON."""
        past, jobs = self._past, self._jobs
        counts = Counter(record.outcome for record in past.jobs)
        last = max((job.end for job in jobs if job.end is not None), default=None)
        return {
            "jobs": {outcome.lower(): counts[outcome] for outcome in get_args(Outcome)},
            "is_whole": past.is_whole,
            "makespan": None if last is None else last - self._begin,
            "utilization": self._of_capacity(past.samples.used),
            "fragmentation": self._of_capacity(past.samples.unusable),
            "goodput": self._goodput(),
            "wait": distribution(job.wait for job in jobs),
            "turnaround": distribution(job.turnaround for job in jobs),
            "slowdown": distribution(job.slowdown for job in jobs),
            "bounded_slowdown": distribution(job.bounded_slowdown for job in jobs),
            "wait_by": {
                "queue": self._wait_by(lambda record: record.job.queue),
                "size": self._wait_by(lambda record: str(size_class(record.job.replicas))),
                "priority": self._wait_by(lambda record: str(record.job.priority)),
            },
            "jain": self._jain(),
            "below_deserved": {
                queue: self._ticks.seconds(self._ticks_below(samples))
                for queue, samples in sorted(past.samples.queues.items())
                if samples.deserved
            },
            "evictions": sum(record.evictions for record in past.jobs),
            "broken_gangs": sum(record.broken for record in past.jobs),
            "lost_hours": self._lost_hours(),
            "skipped": past.skipped,
            "cost": {"cycles": past.cycles, "decision_seconds": past.decision_seconds},
        }

    def _of_capacity(self, columns: dict[str, Any]) -> dict[str, float | None]:
        return {
            resource: _ratio(self._period.integral(columns.get(resource, ())), capacity)
            for resource, capacity in self._capacity.items()
        }

    def _ticks_of_pods(self, record: JobRecord) -> dict[int, int]:
        """Ticks that pods of each task of a job ran within the period, without what was lost."""
        ticks = self._ticks
        last = ticks.of(self._end)
        found = {task: -ticks.of(lost) for task, lost in record.lost.items()}
        for runs in record.runs:
            end = last if runs.end is None else min(ticks.of(runs.end), last)
            ran = runs.pods * max(end - ticks.of(runs.start), 0)
            found[runs.task] = found.get(runs.task, 0) + ran
        return found

    def _goodput(self) -> dict[str, float | None]:
        useful: Counter[str] = Counter()
        for record, work in zip(self._past.jobs, self._work, strict=True):
            if record.outcome != "Failed":
                _add_held(useful, record, work)
        return {
            resource: _ratio(useful[resource], capacity)
            for resource, capacity in self._capacity.items()
        }

    def _lost_hours(self) -> dict[str, float]:
        lost: Counter[str] = Counter()
        for record in self._past.jobs:
            _add_held(
                lost, record, {task: self._ticks.of(each) for task, each in record.lost.items()}
            )
        whole = self._ticks.second * _MILLI_HOUR
        return {resource: lost[resource] / whole for resource in self._capacity}

    def _wait_by(self, key: Callable[[JobRecord], str]) -> dict[str, Distribution]:
        groups: defaultdict[str, list[float | None]] = defaultdict(list)
        for record, job in zip(self._past.jobs, self._jobs, strict=True):
            groups[key(record)].append(job.wait)
        return {each: distribution(groups[each]) for each in sorted(groups, key=_numbers_first)}

    def _jain(self) -> float | None:
        """Jain's index of the tenants' normalised service.

        Source: Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
        Computer Systems, DEC-TR-301, 1984.
        """
        served: Counter[tuple[bool, str]] = Counter()
        present: Counter[tuple[bool, str]] = Counter()
        for record, work in zip(self._past.jobs, self._work, strict=True):
            if record.outcome in _NOT_TAKEN:
                continue
            job = record.job
            end = self._end if record.end is None else record.end
            tenant = bool(job.user), job.user or job.queue  # of one name they are not the same
            present[tenant] += job.replicas * (self._ticks.of(end) - self._ticks.of(job.submit))
            lost = sum(map(self._ticks.of, record.lost.values()))
            served[tenant] += sum(work.values()) + lost
        shares = [Fraction(served[tenant], ticks) for tenant, ticks in present.items() if ticks > 0]
        squares = sum(share * share for share in shares)
        return float(sum(shares) ** 2 / (len(shares) * squares)) if squares else None

    def _ticks_below(self, samples: QueueSamples) -> int:
        """Ticks in which a queue with a waiting gang had less than it deserves of every resource."""
        below = np.asarray(samples.waiting) > 0
        deserves = np.zeros(len(below), dtype=bool)
        for resource, column in samples.deserved.items():
            most = np.asarray(column)
            below &= (np.asarray(samples.used.get(resource, 0)) < most) | (most == 0)
            deserves |= most > 0
        return sum(compress(self._period.lengths, (below & deserves).tolist()))


def _add_held(held: Counter[str], record: JobRecord, ticks: Mapping[int, int]) -> None:
    """Add what pods of a job held for some ticks of each of its tasks, by resource."""
    for task, each in ticks.items():
        for resource, amount in record.requests[task].items():
            held[resource] += amount * each


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _numbers_first(name: str) -> tuple[float, str]:
    try:
        return int(name), name
    except ValueError:
        return inf, name


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
