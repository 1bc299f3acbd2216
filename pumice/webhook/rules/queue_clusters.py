"""Other clusters that may take a Queue's Jobs: each has a name of its own and amounts that exist."""

from pumice.api.quantities import parse_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queue_amounts import Q_QUANTITY
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_CLUSTER_NAME", "RULES", "clusters"]

Q_CLUSTER_NAME = Rule(
    "Q-CLUSTER-NAME",
    "a cluster in extendClusters has a name",
    "Nobody could tell where its Jobs would go.",
    "extendClusters: [{weight: 1}]",
    reason="FieldValueRequired",
    stricter=True,
)
Q_CLUSTER_DUP = Rule(
    "Q-CLUSTER-DUP",
    "no cluster is twice in extendClusters",
    "Which of the two weights and capacities counts would be a guess.",
    "extendClusters: [{name: east}, {name: east}]",
    reason="FieldValueDuplicate",
    stricter=True,
)
Q_CLUSTER_WEIGHT = Rule(
    "Q-CLUSTER-WEIGHT",
    "weights in extendClusters are not negative",
    "There is no share smaller than none.",
    "extendClusters: [{name: east, weight: -1}]",
    stricter=True,
)
Q_CLUSTER_CAPACITY = Rule(
    "Q-CLUSTER-CAPACITY",
    "capacities in extendClusters are not negative",
    "No cluster takes less than nothing.",
    "extendClusters: [{name: east, capacity: {cpu: -1}}]",
    stricter=True,
)

RULES = (Q_CLUSTER_NAME, Q_CLUSTER_DUP, Q_CLUSTER_WEIGHT, Q_CLUSTER_CAPACITY)


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
            _capacity(case, f"{path}.capacity.{name}", value)


def _capacity(case: Case, path: str, value: str | int) -> None:
    try:
        amount = parse_milli(value)
    except ValueError as error:
        case.report(Q_QUANTITY, path, str(error))
        return
    if amount < 0:
        case.report(Q_CLUSTER_CAPACITY, path, f"must be 0 or more, found {value}")
