"""Simulated nodes on the command line: `2,1,4`, `3x8/32Gi`, `8/64Gi/nvidia.com/gpu=4`."""

import re
from dataclasses import dataclass, field

from pumice.api.quantities import QuantityError, parse_milli
from pumice.cli.exits import UserError

__all__ = ["SimulatedNode", "read_nodes"]

_SPEC = re.compile(r"(?:(?P<count>\d+)x)?(?P<cpu>[^/x]+)(?P<rest>(?:/.+)?)")
_RESOURCE = re.compile(r"/(?P<name>[A-Za-z0-9.-]+(?:/[A-Za-z0-9._-]+)?)=(?P<amount>[^/=]+)")

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One simulated node.

    Attributes:
        name: Its name.
        cpu: Cores.
        memory: Memory.
        resources: Further resources.
    """

    name: str
    cpu: str
    memory: str = "32Gi"
    resources: dict[str, str] = field(default_factory=dict)


def read_nodes(text: str) -> list[SimulatedNode]:
    """Read `[COUNTx]CPU[/MEMORY][/RESOURCE=AMOUNT…]`, several of them with commas between.

    Raises:
        UserError: The text is something else.
    """
    nodes: list[SimulatedNode] = []
    for part in text.split(","):
        match = _SPEC.fullmatch(part.strip())
        if match is None:
            raise _problem(part)
        count, cpu = int(match["count"] or 1), match["cpu"]
        memory, resources = _rest(match["rest"], part)
        for amount in (cpu, memory, *resources.values()):
            _check(amount, part)
        if len(nodes) + count > MOST_NODES:
            raise UserError(f"--nodes {text!r}: more than {MOST_NODES} nodes")
        nodes += [
            SimulatedNode(f"node{number}", cpu, memory, resources)
            for number in range(len(nodes) + 1, len(nodes) + count + 1)
        ]
    return nodes


def _rest(text: str, part: str) -> tuple[str, dict[str, str]]:
    memory = "32Gi"
    if text and "=" not in text.split("/")[1] and not _RESOURCE.match(text):
        memory, _, text = text[1:].partition("/")
        text = f"/{text}" if text else ""
    resources = {match["name"]: match["amount"] for match in _RESOURCE.finditer(text)}
    if "".join(f"/{name}={amount}" for name, amount in resources.items()) != text:
        raise _problem(part)
    return memory, resources


def _check(amount: str, part: str) -> None:
    try:
        if parse_milli(amount) < 0:
            raise QuantityError("negative")
    except QuantityError:
        raise _problem(part) from None


def _problem(part: str) -> UserError:
    return UserError(
        f"--nodes: {part!r} is no node, expected [COUNTx]CPU[/MEMORY][/RESOURCE=AMOUNT], for "
        "example 3x8/32Gi or 2,1,4"
    )
