"""`pumice queue`: the queues of a cluster; open and close them."""

from typing import Annotated, Any

import typer

from pumice.api.durations import human_age
from pumice.cli.live.names import complete_queues
from pumice.cli.live.sessions import read_collection, run
from pumice.cli.options import ClusterOptions, LabelSelector, ListOutput, OrderOptions, Watch
from pumice.cli.output import ListForm, ListPrinter, table

HELP = "List queues, open and close them."

_COLOURS = {"Open": "green", "Closing": "yellow", "Closed": "red", "Unknown": "red"}
_COUNTS = ("pending", "inqueue", "running", "unknown", "completed")

_Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME", help="Names of queues.", autocompletion=complete_queues),
]

Row = dict[str, Any]


def list_queues(
    selector: LabelSelector = None,
    watch: Watch = False,
    output: ListOutput = ListForm.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """List queues: state, PodGroups by phase, why one is closed.

    `pumice explain queue NAME` shows the resources of a queue and its waiting gangs in order.
    """
    run(_list(cluster, selector, watch, output))


def close(
    names: _Names,
    *,
    options: OrderOptions,
    cluster: ClusterOptions,
) -> None:
    """Close queues for new PodGroups; running ones continue.

    Creates a Command with action CloseQueue in namespace default, as `vcctl queue operate --action close` does. With
    --wait the command waits until the last PodGroup is gone and the state is Closed. Exit code 1: a queue cannot be
    closed, or the timeout is over.
    """
    _order("close", names, options, cluster)


def open_queue(
    names: _Names,
    *,
    options: OrderOptions,
    cluster: ClusterOptions,
) -> None:
    """Open queues that were closed.

    Creates a Command with action OpenQueue in namespace default, as `vcctl queue operate --action open` does. A queue
    below a closed one opens with that one. Exit code 1: a queue stays closed, or the timeout is over.
    """
    _order("open", names, options, cluster)


VERBS = {
    "list": (
        list_queues,
        ("pumice queue list", "pumice queue list -o wide", "pumice queue list --watch"),
    ),
    "open": (open_queue, ("pumice queue open research",)),
    "close": (
        close,
        ("pumice queue close research", "pumice queue close research --wait --timeout 1h"),
    ),
}
"""The commands: function and examples."""


def _order(
    operation: str, names: list[str], options: OrderOptions, cluster: ClusterOptions
) -> None:
    from pumice.cli.live.commands import CommandRequests

    CommandRequests(operation, options).run(cluster, names, "default")


async def _list(
    cluster: ClusterOptions, selector: str | None, watch: bool, output: ListForm
) -> None:
    import time

    from pumice.api.kinds import QUEUE

    printer = ListPrinter(output, watch)
    async with cluster.connect() as client:
        while True:
            found, version = await read_collection(client, QUEUE, None, selector)
            rows = sorted(map(_row, found), key=lambda each: str(each["name"]))
            names = [f"{QUEUE.singular}/{each['name']}" for each in rows]
            wide, now = output is ListForm.WIDE, time.time()
            printer.show({"queues": rows}, names, lambda: _table(rows, wide, now))  # noqa: B023
            if not watch:
                return
            from pumice.cli.live import observed

            seen = observed.ReadableCluster(None, versions=[(QUEUE, None, version)])
            await observed.change(client, seen)


def _row(raw: Row) -> Row:
    import msgspec

    from pumice.api.queues import Queue

    queue = msgspec.convert(raw, Queue)
    spec, status = queue.spec, queue.status
    return {
        "name": queue.metadata.name,
        "parent": spec.parent,
        "state": status.state or "Open",
        **{name: getattr(status, name) for name in _COUNTS},
        "weight": 1 if spec.weight is None else spec.weight,
        "priority": spec.priority,
        "capability": spec.capability or {},
        "allocated": status.allocated or {},
        "creationTimestamp": queue.metadata.creation_timestamp,
        "reason": status.message,
    }


def _table(rows: list[Row], wide: bool, now: float) -> str:
    if not rows:
        return "no queues"
    columns = ["name", "parent", "state", *_COUNTS[: len(_COUNTS) if wide else 3]]
    columns += ["weight", "priority"] if wide else []
    lines = []
    for row in rows:
        cells = [str(row[name]) if row[name] != "" else "-" for name in columns]
        cells += [_amounts(row[name]) for name in ("allocated", "capability")] if wide else []
        lines.append(
            [*cells, human_age(row["creationTimestamp"], now), " ".join(row["reason"].split())]
        )
    columns += ["allocated", "capability"] if wide else []
    return table([*columns, "age", "reason"], lines, _COLOURS)


def _amounts(resources: Row) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(resources.items())) or "-"
