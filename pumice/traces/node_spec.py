"""Nodes from a short text, the value of `--nodes`: groups, each a count and what one node has.

64x8gpu,32cpu,256Gi+16x64cpu    amounts with commas or slashes between, groups with plus signs
3x8/32Gi/nvidia.com/gpu=4       a number alone is one of CPUs
2,1,4    2x8/32Gi,16            where CPUs are named again, or a count, the next group begins
"""

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeStatus
from pumice.api.raw import object_in
from pumice.traces.amounts import read_amount
from pumice.traces.trace import TraceError, TraceJob

NODES_LIMIT = 100_000

_PART = re.compile(
    r"\s*(?:(?P<count>\d+)x)?(?P<amount>(?:(?:[a-zA-Z][\w.-]*/)?[\w.-]+=)?[^\s,;/+]+)\s*(?P<end>[,;/+]?)",
    re.ASCII,
)
"""One amount, and what follows it. The name of a resource may have a domain in front, which begins with a letter."""
_CPUS = re.compile(r"\d+(?:\.\d+)?m?", re.ASCII)

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
    groups = node_groups(spec, NODES_LIMIT)
    total = sum(count for count, _ in groups)
    named = {name for _, amounts in groups for name in amounts}
    ample = _AMPLE | dict.fromkeys(sorted(asked - named - _AMPLE.keys()), _AMPLE_DEVICES)
    limited = set.intersection(*(set(amounts) for _, amounts in groups))
    width = len(str(total))
    nodes = [
        node_with(f"node-{place:0{width}}", amounts)
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
            for kind in ("requests", "limits"):
                found.update(object_in(here.get("resources"), kind))


def node_groups(spec: str, most: int) -> list[tuple[int, dict[str, str]]]:
    """Read groups of nodes: how many each has, and the amounts of one of its nodes.

    Args:
        spec: The text.
        most: How many nodes there may be.

    Raises:
        TraceError: The text is something else, or there are more nodes.
    """
    groups: list[tuple[int, dict[str, str]]] = []
    place, before = 0, "+"
    try:
        while place < len(spec) or before:
            part = _PART.match(spec, place)
            if part is None:
                raise ValueError(f"{spec[place:][:40]!r} describes no nodes")
            text, count = part["amount"], int((part["count"] or "1")[:9])
            if not count:
                raise ValueError(f"{part[0][:40]!r} describes no nodes")
            name, amount = read_amount(f"{text}cpu" if _CPUS.fullmatch(text) else text)
            is_again = bool(groups) and name in groups[-1][1]
            if before == "+" or part["count"] or (is_again and name == "cpu" and before != "/"):
                groups.append((count, {}))
            elif is_again:
                raise ValueError(f"{text[:40]!r} names {name} a second time")
            groups[-1][1][name] = amount
            place, before = part.end(), part["end"]
    except ValueError as error:
        raise TraceError(
            f"{spec[:80]!r}: {error}; expected [COUNTx]AMOUNT[,AMOUNT…] with + between groups, for "
            "example 3x8/32Gi or 64x8gpu,32cpu,256Gi+16x64cpu"
        ) from None
    if sum(count for count, _ in groups) > most:
        raise TraceError(f"{spec[:80]!r}: more than {most:,} nodes")
    return groups


def node_with(name: str, amounts: Mapping[str, str], labels: Mapping[str, str] = {}) -> Node:
    """A node that has some amounts."""
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **labels}),
        status=NodeStatus(allocatable=dict(amounts), capacity=dict(amounts)),
    )
