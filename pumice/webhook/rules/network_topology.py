"""Network topology of Jobs and PodGroups: a tier is named by number or by name, not both, and exists."""

from pumice.api.jobs import Job, NetworkTopology
from pumice.api.kinds import HYPER_NODE
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, rules_in

__all__ = [
    "JOB_TIER",
    "JOB_TOPO_BOTH",
    "PG_TIER",
    "RULES",
    "contradiction",
    "job_topologies",
    "network_tier",
]


def _rule(prefix: str, noun: str) -> Rule:
    return Rule(
        f"{prefix}-TIER",
        f"the network tier that a {noun} names exists",
        "Below the lowest tier there is no place, so that pods wait for ever in mode hard; above the "
        "highest, nothing is limited.",
        "networkTopology: {highestTierName: rakc}",
        reason="FieldValueNotFound",
        level="warn",
    )


JOB_TIER = _rule("JOB", "Job")
PG_TIER = _rule("PG", "PodGroup")


def network_tier(case: Case, rule: Rule, path: str, topology: NetworkTopology | None) -> None:
    """Warn of a tier that no HyperNode is on, where it is known which there are.

    Args:
        case: Where to report.
        rule: Under whose code, for example `JOB_TIER`.
        path: Of the topology, for example `spec.networkTopology`.
        topology: The topology; None for none.
    """
    if topology is None:
        return
    number, name = topology.highest_tier_allowed, topology.highest_tier_name
    view = case.view
    if (number is None and not name) or not view.knows(HYPER_NODE):
        return
    if number is not None and number not in view.tiers():
        known = ", ".join(map(str, sorted(view.tiers()))) or "none"
        message = f"there is no HyperNode of tier {number}, tiers are: {known}"
        case.report(rule, f"{path}.highestTierAllowed", message)
    if name and name not in view.tier_names():
        hint = case.did_you_mean(name, view.tier_names())
        known = ", ".join(sorted(view.tier_names())) or "none"
        message = f'there is no HyperNode of tier "{name}"{hint}, tiers are: {known}'
        case.report(rule, f"{path}.highestTierName", message)


JOB_TOPO_BOTH = Rule(
    "JOB-TOPO-BOTH",
    "networkTopology names its highest tier by number or by name, not both",
    "The two may disagree, and which of them counts would be a guess.",
    "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
    reason="FieldValueForbidden",
)

RULES = rules_in(globals())


def contradiction(topology: NetworkTopology | None) -> str | None:
    """Say how a topology contradicts itself, or None when it does not."""
    if topology is None or topology.highest_tier_allowed is None or not topology.highest_tier_name:
        return None
    return (
        f"must not be set together with highestTierAllowed ({topology.highest_tier_allowed}), found "
        f'"{topology.highest_tier_name}"; keep one of the two'
    )


def job_topologies(case: Case, job: Job) -> None:
    """Check the topology of the Job and of each task's partitions."""
    _topology(case, job.spec.network_topology, "spec.networkTopology")
    for index, task in enumerate(job.tasks):
        if task.partition_policy is not None:
            path = f"spec.tasks[{index}].partitionPolicy.networkTopology"
            _topology(case, task.partition_policy.network_topology, path)


def _topology(case: Case, topology: NetworkTopology | None, path: str) -> None:
    if topology is None:
        return
    if problem := contradiction(topology):
        case.report(JOB_TOPO_BOTH, f"{path}.highestTierName", problem)
    network_tier(case, JOB_TIER, path, topology)
