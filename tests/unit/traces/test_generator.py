"""Drawn traces: the same for a seed, and distributed as they say."""

import hashlib
from statistics import mean, median
from typing import Any

import msgspec
import pytest

from pumice.cli.trace import TraceFigures
from pumice.traces.formats import read_trace
from pumice.traces.generator import DAY, TraceShape, generated
from pumice.traces.trace import TraceError


def shape(**figures: Any) -> TraceShape:
    """A trace with the figures of the command line, except for some."""
    return TraceShape(**{"seed": 0} | msgspec.structs.asdict(TraceFigures()) | figures)


def test_a_seed_gives_the_same_trace_everywhere() -> None:
    """The digest was made once; another processor or version of NumPy that gave another trace would show here."""
    lines = b"\n".join(map(msgspec.json.encode, generated(shape(jobs=200, seed=7))))
    assert hashlib.sha256(lines).hexdigest()[:16] == "fc63a36c9764135e"
    assert lines.count(b"\n") == 199
    others = b"\n".join(map(msgspec.json.encode, generated(shape(jobs=200, seed=8))))
    assert others != lines


def test_it_is_distributed_as_it_says() -> None:
    """Bounds are five standard deviations of a correct generator."""
    busy = shape(jobs=8000, seed=1, hopeless=0.01, urgent=0.2, failing=0.1, elastic=0.3)
    drawn = list(generated(busy))
    jobs = read_trace(
        [("t", b"\n".join(map(msgspec.json.encode, drawn)))],
    ).jobs
    assert [job.name for job in jobs] == [each["name"] for each in drawn]  # in order, and unique
    assert 0 < jobs[0].submit < jobs[-1].submit < 7 * DAY
    hours = [sum(int(job.submit % DAY // 3600) == hour for job in jobs) for hour in range(24)]
    assert sum(hours[11:17]) > 1.5 * sum(hours[:6])  # the daily wave
    assert mean(job.replicas for job in jobs) == pytest.approx(4, rel=0.1)
    assert {job.replicas for job in jobs} == {1 << power for power in range(7)}
    whole = [job.duration or 0 for job in jobs if not job.fails]
    assert median(whole) == pytest.approx(2400, rel=0.1)
    assert max(whole) <= 2 * DAY
    tenants = [sum(job.user == f"tenant-{n}" for job in jobs) for n in (1, 2, 4)]
    assert tenants[0] / tenants[1] == pytest.approx(2, rel=0.2)
    assert tenants[0] / tenants[2] == pytest.approx(4, rel=0.3)
    assert {job.queue for job in jobs} == {f"queue-{n}" for n in range(1, 5)}
    assert mean(job.fails for job in jobs) == pytest.approx(0.1, rel=0.2)
    assert mean(job.priority == 100 for job in jobs) == pytest.approx(0.2, rel=0.15)
    assert mean(job.min < job.replicas for job in jobs if job.replicas > 1) == pytest.approx(
        0.3, rel=0.2
    )
    hopeless = [job for job in jobs if job.requests["nvidia.com/gpu"] == "64"]
    assert 40 < len(hopeless) < 130
    eight = [job for job in jobs if job.requests["nvidia.com/gpu"] == "8"]
    assert len(eight) / len(jobs) == pytest.approx(0.1, rel=0.2)
    assert eight[0].requests == {"cpu": "32000m", "memory": "196608Mi", "nvidia.com/gpu": "8"}


def test_extremes() -> None:
    assert list(generated(shape(jobs=0))) == []
    (alone,) = generated(shape(jobs=1, pods=1, most_pods=1, tenants=1, queues=1))
    assert alone["replicas"] == 1
    (all_gone,) = generated(shape(jobs=1, gpus=(0,), gpu_weights=(1,), memory=0))
    assert all_gone["requests"] == {"cpu": "4000m"}
    assert list(generated(shape(jobs=1, hopeless=0, memory=20_000)))  # no pod has --hopeless-gpus
    for wrong, why in (
        ({"gpus": (1, 2), "gpu_weights": (1,)}, "--gpu-weights: expected one for each"),
        ({"gpus": (1,), "gpu_weights": (0,)}, "--gpu-weights: expected one above 0"),
        ({"pods": 65}, "--pods: expected at most 64, the largest power of two up to --most-pods"),
        ({"pods": 2.5, "most_pods": 3}, "--pods: expected at most 2, the largest"),
        ({"memory": 100_000}, "--memory: expected at most 900,000 GiB for all GPUs of a pod"),
        ({"median": 1e9}, "--median: expected at most --longest"),
    ):
        with pytest.raises(TraceError, match=why):
            list(generated(shape(jobs=1, **wrong)))
