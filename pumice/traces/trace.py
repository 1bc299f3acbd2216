"""A trace: jobs with the moments of their submission and the time that their pods run.

Readers make a trace from a file, the generator draws one, and the run submits it in virtual time. Times are seconds since the
trace's zero; `Trace.zero` is that moment of the calendar.
"""

from typing import Any

import msgspec

from pumice.api.nodes import Node
from pumice.scheduler.simulate import ClusterObjects

LINES_LIMIT = 1_000_000
"""Lines that are read of a trace."""

REPLICAS_LIMIT = 10_000
"""Pods of one job."""

YEAR_2000 = 946_684_800.0
"""The zero of a trace that has no date: 2000-01-01T00:00:00Z."""


class TraceError(ValueError):
    """A trace that cannot be read as a whole; the message is one sentence for the user."""


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a trace.

    Attributes:
        name: A DNS label, unique in the trace.
        submit: Submission, in seconds since the trace's zero.
        duration: Seconds for which its pods run once they started; None for a job that never ends.
        queue: Its queue.
        namespace: Its namespace: that of its user if the trace names one.
        user: Who submitted it, as the trace says; empty if it does not.
        priority: A number, or the name of a PriorityClass.
        replicas: Its pods.
        min: How many of them start together (`minAvailable`).
        requests: What one pod requests, as Kubernetes quantities.
        topology: `networkTopology` of the Job.
        manifest: A whole Job that is submitted in place of one made of the fields above.
        fails: True if its pods end with exit code 1.
        scheduled: When its pods started in the cluster that the trace is from, if the trace says so; it changes nothing in a run.
    """

    name: str
    submit: float
    duration: float | None
    queue: str = "default"
    namespace: str = "default"
    user: str = ""
    priority: int | str = 0
    replicas: int = 1
    min: int
    requests: dict[str, str]
    topology: dict[str, Any] | None = None
    manifest: dict[str, Any] | None = None
    fails: bool = False
    scheduled: float | None = None


class SkippedLine(msgspec.Struct, frozen=True):
    """A line, or an object of a dump, that is not a job of the trace.

    Attributes:
        line: Its number in the file, from 1.
        why: What is wrong with it, in one sentence.
        is_bad: True if it breaks the format; False for a valid line that describes no run, such as a job that was cancelled.
    """

    line: int
    why: str
    is_bad: bool = True


class Trace(msgspec.Struct, kw_only=True):
    """Jobs in the order of their submission, and what the file has beside them.

    Attributes:
        jobs: Sorted by submission; for equal times the order of the list decides.
        objects: Queues, PriorityClasses and other objects of the cluster that the trace is from, its nodes among them.
        zero: UNIX seconds of the moment from which `submit` counts.
        skipped: Lines that were left out.
        lines: How many lines the file has, without comments and empty ones.
        remarks: What a user should know of how the file was read, a sentence each.
        unit: What `SkippedLine.line` counts.
        nodes_hint: A `--nodes` that the header of the file suggests; empty if it suggests none.
    """

    jobs: list[TraceJob]
    objects: ClusterObjects = msgspec.field(default_factory=ClusterObjects)
    zero: float = YEAR_2000
    skipped: list[SkippedLine] = msgspec.field(default_factory=list)
    lines: int = 0
    remarks: list[str] = msgspec.field(default_factory=list)
    unit: str = "line"
    nodes_hint: str = ""

    @property
    def nodes(self) -> list[Node]:
        """Nodes of the trace itself; empty if it names none."""
        return self.objects.nodes
