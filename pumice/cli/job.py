"""`pumice job`: Jobs of a cluster with their position and the reason of each wait; suspend and resume them."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pumice.api.fields import plain
from pumice.cli.files.configuration import read_config
from pumice.cli.live.names import complete_jobs
from pumice.cli.live.sessions import get, name_of, read_collection, run
from pumice.cli.options import (
    AllNamespaces,
    ClusterOptions,
    LabelSelector,
    ListOutput,
    Namespace,
    ObjectOutput,
    OrderOptions,
    SchedulerConfig,
    Watch,
    read_seconds,
)
from pumice.cli.output import Form, ListForm, ListPrinter, note, write_result

if TYPE_CHECKING:
    from pumice.api.jobs import Job
    from pumice.api.kinds import Kind
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.scheduler import Config

HELP = "List Jobs and why each waits; logs, suspend, resume."


_Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME", help="Names of Jobs.", autocompletion=complete_jobs),
]
_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the Job.", autocompletion=complete_jobs)
]


def list_jobs(
    namespace: Namespace = None,
    everywhere: AllNamespaces = False,
    selector: LabelSelector = None,
    watch: Watch = False,
    forecast: Annotated[
        bool,
        typer.Option(
            "--forecast",
            help="Also when each Job that waits will start if nothing changes; see `pumice explain job NAME --forecast`.",
        ),
    ] = False,
    config: SchedulerConfig = None,
    output: ListOutput = ListForm.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """List Jobs: running pods, position in the queue, reason of a wait.

    The position counts the gangs of all namespaces that wait in the queue, in the order in which the scheduler tries them. Reasons are those of
    `pumice explain`. What you may not read is named on stderr.
    """
    given = read_config(config) if config else None
    listing = _Listing(namespace, everywhere, selector, given, output, watch, forecast)
    run(listing.run(cluster))


def get_job(
    name: _Name,
    namespace: Namespace = None,
    config: SchedulerConfig = None,
    output: ObjectOutput = Form.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """Show one Job: phase, position, reason, and pods by task.

    `pumice explain job NAME` also shows what would be enough, pods and events. `kubectl get vcjob NAME -o yaml` shows
    the object itself.
    """
    run(
        _show(
            cluster,
            _name_of(name),
            namespace,
            read_config(config) if config else None,
            output,
        )
    )


def logs_of_job(
    name: _Name,
    follow: Annotated[
        bool,
        typer.Option(
            "-f", "--follow", help="Go on with new lines and new pods until the Job ends."
        ),
    ] = False,
    task: Annotated[
        str | None, typer.Option("--task", metavar="T", help="Only pods of this task.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only containers that failed.")] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="D", help="Only lines of this last time, for example 10m."),
    ] = None,
    namespace: Namespace = None,
    *,
    cluster: ClusterOptions,
) -> None:
    """Print the logs of all pods of a Job, in the order of their times.

    Each line begins with its pod, and the container if the pod has several. You need the rights of `kubectl logs`: list
    pods and get pods/log. At most 200 logs are read, and 100 followed.
    """
    seconds = None if since is None else math.ceil(read_seconds("--since", since))
    run(_logs(cluster, _name_of(name), namespace, (task, failed, seconds), follow))


async def _logs(
    cluster: ClusterOptions,
    name: str,
    namespace: str | None,
    which: tuple[str | None, bool, int | None],
    follow: bool,
) -> None:
    from pumice.cli.live.job_logs import LogRequest, print_logs

    async with cluster.connect() as client:
        where = namespace or client.connection.namespace
        await print_logs(client, LogRequest(where, name, *which), follow=follow)


def suspend(
    names: _Names,
    namespace: Namespace = None,
    *,
    options: OrderOptions,
    cluster: ClusterOptions,
) -> None:
    """Suspend Jobs: remove their pods until they are resumed.

    Creates a Command with action AbortJob, as `vcctl job suspend` does. With --wait the command waits until the phase
    is Aborted. Exit code 1: a Job has ended, or the timeout is over.
    """
    _order("suspend", names, namespace, options, cluster)


def resume(
    names: _Names,
    namespace: Namespace = None,
    *,
    options: OrderOptions,
    cluster: ClusterOptions,
) -> None:
    """Resume Jobs that were suspended; they wait in their queues.

    Creates a Command with action ResumeJob, as `vcctl job resume` does. With --wait the command waits until the phase
    is Running. Exit code 1: a Job has ended, or the timeout is over.
    """
    _order("resume", names, namespace, options, cluster)


VERBS = {
    "list": (
        list_jobs,
        (
            "pumice job list",
            "pumice job list -A --watch",
            "pumice job list -n research -l team=vision -o json",
            "pumice job list -o name | xargs pumice job suspend",
        ),
    ),
    "get": (get_job, ("pumice job get mnist", "pumice job get mnist -n research -o yaml")),
    "logs": (
        logs_of_job,
        (
            "pumice job logs mnist",
            "pumice job logs mnist -f --task worker",
            "pumice job logs mnist --failed --since 1h",
        ),
    ),
    "suspend": (
        suspend,
        ("pumice job suspend mnist", "pumice job suspend mnist bert --wait --timeout 2m"),
    ),
    "resume": (resume, ("pumice job resume mnist", "pumice job resume mnist --wait")),
}
"""The commands: function and examples."""


def _order(
    operation: str,
    names: list[str],
    namespace: str | None,
    options: OrderOptions,
    cluster: ClusterOptions,
) -> None:
    from pumice.cli.live.commands import CommandRequests

    CommandRequests(operation, options).run(cluster, names, namespace)


def _name_of(text: str) -> str:
    from pumice.api.kinds import JOB

    return name_of(text, JOB)


@dataclass(frozen=True, slots=True)
class _Listing:
    """One list, or one after each change."""

    namespace: str | None
    everywhere: bool
    selector: str | None
    config: "Config | None"
    output: ListForm
    watch: bool
    forecasts: bool

    async def run(self, cluster: ClusterOptions) -> None:
        printer = ListPrinter(self.output, self.watch)
        async with cluster.connect() as client:
            where = None if self.everywhere else self.namespace or client.connection.namespace
            while True:
                versions = await self._show(client, where, printer)
                if not self.watch:
                    return
                from pumice.cli.live import observed

                seen = observed.ReadableCluster(where, versions=versions)
                await observed.change(client, seen)

    async def _show(
        self, client: "Client", where: str | None, printer: ListPrinter
    ) -> "list[tuple[Kind, str | None, str]]":
        """Print the list; return the read versions if changes are to be shown."""
        import time

        from pumice.api.kinds import JOB, POD_GROUP
        from pumice.cli.live.job_rows import job_rows, list_table

        found, version = await read_collection(client, JOB, where, self.selector)
        jobs = _decoded(found)
        seen = None
        if self.output is not ListForm.NAME:
            seen = await _context(client, jobs, where)
        now = time.time()
        rows = job_rows(jobs, seen, self.config, now)
        forbidden = seen.forbidden if seen else []
        remarks = [_remark(forbidden)]
        if self.forecasts and seen is not None:
            remarks.append(await self._add_forecasts(client, seen, rows))
        wide = self.output is ListForm.WIDE
        printer.show(
            {"jobs": rows, "notAllowed": forbidden},
            [f"{JOB.singular}/{each['name']}" for each in rows],
            lambda: list_table(rows, where, wide=wide, now=now),
            *remarks,
        )
        versions: list[tuple[Kind, str | None, str]] = [(JOB, where, version)]
        # PodGroups change with every relevant scheduling cycle; nodes and pods would change continuously.
        versions += [each for each in (seen.versions if seen else ()) if each[0] is POD_GROUP]
        return versions

    async def _add_forecasts(
        self, client: "Client", seen: "ReadableCluster", rows: list[dict[str, Any]]
    ) -> str:
        """Add when those start that wait; returns what is ignored for that."""
        import msgspec

        from pumice.cli.live.forecasts import forecasts

        waiting = {f"{each['namespace']}/{each['name']}": each for each in rows if each["waiting"]}
        told, remark = await forecasts(client, seen, self.config or read_config(None), waiting)
        for row in rows:
            found = told.get(f"{row['namespace']}/{row['name']}") if row["waiting"] else None
            row["forecast"] = None if found is None else msgspec.to_builtins(found)
        return remark


async def _show(
    cluster: ClusterOptions, name: str, namespace: str | None, config: "Config | None", output: Form
) -> None:
    import time

    from pumice.api.kinds import JOB
    from pumice.cli.live.job_rows import details, details_text, job_rows

    async with cluster.connect() as client:
        where = namespace or client.connection.namespace
        jobs = _decoded([await get(client, JOB, name, where)])
        seen = None if output is Form.NAME else await _context(client, jobs, where)
    now = time.time()
    forbidden = seen.forbidden if seen else []
    found = details(jobs[0], job_rows(jobs, seen, config, now)[0]) | {"notAllowed": forbidden}
    write_result(output, found, [f"{JOB.singular}/{name}"], lambda: details_text(found, now))
    if output is Form.TEXT and forbidden:
        note(plain(_remark(forbidden)))


def _decoded(objects: list[Any]) -> "list[Job]":
    import msgspec

    from pumice.api.jobs import Job

    return [msgspec.convert(each, Job) for each in objects]


async def _context(
    client: "Client", jobs: "list[Job]", where: str | None
) -> "ReadableCluster | None":
    """The objects that determine positions and reasons; nothing is read if no Job waits or lacks pods."""
    from pumice.cli.live.explanation_text import is_waiting, lacks_pods

    if not any(is_waiting(job) or lacks_pods(job) for job in jobs):
        return None
    from pumice.cli import lean

    with lean.importing():
        from pumice.cli.live.observed import observe  # which imports the scheduler

    return await observe(client, where, events=False)


def _remark(forbidden: list[str]) -> str:
    if not forbidden:
        return ""
    named = ", ".join(forbidden)
    return f"Not allowed to read: {named}. Positions are left out, and reasons are those on the PodGroups and Jobs."
