"""The Queue: a share of the cluster, with limits and with the node groups it may use.

Group `scheduling.volcano.sh/v1beta1`, cluster-scoped.

Annotation `pumice.dev/namespaces` says which namespaces may use it. It holds names, `team-a, team-b`, or a label selector
as JSON, `{"matchLabels": {"team": "research"}}`. It takes the right to change Queues to set it, which users of a namespace
do not have. Admission and the scheduler call the same function.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec

from pumice.api import keys
from pumice.api.markers import DNS_SUBDOMAIN_PATTERN, Marker
from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta
from pumice.api.names import dns_label_problem

STATES = ("Open", "Closed", "Closing", "Unknown")
"""States of a Queue; a Queue without a state counts as open."""

Resources = dict[str, str | int]
"""Resource name to quantity, as manifests spell it."""


class NodeGroupTerms(ApiStruct, frozen=True):
    """Names of node groups, required or preferred.

    Attributes:
        required_during_scheduling_ignored_during_execution: Groups that are required (affinity) or excluded
            (anti-affinity).
        preferred_during_scheduling_ignored_during_execution: Groups that are preferred, or to be avoided if possible.
    """

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None

    @property
    def required(self) -> list[str]:
        """Groups that are required (affinity) or excluded (anti-affinity)."""
        return self.required_during_scheduling_ignored_during_execution or []

    @property
    def preferred(self) -> list[str]:
        """Groups that are preferred, or to be avoided if possible."""
        return self.preferred_during_scheduling_ignored_during_execution or []


class QueueAffinity(ApiStruct, frozen=True):
    """Which node groups the pods of a Queue may run on.

    Attributes:
        node_group_affinity: Groups to use.
        node_group_anti_affinity: Groups to avoid.
    """

    node_group_affinity: Annotated[NodeGroupTerms | None, Marker(nullable=True)] = None
    node_group_anti_affinity: Annotated[NodeGroupTerms | None, Marker(nullable=True)] = None


class Guarantee(ApiStruct, frozen=True):
    """Resources that no other queue may take.

    Attributes:
        resource: The resources.
    """

    resource: Annotated[Resources | None, Marker(quantity=True)] = None


class ExtendCluster(ApiStruct, frozen=True):
    """Another cluster that may take the Queue's Jobs.

    Attributes:
        name: Name of the cluster.
        weight: Its weight among the clusters.
        capacity: Its resources.
    """

    name: str = ""
    weight: int = 0
    capacity: Annotated[Resources | None, Marker(quantity=True)] = None


class QueueSpec(ApiStruct, frozen=True):
    """What the Queue may use.

    Attributes:
        weight: Share of the cluster relative to other Queues.
        capability: Upper limit.
        deserved: Share that is given back when others claim it.
        reclaimable: Whether others may take back what exceeds the deserved share.
        extend_clusters: Other clusters that may take its Jobs.
        guarantee: Resources that no other queue may take.
        affinity: Node groups that its pods may run on.
        type: Free text.
        parent: Queue above it; `root` when left out.
        priority: Rank among Queues, higher first.
        dequeue_strategy: `fifo` stops at the first Job that does not fit, `traverse` tries the rest.
    """

    weight: Annotated[int | None, Marker(minimum=1, maximum=65535, default=1)] = None
    capability: Annotated[Resources | None, Marker(quantity=True)] = None
    deserved: Annotated[Resources | None, Marker(quantity=True)] = None
    reclaimable: Annotated[bool | None, Marker(nullable=True)] = None
    extend_clusters: list[ExtendCluster] | None = None
    guarantee: Guarantee | None = None
    affinity: Annotated[QueueAffinity | None, Marker(nullable=True)] = None
    type: Annotated[str, Marker(max_length=253)] = ""
    parent: Annotated[str, Marker(max_length=253, pattern=DNS_SUBDOMAIN_PATTERN)] = ""
    priority: Annotated[int, Marker(minimum=0)] = 0
    dequeue_strategy: Annotated[str, Marker(enum=("fifo", "traverse"), default="traverse")] = ""


class QueueReservation(ApiStruct, frozen=True):
    """Nodes and resources that are locked for the Queue.

    Attributes:
        nodes: Names of the nodes.
        resource: The resources.
    """

    nodes: list[str] | None = None
    resource: Annotated[Resources | None, Marker(quantity=True)] = None


class QueueStatus(ApiStruct, frozen=True):
    """State of the Queue and what it uses.

    Attributes:
        state: `Open` takes PodGroups, the other states do not.
        message: Why it is closed, or what is wrong with it.
        unknown: PodGroups in phase Unknown.
        pending: PodGroups in phase Pending.
        running: PodGroups in phase Running.
        inqueue: PodGroups in phase Inqueue.
        completed: PodGroups in phase Completed.
        reservation: Nodes and resources that are locked for it.
        allocated: Resources of its pods.
    """

    state: Annotated[str, Marker(enum=STATES)] = ""
    message: str = ""
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    reservation: QueueReservation | None = None
    allocated: Annotated[Resources | None, Marker(quantity=True)] = None


class Queue(ApiStruct, frozen=True):
    """A share of the cluster.

    Attributes:
        spec: What it may use.
        status: Its observed state and resource usage.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def is_open(self) -> bool:
        """Whether it takes new PodGroups; a Queue without a state counts as open."""
        return self.status.state in ("", "Open")

    @property
    def is_fifo(self) -> bool:
        """Whether it takes its gangs strictly in order."""
        return self.spec.dequeue_strategy == "fifo"


LONGEST = 64 * 1024
"""Characters of the annotation that are read."""

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class QueueUsers(NamedTuple):
    """The namespaces that may use a queue.

    Attributes:
        names: Their names; empty where a selector decides.
        selector: Selects them by their labels; None where names are listed.
        problem: Why the annotation cannot be read, so that no namespace may use the queue; empty if it can.
    """

    names: frozenset[str] = frozenset()
    selector: LabelSelector | None = None
    problem: str = ""

    def admit(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether a namespace with these labels may use the queue; None if its labels are not known, so that no selector matches."""
        if self.selector is not None:
            return labels is not None and self.selector.matches(labels)
        return namespace in self.names


def users_of(queue: Queue) -> QueueUsers | None:
    """Who may use a queue; None for a queue that all may use."""
    annotations = queue.metadata.annotations
    if not annotations or keys.NAMESPACES not in annotations:
        return None
    return _read(queue.metadata.annotation(keys.NAMESPACES))


@lru_cache(maxsize=1024)
def _read(text: str) -> QueueUsers:
    if len(text) > LONGEST:
        return QueueUsers(problem=f"is longer than {LONGEST} characters")
    if text.lstrip().startswith("{"):
        return _selector(text)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if (problem := dns_label_problem(name)) is not None:
            return QueueUsers(problem=f'"{name}" is not the name of a namespace: {problem}')
    return QueueUsers(frozenset(names))


def _selector(text: str) -> QueueUsers:
    try:
        selector = msgspec.json.decode(text, type=LabelSelector)
        unknown = set(msgspec.json.decode(text)) - {"matchLabels", "matchExpressions"}
    except (msgspec.DecodeError, RecursionError) as error:
        return QueueUsers(problem=f"is not a label selector: {error}")
    if unknown:
        return QueueUsers(problem=f"is not a label selector: it has {', '.join(sorted(unknown))}")
    for each in selector.match_expressions or ():
        if each.operator not in _OPERATORS:
            return QueueUsers(problem=f'"{each.operator}" is not one of {", ".join(_OPERATORS)}')
    if not selector.match_labels and not selector.match_expressions:
        return QueueUsers(problem="is a label selector without a label, which selects everything")
    return QueueUsers(selector=selector)
