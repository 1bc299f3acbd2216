"""HyperNodes: discovery by labels of Nodes, and the number of Nodes of each."""

from pumice.controller.hypernodes.domains import OFF, Discovery, NodeCounter
from pumice.controller.hypernodes.plan import plan_discovery

__all__ = ["OFF", "Discovery", "NodeCounter", "plan_discovery"]
