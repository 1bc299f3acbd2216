"""The annotations of hierarchical fair share: a path of queues and a weight for each step."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterator

from pumice.api import keys
from pumice.api.messages import counted
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, stricter
from pumice.webhook.view import AdmissionView

Q_HIER_LEN = Rule(
    "Q-HIER-LEN",
    "the hierarchy has a weight for each step",
    "A step without a weight has no share.",
    "volcano.sh/hierarchy: root/a/b, volcano.sh/hierarchy-weights: 1/2",
    compares=True,
)
Q_HIER_WEIGHT_NUM = Rule(
    "Q-HIER-WEIGHT-NUM",
    "weights of the hierarchy are numbers",
    "Shares are divided by these weights.",
    "volcano.sh/hierarchy-weights: 1/a/3",
)
Q_HIER_WEIGHT_FINITE = stricter(
    "Q-HIER-WEIGHT-FINITE",
    "weights of the hierarchy are finite",
    "An infinite weight takes the whole share; NaN makes every share undefined.",
    "volcano.sh/hierarchy-weights: 1/NaN/3",
)
Q_HIER_WEIGHT_POS = Rule(
    "Q-HIER-WEIGHT-POS",
    "weights of the hierarchy are above 0",
    "A step with a weight of 0 gets nothing.",
    "volcano.sh/hierarchy-weights: 1/-1/3",
)
Q_HIER_SUBPATH = Rule(
    "Q-HIER-SUBPATH",
    "a queue's path is not the start of another queue's path",
    "Only the last step of a path is a queue; the steps before it only divide shares.",
    "volcano.sh/hierarchy: root/a, where another queue has root/a/b",
    reason="FieldValueForbidden",
)
Q_HIER_BELOW = stricter(
    "Q-HIER-BELOW",
    "a queue's path does not continue another queue's path",
    "The other queue would become a step that only divides shares, and its Jobs would get nothing.",
    "volcano.sh/hierarchy: root/a/b, where another queue has root/a",
    reason="FieldValueForbidden",
)

_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)",
    re.ASCII,
)
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity)|nan", re.ASCII | re.IGNORECASE)
_PATH = f"metadata.annotations[{keys.HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{keys.HIERARCHY_WEIGHTS}]"
_ABOVE = f"weights in {keys.HIERARCHY_WEIGHTS} must be larger than 0"


def hierarchy(case: Case, queue: Queue) -> None:
    """Check the annotations of a queue that has one of the two."""
    path = queue.metadata.annotation(keys.HIERARCHY)
    weights = queue.metadata.annotation(keys.HIERARCHY_WEIGHTS)
    if not path and not weights:
        return
    steps, shares = path.split("/"), weights.split("/")
    if len(steps) != len(shares):
        message = (
            f"must have the same length with {keys.HIERARCHY}: found {counted(len(shares), 'weight')} in "
            f'"{weights}" for {counted(len(steps), "step")} in "{path}"'
        )
        case.report(Q_HIER_LEN, _WEIGHTS, message)
    if weights or len(steps) == 1:  # a single step without a weight has an invalid weight
        for weight in shares:
            number = _number(weight)
            if number is None:
                case.report(Q_HIER_WEIGHT_NUM, _WEIGHTS, f'"{weight}" is invalid number; {_ABOVE}')
            elif number <= 0:
                case.report(Q_HIER_WEIGHT_POS, _WEIGHTS, f'{_ABOVE}, found "{weight}"')
            elif not math.isfinite(number):
                message = f'must be finite numbers, found "{weight}"'
                case.report(Q_HIER_WEIGHT_FINITE, _WEIGHTS, message)
    if path:
        _place(case, queue, path)


def _number(text: str) -> float | None:
    """A number as Go reads it; None if it is invalid or too large."""
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class _Paths:
    """Paths of all queues of a view, by queue and in their order, so that those that begin alike are neighbours."""

    __slots__ = ("_lengths", "_ordered", "_queues")

    def __init__(self, view: AdmissionView, _: str) -> None:
        self._queues: dict[str, list[str]] = {}
        for queue in view.queues():
            if path := queue.metadata.annotation(keys.HIERARCHY):
                self._queues.setdefault(path, []).append(queue.metadata.name)
        self._ordered = sorted(self._queues)
        self._lengths = sorted({len(path) for path in self._queues})

    def related(self, path: str) -> Iterator[tuple[str, str]]:
        """Queues whose path continues this one, or is continued by it, with their paths."""
        start = f"{path}/"
        for place in range(bisect_left(self._ordered, start), len(self._ordered)):
            below = self._ordered[place]
            if not below.startswith(start):
                break
            yield from ((name, below) for name in self._queues[below])
        for length in self._lengths[: bisect_left(self._lengths, len(path))]:
            if path[length] == "/":
                above = path[:length]
                yield from ((name, above) for name in self._queues.get(above, ()))


def _place(case: Case, queue: Queue, path: str) -> None:
    """Check the position of a queue's path among those of other queues."""
    for name, theirs in sorted(case.view.derived(_Paths, "").related(path)):
        if name == queue.metadata.name:
            continue
        if theirs.startswith(f"{path}/"):
            message = (
                "another queue is not allowed to be in the sub path of this one: "
                f'"{name}" ({theirs}) is below "{path}"'
            )
            case.report(Q_HIER_SUBPATH, _PATH, message)
        else:
            case.report(Q_HIER_BELOW, _PATH, f'"{path}" is below queue "{name}" ({theirs})')
