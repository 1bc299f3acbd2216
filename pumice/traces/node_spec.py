"""Nodes from a short text, `64x8gpu,32cpu,256Gi+16x64cpu`: groups with plus signs between, each a count and what one node has."""

import re
from collections.abc import Iterable, Set
from typing import Any, NamedTuple

from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeStatus
from pumice.traces.amounts import read_amounts
from pumice.traces.trace import TraceError, TraceJob

NODES_LIMIT = 100_000

_GROUP = re.compile(r"(?:(?P<count>\d+)x)?(?P<amounts>[^+]+)", re.ASCII)

_AMPLE = {"cpu": "1000000", "memory": "32Ti", "pods": "1000000", "ephemeral-storage": "32Ti"}
_AMPLE_DEVICES = "1000000"
"""Of a resource that no group names and jobs request."""


class WrittenNodes(NamedTuple):
    """Nodes from a text.

    Attributes:
        nodes: The nodes.
        ample: Resources that some of them have without limit, so that no part of them says anything.
    """

    nodes: list[Node]
    ample: Set[str] = frozenset()


def nodes_of(spec: str, asked: Set[str] = frozenset()) -> WrittenNodes:
    """Read nodes.

    CPU, memory, storage and pods that a group does not name are ample on its nodes. Devices that no group names are
    ample on all nodes; those that some group names are on its nodes alone.

    Args:
        spec: The text.
        asked: Resources that jobs request.

    Raises:
        TraceError: The text is something else.
    """
    groups = [_group(part.strip(), spec) for part in spec.split("+")]
    total = sum(count for count, _ in groups)
    if total > NODES_LIMIT:
        raise TraceError(f"{spec[:80]!r}: more than {NODES_LIMIT:,} nodes")
    named = {name for _, amounts in groups for name in amounts}
    ample = _AMPLE | dict.fromkeys(sorted(asked - named - _AMPLE.keys()), _AMPLE_DEVICES)
    limited = set.intersection(*(set(amounts) for _, amounts in groups))
    width = len(str(total))
    nodes = [
        _node(f"node-{place:0{width}}", amounts)
        for place, amounts in enumerate(
            (ample | amounts for count, amounts in groups for _ in range(count)), 1
        )
    ]
    return WrittenNodes(nodes, ample.keys() - limited)


def asked_resources(jobs: Iterable[TraceJob]) -> set[str]:
    """Names of the resources that jobs request."""
    found: set[str] = set()
    for job in jobs:
        found.update(job.requests)
        if job.manifest is not None:
            _collect(job.manifest, found)
    return found


def _collect(value: Any, found: set[str]) -> None:
    """Add the names below each `resources` of a manifest."""
    open_values = [value]
    while open_values:
        here = open_values.pop()
        if isinstance(here, list):
            open_values += here
        elif isinstance(here, dict):
            open_values += here.values()
            resources = here.get("resources")
            for kind in ("requests", "limits"):
                amounts = resources.get(kind) if isinstance(resources, dict) else None
                found.update(amounts if isinstance(amounts, dict) else ())


def _group(part: str, spec: str) -> tuple[int, dict[str, str]]:
    match = _GROUP.fullmatch(part)
    try:
        if match is None:
            raise ValueError(f"{part[:40]!r} describes no nodes")
        count = int((match["count"] or "1")[:9])
        amounts = read_amounts(match["amounts"])
        if not count or not amounts:
            raise ValueError(f"{part[:40]!r} describes no nodes")
    except ValueError as error:
        raise TraceError(
            f"{spec[:80]!r}: {error}; expected [COUNTx]AMOUNT[,AMOUNT…] with + between groups, for "
            "example 16x4cpu or 64x8gpu,32cpu,256Gi+16x64cpu"
        ) from None
    return count, amounts


def _node(name: str, amounts: dict[str, str]) -> Node:
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}),
        status=NodeStatus(allocatable=dict(amounts), capacity=dict(amounts)),
    )
