"""Fields of a Queue that stand for themselves: weight, priority, and how Jobs leave it.

The CRD has the same bounds; here they are told with what would be right, also where no API server stands
in front.
"""

from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_WEIGHT", "RULES", "fields"]

Q_WEIGHT = Rule(
    "Q-WEIGHT",
    "weight is from 1 to 65535",
    "Shares are divided by weight; what has none gets nothing.",
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

RULES = (Q_WEIGHT, Q_PRIORITY, Q_DEQUEUE)

_LARGEST_WEIGHT = 65535
_LARGEST_PRIORITY = 2**31 - 1
_STRATEGIES = ("fifo", "traverse")


def fields(case: Case, queue: Queue) -> None:
    """Check the plain fields."""
    spec = queue.spec
    if spec.weight is not None and not 1 <= spec.weight <= _LARGEST_WEIGHT:
        message = f"must be from 1 to {_LARGEST_WEIGHT}, found {spec.weight}"
        case.report(Q_WEIGHT, "spec.weight", message)
    if not 0 <= spec.priority <= _LARGEST_PRIORITY:
        message = f"must be from 0 to {_LARGEST_PRIORITY}, found {spec.priority}"
        case.report(Q_PRIORITY, "spec.priority", message)
    strategy = spec.dequeue_strategy
    if strategy and strategy not in _STRATEGIES:
        hint = case.did_you_mean(strategy, _STRATEGIES)
        message = f'"{strategy}" is not a strategy{hint}, expected one of {", ".join(_STRATEGIES)}'
        case.report(Q_DEQUEUE, "spec.dequeueStrategy", message)
