"""The nodes of a cluster in this process, as `--nodes` describes them."""

from dataclasses import dataclass, field

from pumice.api.quantities import parse_milli
from pumice.cli.exits import UserError
from pumice.traces.node_spec import node_groups
from pumice.traces.trace import TraceError

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One simulated node.

    Attributes:
        name: Its name.
        cpu: Cores.
        memory: Memory.
        resources: Further resources.
        pods: Pods that it takes.
    """

    name: str
    cpu: str
    memory: str = "32Gi"
    resources: dict[str, str] = field(default_factory=dict)
    pods: int = 110


def read_nodes(text: str, memory: str = "32Gi") -> list[SimulatedNode]:
    """Read the value of `--nodes`, as `pumice.traces.node_spec` explains it.

    Args:
        text: The text.
        memory: Memory of nodes for which none is named.

    Raises:
        UserError: The text is something else.
    """
    try:
        groups = node_groups(text, MOST_NODES)
    except TraceError as error:
        raise UserError(f"--nodes {error}") from None
    nodes: list[SimulatedNode] = []
    for count, amounts in groups:
        cpu = amounts.pop("cpu", "0")
        if not parse_milli(cpu):
            raise UserError(f"--nodes {text[:80]!r}: a node without CPUs runs no pod")
        own, pods = amounts.pop("memory", memory), amounts.pop("pods", "110")
        nodes += [
            SimulatedNode(f"node{number}", cpu, own, amounts, parse_milli(pods) // 1000)
            for number in range(len(nodes) + 1, len(nodes) + count + 1)
        ]
    return nodes
