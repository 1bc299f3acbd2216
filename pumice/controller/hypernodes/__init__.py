"""HyperNodes: discovery by labels of Nodes, and the number of Nodes of each."""

from pumice.controller.hypernodes.counts import NodeCounter
from pumice.controller.hypernodes.domains import Labels
from pumice.controller.hypernodes.plan import plan_discovery
from pumice.controller.hypernodes.settings import OFF, Discovery

__all__ = ["OFF", "Discovery", "Labels", "NodeCounter", "plan_discovery"]
