"""What is left of a run: the story of each job, and columns of samples.

All moments are seconds since the trace's zero. Amounts are milli-units by resource (`pumice.api.requests.Amounts`).
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from pumice.api.requests import Amounts
from pumice.traces.trace import TraceJob

Outcome = Literal["Completed", "Failed", "Running", "Waiting", "Refused", "Unreached"]
"""How a job ended, or where it was when the run stopped: `Running` has at least `min` pods that run, `Unreached` was not submitted yet."""

RunEnd = Literal["completed", "failed", "evicted", "running"]
"""How runs of pods ended: with exit code 0, with another one, by an eviction or another removal, or not yet."""


class PodRuns(msgspec.Struct, gc=False):
    """Pods of one task of a job that ran on one node from the same moment to the same moment.

    Attributes:
        node: The node, an index of `Past.nodes`.
        pods: Number of pods.
        start: When they started.
        end: When they ended; None while they run.
        how: How they ended.
        task: Their task, an index of `JobRecord.requests`.
    """

    node: int
    pods: int
    start: float
    end: float | None = None
    how: RunEnd = "running"
    task: int = 0


class JobRecord(msgspec.Struct):
    """The story of one job.

    Attributes:
        job: The job as submitted.
        number: Its place in `Trace.jobs`.
        requests: Of one pod of each task; empty for a refused job.
        start: When `min` of its pods first ran at the same time; None if that never happened.
        end: When the Job was over; None if it was not.
        outcome: How it ended, or where it was at the end of the run.
        runs: Its pods, by node and in the order of their starts.
        evictions: Number of its pods that were evicted.
        broken: How often fewer than `min` of its pods were left running, without the Job having ended.
        lost: Seconds of pods whose work was thrown away, by task: of those that were evicted, removed, or failed without their Job.
        reason: The last sentence why it waits, or why it was refused; empty for neither.
    """

    job: TraceJob
    number: int
    requests: Sequence[Amounts] = ()
    start: float | None = None
    end: float | None = None
    outcome: Outcome = "Unreached"
    runs: list[PodRuns] = msgspec.field(default_factory=list)
    evictions: int = 0
    broken: int = 0
    lost: dict[int, float] = msgspec.field(default_factory=dict)
    reason: str = ""


@dataclass(slots=True)
class QueueSamples:
    """Columns of one queue; a queue that appears later has zeros before.

    Attributes:
        used: What its pods and those of queues below it hold, milli-units by resource.
        deserved: What the configured plugins say that it deserves, milli-units by resource; empty if none says that.
        waiting: Number of its gangs that wait, without those of queues below it.
    """

    used: dict[str, "array[int]"] = field(default_factory=dict)
    deserved: dict[str, "array[int]"] = field(default_factory=dict)
    waiting: "array[int]" = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class Samples:
    """Columns with one entry for each moment at which something changed; a value holds until the next moment.

    Attributes:
        moments: The moments, ascending.
        used: What pods hold, milli-units by resource.
        unusable: What is idle on nodes on which no pod of any waiting gang fits, while some gang waits; milli-units by resource.
        capacity: What the nodes have, milli-units by resource.
        waiting: Number of gangs that wait, by the word of their reason.
        queues: Columns of each queue, by name.
    """

    moments: "array[float]" = field(default_factory=lambda: array("d"))
    used: dict[str, "array[int]"] = field(default_factory=dict)
    unusable: dict[str, "array[int]"] = field(default_factory=dict)
    capacity: dict[str, "array[int]"] = field(default_factory=dict)
    waiting: dict[str, "array[int]"] = field(default_factory=dict)
    queues: dict[str, QueueSamples] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Progress:
    """Where a run is.

    Attributes:
        now: The virtual moment.
        ended: Number of jobs that are over, with those that were refused.
        waiting: Number of jobs that wait.
        running: Number of jobs that run.
    """

    now: float
    ended: int
    waiting: int
    running: int


@dataclass(slots=True)
class Past:
    """All that is known of a run.

    Attributes:
        jobs: A record of each job, in the order of `Trace.jobs`.
        samples: Columns by moment.
        nodes: Names of the nodes, in the order of their indexes.
        capacity: What each node has, by resource; in the order of `nodes`, milli-units.
        resources: Names of the resources, in order.
        end: The virtual moment that was reached.
        cycles: Number of scheduling cycles.
        decision_seconds: What the cycles took, by the given clock.
        is_whole: False if the run was stopped before its end, or has none.
        skipped: Number of lines of the trace that were skipped.
        is_endless: Whether it has none: pods are only evicted and made again.
        remarks: What a user should know of the run, each a sentence.
    """

    jobs: list[JobRecord]
    samples: Samples
    nodes: list[str]
    capacity: dict[str, list[int]]
    resources: list[str]
    end: float
    cycles: int
    decision_seconds: float
    is_whole: bool
    skipped: int
    is_endless: bool = False
    remarks: list[str] = field(default_factory=list)
