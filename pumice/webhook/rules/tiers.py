"""The tier of the network that a topology names: some HyperNode had better be on it."""

from pumice.api.jobs import NetworkTopology
from pumice.api.kinds import HYPER_NODE
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_TIER", "PG_TIER", "RULES", "network_tier"]


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

RULES = (JOB_TIER, PG_TIER)


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
