"""The queue root: it stands for the whole cluster, so what it has does not change by hand."""

from pumice.api.quantities import parse_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.differences import shown
from pumice.webhook.rules.queue_amounts import Amounts, guaranteed
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_ROOT_FROZEN", "RULES", "root_frozen"]

Q_ROOT_FROZEN = Rule(
    "Q-ROOT-FROZEN",
    "the shares of the queue root do not change",
    "root stands for the whole cluster (setting `enable-root-queue-protection`).",
    "metadata: {name: root}, spec: {capability: {cpu: 10}}",
    reason="FieldValueForbidden",
)

RULES = (Q_ROOT_FROZEN,)


def root_frozen(case: Case, queue: Queue, old: Queue) -> None:
    """Check that an update of root leaves its shares alone; another spelling is no change."""
    for path, new, before in (
        ("spec.capability", queue.spec.capability, old.spec.capability),
        ("spec.deserved", queue.spec.deserved, old.spec.deserved),
        ("spec.guarantee.resource", guaranteed(queue), guaranteed(old)),
    ):
        if _exact(new) != _exact(before):
            found = f"{shown(before or None)} → {shown(new or None)}"
            message = f"of the queue root must not change, found {found}"
            case.report(Q_ROOT_FROZEN, path, message)


def _exact(amounts: Amounts | None) -> dict[str, object]:
    return {name: _milli(value) for name, value in (amounts or {}).items()}


def _milli(value: str | int) -> object:
    try:
        return parse_milli(value)
    except ValueError:
        return value
