"""Which namespaces may use a queue: annotation `pumice.dev/namespaces` of the Queue.

It holds names, `team-a, team-b`, or a label selector as JSON, `{"matchLabels": {"team": "research"}}`. It takes the
right to change Queues to set it, which users of a namespace do not have. Admission and the scheduler call the same function.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from pumice.api import keys
from pumice.api.meta import LabelSelector
from pumice.api.names import dns_label_problem
from pumice.api.queues import Queue

__all__ = ["QueueUsers", "users_of"]

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
    if keys.NAMESPACES not in (queue.metadata.annotations or {}):
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
