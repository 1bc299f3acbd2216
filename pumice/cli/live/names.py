"""Names of objects of the cluster, for shells that complete a command, and for a name that is misspelt.

A shell shows nothing while it waits, and no message: what cannot be read in time is not offered.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import typer

if TYPE_CHECKING:
    from pumice.api.kinds import Kind
    from pumice.cluster.client import Client

_SECONDS = 2.0
"""How long to wait for the cluster."""
_MOST = 500
"""Objects that are read: one page."""


def complete_jobs(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the Jobs in the namespace that the command line names, or of the kubeconfig."""
    from pumice.api.kinds import JOB

    return names(context, JOB, incomplete)


def complete_queues(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the queues."""
    from pumice.api.kinds import QUEUE

    return names(context, QUEUE, incomplete)


def names(context: typer.Context, kind: "Kind", incomplete: str) -> list[str]:
    """Names of objects that begin with what was typed; empty if the cluster cannot be read."""
    import asyncio

    try:
        found = asyncio.run(asyncio.wait_for(_read(context.params, kind), _SECONDS))
    except Exception:  # whatever it is, there is no place for a message
        return []
    # Those that the command line has already are not offered again.
    given = {
        each
        for value in context.params.values()
        if isinstance(value, list | tuple)
        for each in value
    }
    return sorted(each for each in found if each.startswith(incomplete) and each not in given)


class _NameOnly(msgspec.Struct):
    name: str = ""


class _NamedObject(msgspec.Struct):
    metadata: _NameOnly


class _NamePage(msgspec.Struct):
    items: list[_NamedObject] = []


async def names_in(client: "Client", kind: "Kind", namespace: str | None) -> list[str]:
    """Names of the first objects of a kind, one page.

    Raises:
        ApiError: They cannot be read.
    """
    from contextlib import aclosing

    pages = client.collection(kind, namespace if kind.namespaced else None).bodies(_MOST)
    async with aclosing(pages):
        page = msgspec.json.decode(await anext(pages), type=_NamePage)
    return [each.metadata.name for each in page.items]


async def _read(given: dict[str, Any], kind: "Kind") -> Sequence[str]:
    from pumice.cli.options import ClusterOptions

    options = ClusterOptions(given.get("kubeconfig"), given.get("context"), given.get("server"))
    async with options.connect() as client:
        return await names_in(client, kind, given.get("namespace") or client.connection.namespace)
