"""The parts of a Node and of the small cluster objects that the scheduler reads."""

from pumice.api.meta import ApiStruct, ObjectMeta

__all__ = ["Namespace", "Node", "NodeCondition", "NodeSpec", "NodeStatus", "PriorityClass", "Taint"]


class Taint(ApiStruct, frozen=True):
    """A taint: pods that do not tolerate it are kept away from the node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(ApiStruct, frozen=True):
    """Taints of a node, and whether it takes pods."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeCondition(ApiStruct, frozen=True):
    """A condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(ApiStruct, frozen=True):
    """Resources of a node, as quantities in the spelling of the API server."""

    allocatable: dict[str, str | int] | None = None
    capacity: dict[str, str | int] | None = None
    conditions: list[NodeCondition] | None = None


class Node(ApiStruct, frozen=True):
    """A node as Pumice reads it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether the node takes pods; one that reports no Ready condition counts as ready."""
        for condition in self.status.conditions or ():
            if condition.type == "Ready":
                return condition.status == "True"
        return True


class PriorityClass(ApiStruct, frozen=True):
    """A named priority; the one with `global_default` applies to pods that name none."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class Namespace(ApiStruct, frozen=True):
    """A namespace; its annotation may name the default queue of its PodGroups."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
