"""Quantities of a queue: they are valid and consistent; and by how much a queue exceeds a limit.

For every resource guarantee ≤ deserved ≤ capability. Resources that `capability` does not name are not limited. Queue
`root` is the whole cluster, so users may not change its quantities.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pumice.api.quantities import MILLI, format_milli, parse_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.differences import shown
from pumice.webhook.rules.resource_names import is_integer, misspelt
from pumice.webhook.rules.rule import Rule, warned

Q_QUANTITY = Rule(
    "Q-QUANTITY",
    "quantities can be parsed",
    "Queues are compared by these quantities.",
    "capability: {memory: 10 GB}",
)
Q_NEG = Rule(
    "Q-NEG",
    "quantities are not negative",
    "A negative share has no meaning.",
    "capability: {cpu: -10}",
)
Q_INT = Rule(
    "Q-INT",
    "quantities of counted resources are integers",
    "A device or a pod cannot be divided.",
    "capability: {nvidia.com/gpu: 500m}",
)
Q_GUAR_NO_DESERVED = Rule(
    "Q-GUAR-NO-DESERVED",
    "what is guaranteed is also deserved",
    "A queue is guaranteed only what it deserves.",
    "guarantee: {resource: {cpu: 1}}",
    reason="FieldValueRequired",
    compares=True,
)
Q_GUAR_GT_DESERVED = Rule(
    "Q-GUAR-GT-DESERVED",
    "the guarantee is at most what is deserved",
    "A queue is guaranteed at most what it deserves.",
    "deserved: {cpu: 1}, guarantee: {resource: {cpu: 2}}",
    compares=True,
)
Q_DES_GT_CAP = Rule(
    "Q-DES-GT-CAP",
    "what is deserved is at most the capability",
    "The queue could never use its deserved share.",
    "capability: {cpu: 1}, deserved: {cpu: 2}",
    compares=True,
)
Q_RESOURCE = warned(
    "Q-RESOURCE",
    "resource names are spelt right",
    "A limit on a resource that does not exist has no effect.",
    "capability: {nvdia.com/gpu: 8}",
)
Q_CAP_ZERO = warned(
    "Q-CAP-ZERO",
    "capability is not 0",
    "In the tree of queues 0 means none; Volcano's scheduler takes 0 cpu or memory for unlimited.",
    "capability: {nvidia.com/gpu: 0}",
)


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


Amounts = Mapping[str, str | int]
"""Resource name to quantity, as a manifest spells it."""


def guaranteed(queue: Queue) -> Amounts:
    """`spec.guarantee.resource`, empty when left out."""
    guarantee = queue.spec.guarantee
    return (guarantee.resource if guarantee is not None else None) or _NONE


_NONE: Amounts = {}
AMOUNTS: Mapping[str, Callable[[Queue], Amounts]] = {
    "spec.capability": lambda queue: queue.spec.capability or _NONE,
    "spec.deserved": lambda queue: queue.spec.deserved or _NONE,
    "spec.guarantee.resource": guaranteed,
}
"""Quantities of a queue by path, the largest first; empty when left out."""


def milli(value: str | int | None) -> int | None:
    """A quantity in milli-units; None if it is missing or invalid."""
    if value is None:
        return None
    try:
        return parse_milli(value)
    except ValueError:
        return None


def readable(found: Amounts | None) -> dict[str, int]:
    """The valid quantities, in milli-units."""
    if not found:
        return {}
    return {name: amount for name, value in found.items() if (amount := milli(value)) is not None}


def amounts(case: Case, queue: Queue) -> None:
    """Check capability, deserved and guarantee, each by itself."""
    for path, of in AMOUNTS.items():
        for name, value in sorted(of(queue).items()):
            where = f"{path}.{name}"
            if hint := misspelt(name, case.suggestions):
                case.report(Q_RESOURCE, where, f'resource "{name}" is not known{hint}')
            amount = read(case, where, value, Q_NEG)
            if amount is not None and amount % MILLI and is_integer(name):
                case.report(Q_INT, where, f"must be an integer, found {value}")
    for name, amount in sorted(readable(queue.spec.capability).items()):
        if amount == 0:
            message = "0 means none; Volcano treats 0 cpu or memory as unlimited, so leave it out if that is meant"
            case.report(Q_CAP_ZERO, f"spec.capability.{name}", message)


def read(case: Case, path: str, value: str | int, negative: Rule) -> int | None:
    """A quantity in milli-units; an invalid one is reported, and None is returned."""
    try:
        amount = parse_milli(value)
    except ValueError as error:
        empty = "resource values must not be empty; " if value == "" else ""
        case.report(Q_QUANTITY, path, f"{empty}{error}")
        return None
    if amount < 0:
        case.report(negative, path, f"must be greater than or equal to 0, found {value}")
    return amount


def order(_: Case, queue: Queue, _old: Queue | None) -> Iterator[Excess]:
    """Find quantities that violate guarantee ≤ deserved ≤ capability."""
    capability, deserved = readable(queue.spec.capability), readable(queue.spec.deserved)
    for name, amount in sorted(readable(guaranteed(queue)).items()):
        if name not in (queue.spec.deserved or _NONE):
            message = f"must be >= guarantee ({format_milli(amount)}), found none"
            path = f"spec.deserved.{name}"
            yield Excess(("deserved", name), amount, Q_GUAR_NO_DESERVED, path, message)
        elif (limit := deserved.get(name, amount)) < amount:
            path = f"spec.guarantee.resource.{name}"
            message = (
                "deserved must be >= guarantee, found "
                f"deserved {format_milli(limit)} and guarantee {format_milli(amount)}"
            )
            yield Excess(("deserved", name), amount - limit, Q_GUAR_GT_DESERVED, path, message)
    for name, amount in sorted(deserved.items()):
        if (limit := capability.get(name, amount)) < amount:
            path = f"spec.deserved.{name}"
            message = f"must be <= capability ({format_milli(limit)}), found {format_milli(amount)}"
            yield Excess(("capability", name), amount - limit, Q_DES_GT_CAP, path, message)


Q_ROOT_FROZEN = Rule(
    "Q-ROOT-FROZEN",
    "capability, deserved and guarantee of the queue root do not change",
    "root is the whole cluster (setting `enable-root-queue-protection`).",
    "metadata: {name: root}, spec: {capability: {cpu: 10}}",
    reason="FieldValueForbidden",
)


def root_frozen(case: Case, queue: Queue, old: Queue) -> None:
    """Check that an update of root does not change its shares; another spelling is not a change."""
    for path, of in AMOUNTS.items():
        before, new = of(old), of(queue)
        if (readable(before), _invalid(before)) != (readable(new), _invalid(new)):
            found = f"{shown(before or None)} → {shown(new or None)}"
            message = f"root queue's resource attributes must not change, found {found}"
            case.report(Q_ROOT_FROZEN, path, message)


def _invalid(amounts: Amounts) -> dict[str, object]:
    return {name: value for name, value in amounts.items() if milli(value) is None}
