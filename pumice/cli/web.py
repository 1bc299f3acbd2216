"""`pumice web`: a read-only page about what waits and who has what, on the user's own machine and with the user's own rights."""

import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.cli.exits import UserError
from pumice.cli.files.configuration import read_config
from pumice.cli.live.sessions import run
from pumice.cli.options import ClusterOptions, Namespace, SchedulerConfig, port_option
from pumice.cli.output import note, write

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterator

    from pumice.cluster.client import Client
    from pumice.scheduler import Config

EXAMPLES = (
    "pumice web",
    "pumice web --context research --port 8080 --no-browser",
    "pumice web -n team-a",
)

_PortOption = Annotated[int, port_option("page")]
_NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
]


def web(
    port: _PortOption = 0,
    no_browser: _NoBrowser = False,
    namespace: Namespace = None,
    config: SchedulerConfig = None,
    *,
    cluster: ClusterOptions,
) -> None:
    """Show on a page why gangs wait and who has what.

    The page is on this machine alone, shows what you may read, and changes nothing. It says what `pumice explain` says, and
    follows the cluster until Ctrl-C.
    """
    scheduling = read_config(config)
    run(_serve(cluster, port, namespace, scheduling, opens=not no_browser))


async def _serve(
    cluster: ClusterOptions, port: int, namespace: str | None, config: "Config", *, opens: bool
) -> None:
    """Serve the page until the user ends it."""
    import asyncio

    from pumice.api.kinds import POD
    from pumice.cluster.errors import Forbidden
    from pumice.cluster.lifecycle import stop_on_signals, until_any
    from pumice.cluster.paths import collection_path

    collection_path(
        POD, namespace
    )  # no request of the page names the namespace and would refuse it
    kubeconfig = str(cluster.kubeconfig) if cluster.kubeconfig else None
    stop = asyncio.Event()
    async with cluster.connect() as client:
        with suppress(Forbidden):
            await client.version()  # a wrong address is reported here, not on the page
        names = {"kubeconfig": kubeconfig, "context": cluster.context}
        with stop_on_signals(stop):
            async with serving(client, config, port, namespace, **names) as (address, views):
                write(address)
                sys.stdout.flush()
                note("Ctrl-C ends it")
                with _opened(address if opens else None):
                    await until_any(stop, views)


@asynccontextmanager
async def serving(
    client: "Client",
    config: "Config",
    port: int = 0,
    namespace: str | None = None,
    **names: str | None,
) -> "AsyncIterator[tuple[str, asyncio.Task[None]]]":
    """Serve the page on loopback inside the block, which gets its address, and the task that keeps it current.

    Args:
        client: The connection to the cluster.
        config: Configuration of the scheduler.
        port: Port of the page; 0 takes a free port.
        namespace: The only namespace to show; None for all that may be read.
        names: `kubeconfig` and `context` with which commands name the cluster.

    Raises:
        UserError: The port is taken.
    """
    import asyncio

    from pumice.cli import lean
    from pumice.cli.processes.components import why_no_port

    with lean.importing():
        from pumice.cli.live.web_views import WebViews
        from pumice.web import Commands, WebServer

    views = WebViews(client, config, namespace)
    server = WebServer(views, Commands(**names))
    try:
        await server.open(port)
    except OSError as error:
        raise UserError(f"--port {port}: {why_no_port(error)}") from None
    task = asyncio.create_task(views.run(), name="views")
    try:
        yield server.address, task
        if task.done():
            task.result()  # it ends only by an error
    finally:
        task.cancel()
        await asyncio.wait([task])
        await server.close()


@contextmanager
def _opened(address: str | None) -> "Iterator[None]":
    """Open an address in the user's browser, if there is one.

    The browser gets the name of a file that only the user can read and that leads to the address: everybody on a machine can
    read the arguments of commands.
    """
    if address is None:
        yield
        return
    import html
    import tempfile
    import webbrowser
    from pathlib import Path

    with tempfile.TemporaryDirectory(
        prefix="pumice-web-"
    ) as folder:  # which only the user can enter
        file, to = Path(folder, "open.html"), html.escape(address)
        file.write_text(
            f'<!doctype html><title>Pumice</title><meta http-equiv="refresh" content="0;url={to}"><a href="{to}">Pumice</a>\n',
            encoding="utf-8",
        )
        with suppress(webbrowser.Error):
            webbrowser.open(file.as_uri())
        yield
