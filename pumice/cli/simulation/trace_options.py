"""The options of `pumice simulate --trace`."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from pumice.cli.exits import UserError
from pumice.traces.formats import TraceFormat

__all__ = ["TraceOptions"]

_Trace = Annotated[
    list[str] | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Simulate the jobs of a trace in virtual time: Pumice's own JSON lines or CSV, SWF, Alibaba's openb (with its file of nodes as a "
        "second --trace), or the JSON of `kubectl get jobs.batch.volcano.sh,podgroups,pods,nodes,queues -A -o json`; - reads stdin.",
    ),
]
_FormatOption = Annotated[
    TraceFormat | None,
    typer.Option("--format", help="Format of the trace; by default its content shows it."),
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


class TraceOptions(msgspec.Struct, frozen=True):
    """Options that only a trace takes.

    Attributes:
        trace: Its file; a second one for the nodes of `openb`.
        format: Its format.
        nodes: Nodes as a short text, or the file of nodes of `openb`.
        queue: The queue of all jobs.
    """

    trace: _Trace = None
    format: _FormatOption = None
    nodes: _Nodes = None
    queue: _Queue = None

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
