"""Traces in the Standard Workload Format, version 2.2: a job a line, 18 numbers each, -1 for what is not known.

Pods stand for processors: a job of n processors is a gang of n pods of 1 cpu. How the fields are used:

1 job number (the name), 2 submit time, 3 wait time (`scheduled`), 4 run time, 5 allocated processors, 8 requested processors if those are
not known, 11 status (0: the job fails; 2 to 4: a part of a job that has a line of its own), 12 user, 15 queue. The others are read and
have no effect: CPU time, memory, requested time, group, executable, partition, preceding job and think time.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

import math
import re

from pumice.traces.job_list import BadLineError, JobList, decoded, number, whole, written_lines
from pumice.traces.node_spec import NODES_LIMIT
from pumice.traces.trace import REPLICAS_LIMIT, YEAR_2000, Trace, TraceJob

FIELDS = 18
_LARGEST = 1e15

_FIELD_NAMES = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "CPU time", "used memory",
    "requested processors", "requested time", "requested memory", "status", "user", "group", "executable",
    "queue", "partition", "preceding job", "think time",
)  # fmt: skip
NUMBER, SUBMIT, WAIT, RUN, ALLOCATED = range(5)
REQUESTED, STATUS, USER, QUEUE = 7, 10, 11, 14
_PARTS = range(2, 5)
"""Statuses of lines about a part of a job."""

_HEADER = re.compile(r";+\s*(?P<name>[A-Za-z]+)\s*:\s*(?P<value>-?\d{1,15})\b", re.ASCII)


def read_swf(data: bytes) -> Trace:
    """Read a trace; its lines may have any order, and times may have fractions.

    Raises:
        TraceError: It has too many lines, or too many bad ones.
    """
    jobs = JobList()
    header: dict[str, int] = {}
    for place, line in written_lines(data):
        if line.startswith(b";"):
            if match := _HEADER.match(line[:200].decode(errors="replace")):
                header.setdefault(match["name"], int(match["value"]))
            continue
        jobs.lines += 1
        try:
            _add(jobs, place, decoded(line).split())
        except BadLineError as error:
            jobs.skip(place, str(error))
    trace = jobs.trace()
    start = header.get("UnixStartTime", 0)
    trace.zero = float(start) if 0 < start < 1e10 else YEAR_2000
    trace.nodes_hint = _hint(header)
    return trace


def _add(jobs: JobList, place: int, fields: list[str]) -> None:
    if len(fields) != FIELDS:
        raise BadLineError(f"{len(fields)} fields; expected the {FIELDS} of SWF 2.2")
    values = [_value(text, at) for at, text in enumerate(fields)]
    job = whole(values[NUMBER], "job number", 0, int(_LARGEST))
    submit = number(values[SUBMIT], "submit time")
    status = values[STATUS]
    processors = values[ALLOCATED] if values[ALLOCATED] > 0 else values[REQUESTED]
    if status in _PARTS:
        jobs.skip(place, "a part of a job, of which another line has the whole", is_bad=False)
    elif values[RUN] < 0:
        jobs.skip(place, f"job {job} has no run time", is_bad=False)
    elif processors <= 0:
        jobs.skip(place, f"job {job} has no processors", is_bad=False)
    else:
        count = whole(processors, "processors", 1, REPLICAS_LIMIT)
        user, queue = values[USER], values[QUEUE]
        wait = values[WAIT]
        made = TraceJob(
            name=str(job),
            submit=submit,
            duration=number(values[RUN], "run time"),
            queue=f"{whole(queue, 'queue', 0, int(_LARGEST))}" if queue >= 0 else "default",
            namespace=f"user-{user:.0f}" if user >= 0 else "default",
            user=f"{user:.0f}" if user >= 0 else "",
            replicas=count,
            min=count,
            requests={"cpu": "1"},
            fails=status == 0,
            scheduled=submit + wait if wait >= 0 else None,
        )
        jobs.add(made, (job,))


def _value(text: str, at: int) -> float:
    try:
        found = math.nan if "_" in text else float(text)
    except ValueError:
        found = math.nan
    if not abs(found) <= _LARGEST:
        raise BadLineError(
            f"{_FIELD_NAMES[at]} is {text[:40]}; expected a number, -1 if it is unknown"
        )
    return found


def _hint(header: dict[str, int]) -> str:
    """The machine that the header describes, as nodes; empty if there cannot be so many."""
    processors, nodes = header.get("MaxProcs", 0), header.get("MaxNodes", 0)
    each = 1
    if nodes > 0 and processors >= nodes and processors % nodes == 0:
        each = processors // nodes
    elif processors > 0:
        nodes = processors
    return f"{nodes}x{each}cpu" if 0 < nodes <= NODES_LIMIT else ""
