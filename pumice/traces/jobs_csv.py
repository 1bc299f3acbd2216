"""Jobs of a run as CSV, with the columns that evalys 4 reads (`JobSet.from_csv`), as Batsim writes them.

A resource is a place of a pod (`pumice.traces.places`). evalys cannot read names of queues and outcomes; they are further columns.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

from pumice.traces.job_measures import JobMeasures, rounded
from pumice.traces.places import PodPlaces
from pumice.traces.records import JobRecord, Past

COLUMNS = (
    "jobID",
    "workload_name",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "queue",
    "outcome",
    "evictions",
)


def write_jobs(file: TextIO, past: Past, jobs: Iterable[JobMeasures]) -> None:
    """Write one line for each job; a cell is empty if what it is about never happened."""
    places = PodPlaces(past)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, (record, job) in enumerate(zip(past.jobs, jobs, strict=True)):
        cells = (
            job.name,
            job.namespace,
            job.submit,
            record.job.replicas,
            rounded(record.job.duration),
            int(record.outcome == "Completed"),
            job.start,
            job.run,
            job.end,
            job.wait,
            job.turnaround,
            job.slowdown,
            interval_set(_held(number, record, places)),
            job.queue,
            job.outcome,
            job.evictions,
        )
        writer.writerow(cells)


def _held(number: int, record: JobRecord, places: PodPlaces) -> Iterator[int]:
    for index, runs in enumerate(record.runs):
        if runs.how != "evicted":
            first = places.first_of(runs.node)
            yield from (first + place for place in places.of(number, index))


def interval_set(numbers: Iterable[int]) -> str:
    """Numbers as evalys writes a set of intervals: `1-2 5 10-50`."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)
