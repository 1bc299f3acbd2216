"""The CSV of jobs: read by evalys' rules, and no two jobs have a place at the same time."""

import ast
import csv
import io
from importlib.metadata import files
from itertools import combinations

import pytest

from pumice.traces.jobs_csv import COLUMNS, interval_set, write_jobs
from pumice.traces.measures import measure
from pumice.traces.places import PodPlaces
from pumice.traces.records import Past, PodRuns
from tests.kit.pasts import drawn, nothing, record, small

NUMBERS = COLUMNS[2:-4]
"""Columns that pandas must read as numbers for evalys."""


def written(past: Past) -> list[dict[str, str]]:
    file = io.StringIO()
    write_jobs(file, past, measure(past).jobs)
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def places(text: str) -> set[int]:
    """A set of intervals as `ProcSet.from_str` of procset 1.0 reads it."""
    found: set[int] = set()
    for span in text.split(" ") if text else []:
        bounds = [int(bound) for bound in span.split("-")]
        assert len(bounds) <= 2
        assert bounds == sorted(bounds)
        found |= {*range(bounds[0], bounds[-1] + 1)}
    return found


def test_a_small_run_is_written_as_by_hand() -> None:
    a, b, c, d = written(small())
    assert tuple(a) == COLUMNS
    assert [each["allocated_resources"] for each in (a, b, c, d)] == ["0-3", "4-5", "0-7", ""]
    assert (b["starting_time"], b["execution_time"], b["stretch"]) == ("2.5", "27.5", "1.375")
    assert (d["success"], d["starting_time"], d["outcome"]) == ("0", "", "Refused")


def test_numbers_are_read_back_as_they_were_measured() -> None:
    past = drawn(3, 30)
    for job, row in zip(measure(past).jobs, written(past), strict=True):
        values = {name: float(row[name]) if row[name] else None for name in NUMBERS}
        assert values["waiting_time"] == job.wait
        assert values["finish_time"] == job.end
        assert values["stretch"] == job.slowdown
        assert (row["jobID"], row["queue"]) == (job.name, job.queue)


@pytest.mark.parametrize("seed", range(3))
def test_no_two_pods_have_a_place_at_the_same_time(seed: int) -> None:
    past = drawn(seed, 60)
    given = PodPlaces(past)
    held = [
        (runs.node, place, runs.start, past.end if runs.end is None else runs.end)
        for number, each in enumerate(past.jobs)
        for index, runs in enumerate(each.runs)
        for place in given.of(number, index)
    ]
    for one, two in combinations(held, 2):
        assert one[:2] != two[:2] or one[3] <= two[2] or two[3] <= one[2]
    assert all(place < given.counts[node] for node, place, _, _ in held)


def test_pods_that_ran_for_no_time_and_jobs_without_pods_are_written() -> None:
    past = nothing()
    assert written(past) == []
    past.jobs = [
        record(
            "a", [PodRuns(0, 2, 5.0, 5.0, "completed")], start=5.0, end=5.0, outcome="Completed"
        ),
        record(
            "b", [PodRuns(0, 1, 5.0, 6.0, "completed")], start=5.0, end=6.0, outcome="Completed"
        ),
        record("c", [PodRuns(0, 1, 6.0)], start=6.0, outcome="Running"),
        record("=cmd|' /C calc'!A0,\n", outcome="Waiting"),
    ]
    rows = written(past)
    assert [places(row["allocated_resources"]) for row in rows] == [{0, 1}, {2}, {0}, set()]


def test_sets_are_written_as_intervals() -> None:
    assert interval_set([5, 1, 2, *range(50, 9, -1)]) == "1-2 5 10-50"
    assert interval_set([]) == ""


def test_it_has_all_columns_of_evalys() -> None:
    """`JobSet.columns`, of which the first is renamed when a file is read; read as text, since evalys computes with pandas."""
    (source,) = (each for each in files("evalys") or () if each.name == "jobset.py")
    (jobset,) = (
        node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef)
    )
    (columns,) = (
        ast.literal_eval(node.value)
        for node in jobset.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "columns"
    )
    assert {"jobID", *columns} - {"job_id"} <= {*COLUMNS}
