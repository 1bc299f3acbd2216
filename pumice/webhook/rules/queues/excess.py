"""By how much a queue exceeds a limit, and the message about it.

It must be possible to bring a queue back within its limits in steps, also if other queues exceed theirs. So an update
is refused only if it causes an excess or increases it; a smaller excess is admitted. The identity of the limit is
compared, too, and not only rule and path: a queue that moves may exceed a limit of its old and of its new parent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

LISTED = 10
"""Items that a message lists at most."""


def counted(number: int, noun: str) -> str:
    """A number with a noun: `1 queue`, `3 queues`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(items: Iterable[str]) -> str:
    """Items separated by commas, at most ten of them."""
    shown = list(items)
    return ", ".join(shown[:LISTED]) + (", …" if len(shown) > LISTED else "")


def chained(names: Sequence[str], arrow: str) -> str:
    """Names joined by an arrow; if there are more than ten, those in the middle are left out."""
    if len(names) <= LISTED:
        return arrow.join(names)
    half = LISTED // 2
    return arrow.join([*names[:half], "…", *names[-half:]])


class Excess(NamedTuple):
    """A limit that is exceeded.

    Attributes:
        limit: Identifies the limit; it does not depend on the quantities.
        amount: By how much the limit is exceeded, in milli-units or levels.
        rule: The rule that it breaks.
        path: Path of the field.
        message: What was found, and what was expected.
    """

    limit: tuple[str, ...]
    amount: int
    rule: Rule
    path: str
    message: str


Find = Callable[[Case, Queue, Queue | None], Iterator[Excess]]
"""Finds excesses in the tree with the given queue. Excesses that cannot be larger than in the tree with the stored queue may be left out."""


def judge(case: Case, queue: Queue, find: Find, old: Queue | None) -> None:
    """Report limits that are exceeded, unless they were exceeded by as much before."""
    found = list(find(case, queue, old))
    if not found:
        return
    before = find(case, old, None) if old is not None else ()
    standing = {each.limit: each.amount for each in before}
    for each in found:
        if each.limit not in standing or each.amount > standing[each.limit]:
            case.report(each.rule, each.path, each.message)
