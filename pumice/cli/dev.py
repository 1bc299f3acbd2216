"""`pumice dev`: a cluster in one process, for kubectl, in the foreground or in the background."""

import os
import sys
import tempfile
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.api import kinds
from pumice.api.messages import counted
from pumice.cli.exits import REFUSED, UserError, finish
from pumice.cli.files.configuration import read_config
from pumice.cli.options import (
    Level,
    MetricsPort,
    Output,
    SchedulerConfig,
    port_option,
    read_seconds,
    state_option,
)
from pumice.cli.output import Format, note, paint, table, write, write_json
from pumice.cli.running.local import (
    HostPathOption,
    ImageOption,
    local_nodes,
    on_this_machine,
    read_allowed,
    read_images,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pumice.cli.development.detached import Detached
    from pumice.cli.development.dev_cluster import DevCluster
    from pumice.cli.development.dev_nodes import SimulatedNode
    from pumice.cli.files.manifests import Manifest
    from pumice.cluster.client import Client
    from pumice.embedded import EmbeddedCluster
    from pumice.scheduler import Config

EXAMPLES = (
    "pumice dev",
    "pumice dev --detach --kubeconfig dev.kubeconfig",
    "pumice dev --nodes 2,1,4 --run-delay 500ms",
    "pumice dev --state cluster.yaml -v",
    "pumice dev --web",
    "pumice dev --run --image python:3.12=/srv/roots/python",
    "pumice dev --nodes 4x64/256Gi/nvidia.com/gpu=8 --port 8001 --kubeconfig /tmp/dev.kubeconfig",
)


_NODES = "3x8/32Gi"
_PortOption = Annotated[int, port_option("API server")]
_NodesOption = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="SPEC",
        help="Nodes: [COUNTx]CPU[/MEMORY][/RESOURCE=AMOUNT], several with commas; or as `simulate --trace` takes them. Without it "
        f"{_NODES}, or the Nodes of --state; with --run one node, with this machine's processors and memory.",
    ),
]
_RunDelayOption = Annotated[
    str, typer.Option("--run-delay", help="Time from the binding of a pod until it runs.")
]
_KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Where to write the kubeconfig; a temporary file otherwise. A file that `pumice dev` did not write is "
        "not overwritten.",
    ),
]
_StateOption = Annotated[
    list[Path] | None,
    state_option(
        "Initial objects, as `kubectl get -o yaml` writes them; may be given several times.",
    ),
]
_RunOption = Annotated[
    bool,
    typer.Option(
        "--run",
        help="Run pods as processes of this machine, as `pumice run` does, not on simulated nodes.",
    ),
]
_VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Log phase changes of Jobs and pods.")
]
_WebOption = Annotated[
    bool,
    typer.Option("--web", help="Also serve the page of `pumice web`, and print its address."),
]
_DetachOption = Annotated[
    bool,
    typer.Option(
        "--detach",
        help="Return when the API server answers; the cluster goes on in the background until `pumice dev stop`.",
    ),
]


def dev(
    context: typer.Context,
    port: _PortOption = 0,
    nodes: _NodesOption = None,
    runs: _RunOption = False,
    image: ImageOption = None,
    allow_host_path: HostPathOption = None,
    run_delay: _RunDelayOption = "100ms",
    config: SchedulerConfig = None,
    kubeconfig: _KubeconfigOption = None,
    state: _StateOption = None,
    verbose: _VerboseOption = False,
    metrics_port: MetricsPort = None,
    web: _WebOption = False,
    detach: _DetachOption = False,
) -> None:
    """Run a whole cluster in this process, for kubectl.

    It runs API server, admission, controller, scheduler and simulated nodes. Deployments, ReplicaSets and batch Jobs get pods, too.
    The cluster lives in memory and ends with Ctrl-C. A pod of a simulated node runs until it is deleted, or ends after
    its annotation pumice.dev/run-duration with the exit code of pumice.dev/exit-code. With --run, pods are processes of this machine
    instead, and end as these do.
    """
    if context.invoked_subcommand is not None:
        _require_no_options(context)
        return
    if detach:
        _detach(context, with_stdin=Path("-") in (state or []))
        return
    from pumice.cli import lean

    with lean.importing_http():
        from pumice.cli.development import dev_kubeconfig
        from pumice.cli.development.dev_cluster import dev_cluster
        from pumice.cli.development.dev_state import log_life
        from pumice.cli.files.manifests import read
        from pumice.cli.processes import logs
        from pumice.cli.processes.components import run
        from pumice.embedded import NodeTimings

    objects = read(state) if state else []
    _check_options_of_pods(context, runs=runs, of_pods=bool(image or allow_host_path))
    images, allowed = read_images(image or ()), read_allowed(allow_host_path or ())
    delay = 0.0 if run_delay in ("0", "0s") else read_seconds("--run-delay", run_delay)
    scheduling = read_config(config)
    if kubeconfig is not None:
        dev_kubeconfig.check(kubeconfig)
    logs.configure(json=False, level=Level.INFO if verbose else Level.WARNING)
    starting = partial(
        dev_cluster,
        _read_nodes(nodes, objects, runs=runs),
        port=port,
        timings=NodeTimings(start=delay),
        config=scheduling,
        state=objects,
        on_write=log_life if verbose else None,
    )
    cluster = on_this_machine(images, allowed, starting) if runs else starting()
    page = partial(_page, scheduling, kubeconfig and kubeconfig.absolute()) if web else None
    run(partial(_serve, cluster, port, kubeconfig, metrics_port, page))


def _check_options_of_pods(context: typer.Context, *, runs: bool, of_pods: bool) -> None:
    """Refuse options of pods that run without `--run`, and those of simulated ones with it."""
    if of_pods and not runs:
        raise UserError("--image and --allow-host-path are of pods that run; add --run")
    if runs and context.get_parameter_source("run_delay").name == "COMMANDLINE":  # type: ignore[union-attr]
        raise UserError("--run-delay is of simulated nodes; leave it out beside --run")


def _read_nodes(
    text: str | None, objects: "Sequence[Manifest]", *, runs: bool
) -> "list[SimulatedNode]":
    """The nodes of `--nodes`; by default none beside those of files."""
    from pumice.cli.development.dev_nodes import read_nodes

    if not text and any(each.object.get("kind") == "Node" for each in objects):
        return []
    return local_nodes(text) if runs else read_nodes(text or _NODES)


async def _serve(
    starting: "AbstractAsyncContextManager[DevCluster]",
    port: int,
    kubeconfig: Path | None,
    metrics_port: int | None,
    page: "Callable[[Client], AbstractAsyncContextManager[str]] | None",
) -> None:
    """Run a cluster until the user stops it, with a kubeconfig in a temporary file if none is named."""
    import asyncio

    from pumice.cli.development import dev_kubeconfig
    from pumice.cli.processes.components import serving_health, why_no_port
    from pumice.cluster.lifecycle import stop_on_signals, until_any

    stop = asyncio.Event()
    with stop_on_signals(stop), tempfile.TemporaryDirectory(prefix="pumice-dev-") as folder:
        try:
            file = kubeconfig or Path(folder, "kubeconfig")
            async with starting as cluster:
                health = serving_health(metrics_port, cluster.metrics, {}, host="127.0.0.1")
                served = page(cluster.client) if page is not None else nullcontext("")
                async with health as metrics_at, served as address:
                    if metrics_at is not None:
                        note(f"metrics on http://127.0.0.1:{metrics_at}/metrics")
                    with dev_kubeconfig.written(file, cluster.api.kubeconfig()):
                        _announce(cluster.api, file, address)
                        await until_any(stop, cluster.components)
                        note("stopping")
        except OSError as error:
            raise UserError(f"--port {port}: {why_no_port(error)}") from None


@asynccontextmanager
async def _page(config: "Config", file: Path | None, client: "Client") -> "AsyncIterator[str]":
    """The page of `pumice web` inside the block, which gets its address.

    Args:
        config: Configuration of the scheduler.
        file: The kubeconfig that commands on the page name; None for a temporary one, which $KUBECONFIG names.
        client: The connection to the cluster.
    """
    from pumice.cli.web import serving

    async with serving(client, config, kubeconfig=str(file) if file else None) as (address, _):
        yield address


def _announce(cluster: "EmbeddedCluster", file: Path, page: str) -> None:
    nodes = len(cluster.store.list(kinds.NODE))
    note(f"API server on {cluster.url}, {counted(nodes, 'node')}; Ctrl-C ends it")
    write(f"export KUBECONFIG={file.absolute()}")
    if page:
        write(f"# {page}")
    sys.stdout.flush()
    note(paint("kubectl get nodes,queues,vcjob,podgroups,pods -A", "dim", sys.stderr))


def _require_no_options(context: typer.Context) -> None:
    from pumice.cli.development import detached

    if found := detached.given(context, ""):
        verb = context.invoked_subcommand
        raise UserError(
            f"{found[0]} stands before {verb!r}, expected behind it, if {verb!r} has it"
        )


def _detach(context: typer.Context, *, with_stdin: bool) -> None:
    from pumice.cli.development import detached

    given = detached.given(context, "detach")
    started, page = detached.start(given, with_stdin=with_stdin, with_page="--web" in given)
    note(f"API server on {started.server}; `pumice dev stop` ends it")
    write(f"export KUBECONFIG={started.kubeconfig}")
    if page:
        write(page)


def status(output: Output = Format.TEXT) -> None:
    """List the clusters that run in the background.

    The exit code is 1 if there is none.
    """
    from pumice.api.meta import format_time
    from pumice.cli.development import detached

    found = detached.running()
    rows = [
        (each.server, str(each.pid), format_time(each.started), each.kubeconfig, each.log)
        for each in found
    ]
    columns = ("server", "process", "started", "kubeconfig", "log")
    if output is Format.JSON:
        write_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        write(table(columns, rows))
    if not found:
        note("no cluster of `pumice dev --detach` runs")
        finish(REFUSED)


_StopKubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The cluster of this file; by default that of $KUBECONFIG, or the only one.",
    ),
]
_AllOption = Annotated[bool, typer.Option("--all", help="All of them.")]


def stop(kubeconfig: _StopKubeconfigOption = None, every: _AllOption = False) -> None:
    """End a cluster that runs in the background.

    The exit code is 0 also where none runs any more.
    """
    from pumice.cli.development import detached

    if every and kubeconfig is not None:
        raise UserError(f"--all ends all clusters; leave out --kubeconfig {kubeconfig}")
    found = detached.running()
    named = [str(kubeconfig)] if kubeconfig is not None else _of_environment()
    chosen = found if every else _chosen(found, named)
    for each in chosen:
        detached.stop(each)
        note(f"stopped the cluster of {each.kubeconfig}")
    if not chosen:
        which = f" of {named[0]} runs" if named and not every else " runs"
        others = "; another does, name it" if len(found) == 1 else "; others do, name one"
        others += f" by --kubeconfig, or --all: {_files(found)}"
        note(f"no cluster{which} in the background{others if found else ''}")


def _chosen(found: "list[Detached]", named: list[str]) -> "list[Detached]":
    """The cluster that is named, or the only one."""
    files = [os.path.realpath(each) for each in named]
    chosen = [each for each in found if os.path.realpath(each.kubeconfig) in files]
    if named or len(found) < 2:
        return chosen[:1] if named else found
    raise UserError(
        f"{len(found)} clusters run; name one by --kubeconfig, or --all: {_files(found)}"
    )


def _of_environment() -> list[str]:
    """Files of $KUBECONFIG that are of `pumice dev`, or were: it removes them when a cluster ends."""
    from pumice.cli.development import dev_kubeconfig

    files = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    return [
        each for each in files if each and (not Path(each).exists() or dev_kubeconfig.is_own(each))
    ]


def _files(found: "list[Detached]") -> str:
    return ", ".join(each.kubeconfig for each in found)


VERBS = {
    "status": (status, ("pumice dev status", "pumice dev status -o json")),
    "stop": (stop, ("pumice dev stop", "pumice dev stop --kubeconfig dev.kubeconfig")),
}
