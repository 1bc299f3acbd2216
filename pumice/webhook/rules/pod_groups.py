"""PodGroups: their queue, and the network they ask for."""

from pumice.api import keys
from pumice.api.podgroups import PodGroup, PodGroupSpec
from pumice.webhook.rules import ratchet
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.drafts import DraftPodGroup
from pumice.webhook.rules.network_topology import contradiction
from pumice.webhook.rules.queue_references import QueueRules, queue_reference
from pumice.webhook.rules.rule import Rule

__all__ = ["CHECKS", "RULES", "pod_group_defaults", "validate_create", "validate_update"]

PG_QUEUE = QueueRules.of("PG", "PodGroup", tree_is_stricter=True)
PG_TOPO_BOTH = Rule(
    "PG-TOPO-BOTH",
    "networkTopology names its highest tier by number or by name, not both",
    "The two may disagree, and which of them counts would be a guess.",
    "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
    reason="FieldValueForbidden",
)

RULES = (*PG_QUEUE.all, PG_TOPO_BOTH)


def pod_group_defaults(
    case: Case, group: DraftPodGroup, old: DraftPodGroup | None, namespace: str
) -> None:
    """Put a PodGroup that names no queue into the one that its namespace names.

    The CRD writes `default` where nothing stands, so `default` counts as no queue. An update gets the
    namespace's queue again only if it had it, so nobody is moved by being updated.

    Source: webhook specification, section 8.1.
    """
    spec = group.spec or _NO_SPEC
    if spec.queue not in ("", keys.DEFAULT_QUEUE):
        return
    found = case.view.namespace(namespace)
    wanted = found.metadata.annotation(keys.NAMESPACE_QUEUE) if found is not None else ""
    if not wanted or wanted == spec.queue:
        return
    if old is not None and (old.spec or _NO_SPEC).queue != wanted:
        return
    if group.spec is None:
        case.patch.missing("/spec")
    case.patch.set("/spec/queue", wanted)


_NO_SPEC = PodGroupSpec()


def _queue(case: Case, group: PodGroup) -> None:
    if group.spec.queue:
        queue_reference(case, PG_QUEUE, group.spec.queue)


def _topologies(case: Case, group: PodGroup) -> None:
    if problem := contradiction(group.spec.network_topology):
        case.report(PG_TOPO_BOTH, "spec.networkTopology.highestTierName", problem)
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        if problem := contradiction(policy.network_topology):
            path = f"spec.subGroupPolicy[{index}].networkTopology.highestTierName"
            case.report(PG_TOPO_BOTH, path, f'of sub-group "{policy.name}" {problem}')


CHECKS: tuple[Check[PodGroup], ...] = (
    (PG_QUEUE.missing, _queue),
    (PG_TOPO_BOTH, _topologies),
)
"""What is judged about a PodGroup, in the order in which problems are told."""


def validate_create(case: Case, group: PodGroup) -> None:
    """Judge a new PodGroup."""
    run(case, CHECKS, group)


def validate_update(case: Case, group: PodGroup, old: PodGroup) -> None:
    """Judge a change of a PodGroup; its status is no business of admission."""
    if group.metadata.deletion_timestamp or group.spec == old.spec:
        return
    ratchet.judge_update(
        case, lambda new: run(new, CHECKS, group), lambda stored: run(stored, CHECKS, old)
    )
