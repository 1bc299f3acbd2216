"""Drawn traces: arrivals with a daily wave, log-normal durations, gangs in powers of two, tenants by Zipf, and jobs that fail or never fit.

A seed gives the same trace with every version of NumPy: of it only the raw numbers of PCG64 are used, whose stream never changes, and
every distribution is computed here from uniform numbers.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from pumice.traces.amounts import GPU
from pumice.traces.trace import TraceError

DAY = 86_400.0
_BLOCK = 4096
_STEPS = 50
_MEMORY = 900_000
"""GiB of a pod at most, so that readers of traces take it."""


class TraceShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a drawn trace is like.

    Attributes:
        jobs: Number of jobs.
        seed: Seed of the numbers.
        days: Days over which they are submitted.
        wave: How far the rate of submissions swings around its mean within a day, 0 to 1; it is highest at 14:00.
        median: Median of durations, in seconds.
        spread: Standard deviation of the logarithm of durations.
        longest: Longest duration, in seconds; longer ones are drawn again.
        pods: Mean number of pods of a job.
        most_pods: Most pods of a job.
        gpus: GPUs of one pod.
        gpu_weights: How frequent each of these is.
        cpu: CPUs of a pod for each of its GPUs; of a pod without GPUs, all.
        memory: GiB of memory, likewise.
        tenants: Number of users.
        zipf: Exponent of their shares: the k-th submits in proportion to k to the power of -`zipf`.
        queues: Number of queues; users are dealt out to them.
        urgent: Share of jobs with `priority`.
        priority: Their priority.
        elastic: Share of jobs that run with half of their pods, too.
        failing: Share of jobs that fail, after a part of their duration.
        hopeless: Share of jobs with pods that fit on no node.
        hopeless_gpus: GPUs of such a pod.
    """

    jobs: int
    seed: int
    days: float
    wave: float
    median: float
    spread: float
    longest: float
    pods: float
    most_pods: int
    gpus: tuple[int, ...]
    gpu_weights: tuple[float, ...]
    cpu: float
    memory: float
    tenants: int
    zipf: float
    queues: int
    urgent: float
    priority: int
    elastic: float
    failing: float
    hopeless: float
    hopeless_gpus: int


def generated(shape: TraceShape) -> Iterator[dict[str, Any]]:
    """The jobs of a drawn trace in the order of their submission, in Pumice's own format.

    Raises:
        TraceError: No trace is like this; the message says why.
    """
    _check(shape)
    numbers = _Uniform(shape.seed)
    sizes = _sizes(shape)
    tenants = list(accumulate((k + 1) ** -shape.zipf for k in range(shape.tenants)))
    gpus = list(accumulate(shape.gpu_weights))
    width = len(str(shape.jobs))
    for place, submit in enumerate(_arrivals(shape, numbers), 1):
        tenant = _drawn(tenants, numbers)
        replicas = 1 << _drawn(sizes, numbers)
        devices = shape.gpus[_drawn(gpus, numbers)]
        duration = _duration(shape, numbers)
        is_urgent, is_elastic = numbers.next() < shape.urgent, numbers.next() < shape.elastic
        fails, is_hopeless = numbers.next() < shape.failing, numbers.next() < shape.hopeless
        part = numbers.next()
        job: dict[str, Any] = {
            "name": f"job-{place:0{width}}",
            "submit": round(submit, 3),
            "duration": round(duration * part if fails else duration, 3),
            "queue": f"queue-{tenant % shape.queues + 1}",
            "user": f"tenant-{tenant + 1}",
            "replicas": replicas,
            "requests": _requests(shape, shape.hopeless_gpus if is_hopeless else devices),
        }
        if is_urgent:
            job["priority"] = shape.priority
        if is_elastic and replicas > 1:
            job["min"] = replicas // 2
        if fails:
            job["fails"] = True
        yield job


class _Uniform:
    """Uniform numbers of [0, 1): the upper 53 bits of PCG64's."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.PCG64(seed)
        self._block: list[float] = []

    def next(self) -> float:
        """The next number."""
        if not self._block:
            raw = self._source.random_raw(_BLOCK) >> np.uint64(11)
            self._block = (raw[::-1] * 2.0**-53).tolist()
        return self._block.pop()


def _arrivals(shape: TraceShape, numbers: _Uniform) -> Iterator[float]:
    """Moments of as many submissions: those of a Poisson process, whose rate swings, if it has so many within these days.

    Given their number, the moments of a Poisson process of rate 1 are sums of exponential gaps, scaled to the whole time. Where the
    integrated rate reaches each is found by bisection.
    """
    gaps = [-math.log1p(-numbers.next()) for _ in range(shape.jobs + 1)]
    end = shape.days * DAY
    whole = _expected(end, shape.wave)
    scale = whole / sum(gaps)
    reached = begin = 0.0
    for gap in gaps[:-1]:
        reached += gap * scale
        low, high = begin, end
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if high - low < 1e-4:
                break
            low, high = (middle, high) if _expected(middle, shape.wave) < reached else (low, middle)
        begin = low
        yield low


def _expected(moment: float, wave: float) -> float:
    """The integral of the rate from 0 to a moment; the rate is 1 on average, and highest at 14:00."""
    angle = 2 * math.pi / DAY
    peak = 14 / 24 * DAY
    return moment + wave / angle * (math.sin(angle * (moment - peak)) + math.sin(angle * peak))


def _sizes(shape: TraceShape) -> list[float]:
    """Sums of weights of 1, 2, 4, … pods: powers of the ratio that gives the mean."""
    powers = range(shape.most_pods.bit_length())
    low, high = 0.0, 2.0 * shape.most_pods
    for _ in range(_STEPS * 4):
        ratio = (low + high) / 2
        weights = [ratio**power for power in powers]
        mean = sum(weight * (1 << power) for power, weight in enumerate(weights)) / sum(weights)
        low, high = (ratio, high) if mean < shape.pods else (low, ratio)
    return list(accumulate(low**power for power in powers))


def _drawn(sums: Sequence[float], numbers: _Uniform) -> int:
    """A place among weights, given their sums."""
    return min(bisect(sums, numbers.next() * sums[-1]), len(sums) - 1)


def _duration(shape: TraceShape, numbers: _Uniform) -> float:
    for _ in range(_STEPS):
        radius = math.sqrt(-2 * math.log1p(-numbers.next()))
        normal = radius * math.cos(2 * math.pi * numbers.next())
        if (exponent := shape.spread * normal) < _STEPS:
            duration = shape.median * math.exp(exponent)
            if duration <= shape.longest:
                return duration
    return shape.longest


def _requests(shape: TraceShape, gpus: int) -> dict[str, str]:
    times = max(gpus, 1)
    cpu, memory = round(shape.cpu * times * 1000), round(shape.memory * times * 1024)
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | ({GPU: str(gpus)} if gpus else {})
    return {name: amount for name, amount in amounts.items() if not amount.startswith("0")}


def _check(shape: TraceShape) -> None:
    problems = (
        (
            len(shape.gpus) != len(shape.gpu_weights),
            "--gpu-weights: expected one for each of --gpus",
        ),
        (not sum(shape.gpu_weights) > 0, "--gpu-weights: expected one above 0"),
        (
            shape.pods > (largest := 1 << (shape.most_pods.bit_length() - 1)),
            f"--pods: expected at most {largest}, the largest power of two up to --most-pods",
        ),
        (shape.median > shape.longest, "--median: expected at most --longest"),
        (
            shape.memory * max((*shape.gpus, shape.hopeless_gpus if shape.hopeless else 0))
            > _MEMORY,
            f"--memory: expected at most {_MEMORY:,} GiB for all GPUs of a pod",
        ),
    )
    for is_wrong, why in problems:
        if is_wrong:
            raise TraceError(why)
