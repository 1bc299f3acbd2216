"""Fields of a queue that are checked by themselves: weight, priority, dequeue strategy, and other clusters; and the defaults of a Queue.

The CRD has the same bounds. Here the message says what is expected, also offline.

Defaults are written when a Queue is created, and again in updates: there only if the stored queue has the default, so that an
update of one field changes no other.
"""

from pumice.api import keys
from pumice.api.queues import Queue, QueueSpec, users_of
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftQueue
from pumice.webhook.rules.queues.amounts import read
from pumice.webhook.rules.rule import Rule, stricter, warned

Q_WEIGHT = Rule(
    "Q-WEIGHT",
    "weight is from 1 to 65535",
    "Shares are divided by weight; a queue without a weight gets nothing.",
    "weight: -1",
)
Q_PRIORITY = Rule(
    "Q-PRIORITY",
    "priority is from 0 to 2147483647",
    "The queue of the highest priority comes first; 0 is the lowest there is.",
    "priority: -1",
)
Q_DEQUEUE = Rule(
    "Q-DEQUEUE",
    "dequeueStrategy is fifo or traverse",
    "No other way to take Jobs out of a queue exists.",
    "dequeueStrategy: fiffo",
    reason="FieldValueNotSupported",
)


_STRATEGIES = ("fifo", "traverse")


def fields(case: Case, queue: Queue) -> None:
    """Check the simple fields."""
    spec = queue.spec
    for rule, field, found, least, most in (
        (Q_WEIGHT, "weight", spec.weight, 1, 65535),
        (Q_PRIORITY, "priority", spec.priority, 0, 2**31 - 1),
    ):
        if found is not None and not least <= found <= most:
            message = f"must be between {least} and {most}, inclusive, found {found}"
            case.report(rule, f"spec.{field}", message)
    strategy = spec.dequeue_strategy
    if strategy and strategy not in _STRATEGIES:
        hint = case.did_you_mean(strategy, _STRATEGIES)
        message = (
            f'"{strategy}" is not a dequeueStrategy{hint}; expected one of {", ".join(_STRATEGIES)}'
        )
        case.report(Q_DEQUEUE, "spec.dequeueStrategy", message)


Q_NAMESPACES = Rule(
    "Q-NAMESPACES",
    "the namespaces that may use a queue can be read",
    "No namespace may use a queue whose annotation cannot be read.",
    f"{keys.NAMESPACES}: Team_A",
)


def namespaces(case: Case, queue: Queue) -> None:
    """Check who may use the queue."""
    users = users_of(queue)
    if users is not None and users.problem:
        message = (
            f'{users.problem}; expected names such as "team-a, team-b", or a label selector such as '
            '{"matchLabels": {"team": "research"}}'
        )
        case.report(Q_NAMESPACES, f"metadata.annotations[{keys.NAMESPACES}]", message)


Q_CLUSTER_NAME = stricter(
    "Q-CLUSTER-NAME",
    "a cluster in extendClusters has a name",
    "Jobs could not be assigned to the cluster.",
    "extendClusters: [{weight: 1}]",
    reason="FieldValueRequired",
)
Q_CLUSTER_DUP = stricter(
    "Q-CLUSTER-DUP",
    "no cluster is twice in extendClusters",
    "The two entries could contradict each other.",
    "extendClusters: [{name: east}, {name: east}]",
    reason="FieldValueDuplicate",
)
Q_CLUSTER_WEIGHT = stricter(
    "Q-CLUSTER-WEIGHT",
    "weights in extendClusters are not negative",
    "A negative share has no meaning.",
    "extendClusters: [{name: east, weight: -1}]",
)
Q_CLUSTER_CAPACITY = stricter(
    "Q-CLUSTER-CAPACITY",
    "capacities in extendClusters are not negative",
    "A negative capacity has no meaning.",
    "extendClusters: [{name: east, capacity: {cpu: -1}}]",
)


def clusters(case: Case, queue: Queue) -> None:
    """Check the clusters of `spec.extendClusters`."""
    first: dict[str, int] = {}
    for index, cluster in enumerate(queue.spec.extend_clusters or ()):
        path = f"spec.extendClusters[{index}]"
        if not cluster.name:
            case.report(Q_CLUSTER_NAME, f"{path}.name", "must be set")
        elif cluster.name in first:
            message = f'"{cluster.name}" is in extendClusters[{first[cluster.name]}] already'
            case.report(Q_CLUSTER_DUP, f"{path}.name", message)
        else:
            first[cluster.name] = index
        if cluster.weight < 0:
            message = f"must be 0 or more, found {cluster.weight}"
            case.report(Q_CLUSTER_WEIGHT, f"{path}.weight", message)
        for name, value in sorted((cluster.capacity or {}).items()):
            read(case, f"{path}.capacity.{name}", value, Q_CLUSTER_CAPACITY)


DEFAULT_WEIGHT = 1
_DEFAULTED = QueueSpec(reclaimable=True, weight=DEFAULT_WEIGHT)

Q_ZERO = warned(
    "Q-ZERO",
    "weight is not written as 0",
    "Volcano cannot tell 0 from a missing value and puts the default in its place; so does Pumice.",
    "weight: 0",
)


def queue_defaults(case: Case, queue: DraftQueue, old: DraftQueue | None = None) -> None:
    """Write defaults into the case's patch."""
    patch = case.patch
    path = queue.metadata.annotation(keys.HIERARCHY)
    weights = queue.metadata.annotation(keys.HIERARCHY_WEIGHTS)
    moved = old is None or old.metadata.annotation(keys.HIERARCHY) != path
    is_rooted = path.split("/", 1)[0] == keys.ROOT_QUEUE
    if path and weights and moved and not is_rooted:
        annotations = "/metadata/annotations"
        patch.set(f"{annotations}/{escape(keys.HIERARCHY)}", f"{keys.ROOT_QUEUE}/{path}")
        patch.set(f"{annotations}/{escape(keys.HIERARCHY_WEIGHTS)}", f"1/{weights}")
    if queue.spec is None:
        patch.missing("/spec")
    spec = queue.spec or QueueSpec()
    stored = _DEFAULTED if old is None else old.spec or QueueSpec()
    if spec.reclaimable is None and stored.reclaimable is not None:
        patch.set("/spec/reclaimable", True)
    if not spec.weight and stored.weight:
        patch.set("/spec/weight", DEFAULT_WEIGHT)
        if spec.weight == 0:
            case.report(Q_ZERO, "spec.weight", f"0 counts as not set and becomes {DEFAULT_WEIGHT}")
