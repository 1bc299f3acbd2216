"""Two SWF files of a real study, those of the package `evalys`: unsorted lines, and times with fractions of seconds."""

from importlib.metadata import files
from math import fsum
from pathlib import Path

import pytest

from pumice.traces.formats import read_trace


def swf(name: str) -> Path:
    """A file of the package."""
    (found,) = (each for each in files("evalys") or () if each.name == f"{name}.swf")
    return Path(str(found.locate()))


@pytest.mark.parametrize("name", ["easy_mediumWL_smallPF", "filler_mediumWL_smallPF"])
def test_all_of_it_is_read(name: str) -> None:
    """The numbers are those of `awk '{p += $5; w += $4 * $5; l += $4} END {print NR, p, w, l}'`."""
    path = swf(name)
    trace = read_trace([(path.name, path.read_bytes())])
    jobs = trace.jobs
    assert (trace.lines, len(jobs), trace.skipped, trace.remarks) == (800, 800, [], [])
    assert sum(job.replicas for job in jobs) == 2179
    assert fsum((job.duration or 0) * job.replicas for job in jobs) == pytest.approx(256361.954)
    assert fsum(job.duration or 0 for job in jobs) == pytest.approx(121191.497)
    assert (jobs[0].name, jobs[-1].submit) == ("0", 10759.738951)
    assert [int(job.name) for job in jobs] == sorted(int(job.name) for job in jobs)
    assert all(job.min == job.replicas and job.requests == {"cpu": "1"} for job in jobs)
    assert jobs[1].scheduled == pytest.approx(4.709164 + (0.005 if "filler" in name else 0))
