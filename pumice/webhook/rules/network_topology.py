"""Network topology: a tier is named by number or by name, not both, and exists."""

from pumice.api.jobs import Job, NetworkTopology
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.tiers import JOB_TIER, network_tier

__all__ = ["JOB_TOPO_BOTH", "RULES", "contradiction", "job_topologies"]

JOB_TOPO_BOTH = Rule(
    "JOB-TOPO-BOTH",
    "networkTopology names its highest tier by number or by name, not both",
    "The two may disagree, and which of them counts would be a guess.",
    "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
    reason="FieldValueForbidden",
)

RULES = (JOB_TOPO_BOTH,)


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
