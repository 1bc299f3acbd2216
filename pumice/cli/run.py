"""`pumice run`: Jobs that really run, as processes of this machine."""

from typing import Annotated

import typer

from pumice.cli import lean
from pumice.cli.exits import finish
from pumice.cli.files.configuration import read_config
from pumice.cli.options import Files, Level, SchedulerConfig, read_seconds
from pumice.cli.running.local import (
    HostPathOption,
    ImageOption,
    local_nodes,
    read_allowed,
    read_images,
)

EXAMPLES = (
    "pumice run job.yaml",
    "pumice run job.yaml --nodes 2x4cpu --timeout 10m",
    "pumice run job.yaml --image python:3.12=/srv/roots/python",
    "pumice run job.yaml config.yaml --allow-host-path /data",
    "pumice run flow.yaml --dry-run",
)

_NodesOption = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="SPEC",
        help="Nodes that this machine is for the scheduler: [COUNTx]CPU[/MEMORY][/RESOURCE=AMOUNT], several with commas; or as `simulate --trace` takes them. "
        "Without it one, with its processors and memory.",
    ),
]
_TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="D", help="Abort what still runs after this time, for example 10m."
    ),
]
_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show which pods would run on which nodes, and run none.")
]
_KeepOption = Annotated[
    bool,
    typer.Option(
        "--keep", help="Go on when the Jobs have ended, for kubectl, until Ctrl-C ends it."
    ),
]


def run(
    files: Files,
    image: ImageOption = None,
    nodes: _NodesOption = None,
    allow_host_path: HostPathOption = None,
    timeout: _TimeoutOption = None,
    config: SchedulerConfig = None,
    dry_run: _DryRunOption = False,
    keep: _KeepOption = False,
) -> None:
    """Run Jobs and JobFlows on this machine, without a cluster.

    Jobs are admitted, wired by their plugins and placed as gangs like in a cluster. Then each pod is a group of processes
    with its own address, host name and files, in namespaces of the kernel: no container runtime is needed, and no root. Their output goes to stdout, each line
    with the name of its pod. Other objects in the files, such as ConfigMaps and Queues, are created before.

    Ctrl-C aborts the Jobs by their policies, a second one ends everything at once.

    Exit code 1: a Job failed, was aborted or terminated, or cannot be placed. Exit code 2: a file cannot be read, an object is
    refused, asks for something that is not there, or namespaces cannot be made.
    """
    with lean.importing_http():
        from pumice.cli.files.manifests import named, read
        from pumice.cli.processes import logs
        from pumice.cli.running import following
        from pumice.cli.running.plan import RunPlan

    plan = RunPlan(
        manifests=named(read(files)),
        nodes=local_nodes(nodes),
        images=read_images(image or ()),
        allowed=read_allowed(allow_host_path or ()),
        config=read_config(config),
        timeout=None if timeout is None else read_seconds("--timeout", timeout),
        keep=keep,
    )
    logs.configure(json=False, level=Level.WARNING)
    finish(following.dry_run(plan) if dry_run else following.run(plan))
