"""This machine as nodes: the options of the verbs whose pods are its processes, and what these announce."""

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.cli.exits import REFUSED, UserError, finish
from pumice.cli.output import note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from pumice.cli.development.dev_cluster import DevCluster
    from pumice.cli.development.dev_nodes import SimulatedNode
    from pumice.embedded.node.machine import Machine

NODE_ENDED = "the first process of the node has ended, and all pods with it"

ImageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        metavar="NAME=DIR",
        help="A root file system in place of an image, layers from the bottom up with colons between. Images that are not named are "
        "this machine's root. Repeat it for several.",
    ),
]
HostPathOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-host-path",
        metavar="DIR",
        help="A directory of this machine below which volumes `hostPath` may lie. Repeat it for several.",
    ),
]


def local_nodes(text: str | None) -> "list[SimulatedNode]":
    """Nodes that this machine is for the scheduler.

    Args:
        text: The value of `--nodes`; None for one node with all that the machine has.

    Raises:
        UserError: The text describes no nodes.
    """
    from pumice.cli.development.dev_nodes import read_nodes
    from pumice.embedded.node.kubelet import MOST_PODS
    from pumice.embedded.node.machine import capacity

    processors, memory = capacity()
    if text is None:
        found = read_nodes(processors, memory)
    else:
        count = len(read_nodes(text))
        found = read_nodes(text, f"{int(memory.removesuffix('Mi')) // count}Mi")
    return [replace(each, pods=max(1, MOST_PODS // len(found))) for each in found]


def read_images(given: "Sequence[str]") -> "Mapping[str, list[Path]]":
    """Folders of images by name, from the bottom up.

    Raises:
        UserError: A value of `--image` is something else.
    """
    found = {}
    for each in given:
        name, separator, folders = each.rpartition("=")
        if not separator or not name or not folders:
            raise UserError(
                f"--image {each}: expected NAME=DIR, for example python:3.12=/srv/python"
            )
        found[name] = [Path(folder).absolute() for folder in folders.split(":")]
        for folder in found[name]:
            if not folder.is_dir():
                raise UserError(f"--image {each}: there is no directory {folder}")
    return found


def read_allowed(given: "Sequence[Path]") -> list[Path]:
    """Folders of this machine that pods may mount.

    Raises:
        UserError: There is no such folder.
    """
    for each in given:
        if not each.is_dir():
            raise UserError(f"--allow-host-path {each}: there is no such directory")
    # Without `..` as paths of volumes are compared, and with links as the user writes them.
    return [Path(os.path.abspath(each)) for each in given]  # noqa: PTH100


def announce_machine(machine: "Machine") -> None:
    """Say which users pods may have, and what limits them."""
    note(f"mode: {machine.mode}")
    held = "CPU, memory and numbers of processes are held by cgroups"
    if machine.cgroups is None:
        held = "no cgroup may be made here; numbers of processes and bytes in files are held"
    note(f"limits: {held}")


@asynccontextmanager
async def on_this_machine(
    images: "Mapping[str, Sequence[Path]]",
    allowed: "Sequence[Path]",
    starting: "Callable[..., AbstractAsyncContextManager[DevCluster]]",
) -> "AsyncIterator[DevCluster]":
    """Run a cluster whose pods are processes of this machine.

    Raises:
        UserError: Namespaces cannot be made here.
        typer.Exit: The node has ended, which is reported.
    """
    import asyncio

    from pumice.cluster.lifecycle import until_any
    from pumice.embedded.node.kubelet import Kubelet
    from pumice.embedded.node.machine import local_machine
    from pumice.embedded.node.namespaces import NodeError

    try:
        async with local_machine(images, allowed) as machine:
            announce_machine(machine)
            runs_pods = partial(Kubelet, machine=machine, on_line=lambda *_: None)
            async with starting(runs_pods=runs_pods) as cluster:
                ended = machine.namespaces.ended
                parts = asyncio.create_task(until_any(ended, cluster.components))
                yield replace(cluster, components=parts)
                parts.cancel()
                if ended.done():
                    note(NODE_ENDED)
                    finish(REFUSED)
    except NodeError as error:
        raise UserError(str(error)) from None
