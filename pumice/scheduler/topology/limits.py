"""How near to each other the pods of a gang, or of one of its sub-groups, must be: which limit holds."""

from typing import NamedTuple

from pumice.api.jobs import NetworkTopology
from pumice.scheduler.results import Reason
from pumice.scheduler.topology.levels import Levels


class Limit(NamedTuple):
    """A limit on the domain that pods must share.

    Attributes:
        tier: The highest tier of that domain; None if nothing is said, so that no domain is sought.
        is_hard: Whether the pods wait if no such domain has room; otherwise the tier is that of the root.
        problem: Why no domain can be meant; None if one can.
    """

    tier: int | None
    is_hard: bool = False
    problem: Reason | None = None


NO_LIMIT = Limit(None)


def limit_of(topology: NetworkTopology | None, levels: Levels) -> Limit:
    """The limit of a gang, or of what is in no other gang.

    Mode hard without a tier counts as soft: any tier will do, so that nothing could be enforced.
    """
    if topology is None:
        return NO_LIMIT
    tree = levels.tree
    tier, name = topology.highest_tier_allowed, topology.highest_tier_name
    if topology.mode == "soft" or (tier is None and not name):
        return Limit(tree.root.tier)
    if tier is None:
        tier = tree.tier_named(name)
        if tier is None:
            return Limit(None, True, _unknown(f'the tier name "{name}"', {"tierName": name}))
    if tier < tree.root.tier and not any(map(len, levels.below(tree.root, tier))):
        return Limit(None, True, _unknown(f"tier {tier} or lower", {"highestTier": tier}))
    return Limit(tier, is_hard=True)


def limit_of_part(topology: NetworkTopology | None, whole: Limit, levels: Levels) -> Limit:
    """The limit of a sub-group of a gang with a limit: a soft one prefers low tiers inside the gang's domain."""
    own = limit_of(topology, levels)
    if own.tier is None or own.is_hard or not whole.is_hard or whole.tier is None:
        return own
    return Limit(whole.tier)


def _unknown(what: str, details: dict[str, object]) -> Reason:
    message = f"no HyperNode has {what}"
    return Reason("NetworkTopologyUnknown", message, details, (what,))
