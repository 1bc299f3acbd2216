"""The options of `pumice simulate --trace`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from pumice.cli.exits import UserError

if TYPE_CHECKING:
    from pumice.traces.formats import TraceFormat

_Trace = Annotated[
    list[str] | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Simulate the jobs of a trace in virtual time: Pumice's own JSON lines or CSV, SWF, Alibaba's openb (with its file of nodes as a "
        "second --trace), or the JSON of `kubectl get jobs.batch.volcano.sh,podgroups,pods,nodes,queues -A -o json`; - reads stdin.",
    ),
]
_FORMATS = "own|csv|swf|openb|cluster"


def _format(value: object) -> "TraceFormat":
    """Read the name of a format. They are not imported for the help of all verbs."""
    from pumice.traces.formats import TraceFormat

    try:
        return TraceFormat(str(value))
    except ValueError:
        raise typer.BadParameter(f"{value}: expected {_FORMATS}") from None


_FormatOption = Annotated[
    Any,
    typer.Option(
        "--format",
        metavar=_FORMATS,
        parser=_format,
        help="Format of the trace; by default its content shows it.",
    ),
]
_Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="SPEC",
        help="Nodes in place of those of --state and of the trace, for example 16x4cpu or 64x8gpu,32cpu,256Gi+16x64cpu. CPU, memory and pods "
        "that are not named are ample. Or openb's file of nodes.",
    ),
]
_Queue = Annotated[
    str | None,
    typer.Option("--queue", metavar="NAME", help="Put all jobs of the trace into one queue."),
]

_Compare = Annotated[
    Path | None,
    typer.Option(
        "--compare",
        metavar="SCHED",
        help="Run the trace with this configuration, too, and show what differs. At the same time, so two processors are used.",
    ),
]
_CompareNodes = Annotated[
    str | None,
    typer.Option(
        "--compare-nodes",
        metavar="SPEC",
        help="Run the trace on these nodes, too, and show what differs.",
    ),
]
_FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="EXPR",
        help='End with exit code 1 if a number of the summary is like this, for example "wait.p95 > 600", or "wait.p95 > +10%" with --compare. '
        "Repeat it for several.",
    ),
]
_Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page with diagrams, which needs nothing from the network.",
    ),
]
_Jobs = Annotated[
    Path | None,
    typer.Option(
        "--jobs",
        metavar="FILE.csv",
        help="Write a line for each job, as evalys reads them; those of the second run to FILE.other.csv.",
    ),
]


class TraceOptions(msgspec.Struct, frozen=True):
    """Options that only a trace takes.

    Attributes:
        trace: Its file; a second one for the nodes of `openb`.
        format: Its format.
        nodes: Nodes as a short text, or the file of nodes of `openb`.
        queue: The queue of all jobs.
        compare: Another configuration of the scheduler.
        compare_nodes: Other nodes.
        fail_if: When the run fails.
        report: File for the page.
        jobs: File for the jobs.
    """

    trace: _Trace = None
    format: _FormatOption = None
    nodes: _Nodes = None
    queue: _Queue = None
    compare: _Compare = None
    compare_nodes: _CompareNodes = None
    fail_if: _FailIf = None
    report: _Report = None
    jobs: _Jobs = None

    def check(self, others: Sequence[str]) -> None:
        """Check which options are given together.

        Args:
            others: Options that are given and that a trace does not take.

        Raises:
            UserError: Options exclude each other.
        """
        if self.trace and others:
            raise UserError(f"{others[0]} is for single cycles, not for --trace")
        for name in self.__struct_fields__ if not self.trace else ():
            if getattr(self, name):
                raise UserError(
                    f"--{name.replace('_', '-')} is for traces: name one with --trace FILE"
                )
