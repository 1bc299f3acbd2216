"""Network topology: a tier is named by number or by name, not both."""

from pumice.api.jobs import Job, NetworkTopology
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

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
    if problem := contradiction(job.spec.network_topology):
        case.report(JOB_TOPO_BOTH, "spec.networkTopology.highestTierName", problem)
    for index, task in enumerate(job.tasks):
        partitions = task.partition_policy
        if partitions is not None and (problem := contradiction(partitions.network_topology)):
            path = f"spec.tasks[{index}].partitionPolicy.networkTopology.highestTierName"
            case.report(JOB_TOPO_BOTH, path, problem)
