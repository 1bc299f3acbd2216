"""Which rule an amount in the tree of queues breaks: limits of root, and resources that Volcano passes over."""

from pumice.api import keys
from pumice.webhook.rules.rule import Rule

__all__ = ["RULES", "ruled"]

Q_ROOT_LIMIT = Rule(
    "Q-ROOT-LIMIT",
    "what the queue root limits is limited for the queues below it",
    "root stands for the whole cluster; what it does not have, nobody can get. Volcano does not look.",
    "capability: {cpu: 20}, where root has capability: {cpu: 10}",
    stricter=True,
    compares=True,
)
Q_TREE_OTHER = Rule(
    "Q-TREE-OTHER",
    "amounts of every resource fit into the tree",
    "Volcano compares cpu, memory, pods, ephemeral storage, huge pages, volumes and extended resources, and no others.",
    "deserved: {count/jobs.batch: 20}, where the parent has deserved: {count/jobs.batch: 10}",
    stricter=True,
    compares=True,
)

RULES = (Q_ROOT_LIMIT, Q_TREE_OTHER)

_COMPARED = frozenset({"cpu", "ephemeral-storage", "memory", "pods"})
_COMPARED_PREFIXES = ("attachable-volumes-", "hugepages-")
_NOT_COMPARED_PREFIXES = ("count/", "requests.")


def ruled(rule: Rule, resource: str, limiting: str) -> Rule:
    """The rule that is broken.

    Args:
        rule: Which it is where Volcano looks.
        resource: Name of the resource.
        limiting: Name of the queue whose amount is the limit.
    """
    if limiting == keys.ROOT_QUEUE:
        return Q_ROOT_LIMIT
    return rule if rule.stricter or _is_compared(resource) else Q_TREE_OTHER


def _is_compared(resource: str) -> bool:
    """Whether Volcano compares amounts of a resource in the tree."""
    if resource in _COMPARED or resource.startswith(_COMPARED_PREFIXES):
        return True
    return "/" in resource and not resource.startswith(_NOT_COMPARED_PREFIXES)
