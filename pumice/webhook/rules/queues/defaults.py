"""Defaults of a Queue, written at its creation and again in updates.

In an update a missing default is written again only if the stored queue has it, so that an update of one field changes
no other.
"""

from pumice.api import keys
from pumice.api.queues import QueueSpec
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftQueue
from pumice.webhook.rules.rule import warned

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
