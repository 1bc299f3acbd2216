"""What admission remembers of objects that it only counts: a few bytes of each.

A cluster has PodGroups by the ten thousand, of which rules ask one thing: how many of a queue are
under way. So nothing else of them is decoded or kept.
"""

from pumice.api import keys
from pumice.api.meta import ApiStruct

__all__ = ["GangSighting", "TierSighting"]

_COMPLETED = "Completed"


class _GangSpec(ApiStruct, frozen=True, gc=False):
    queue: str = ""


class _GangStatus(ApiStruct, frozen=True, gc=False):
    phase: str = ""


class GangSighting(ApiStruct, frozen=True, gc=False):
    """A PodGroup: whose share it takes, and whether it still does."""

    spec: _GangSpec = _GangSpec()
    status: _GangStatus = _GangStatus()

    @property
    def active_in(self) -> str | None:
        """The queue in which a PodGroup is under way; None for a completed one."""
        return None if self.status.phase == _COMPLETED else self.spec.queue or keys.DEFAULT_QUEUE


class _Tier(ApiStruct, frozen=True, gc=False):
    tier: int = 0
    tier_name: str = ""


class TierSighting(ApiStruct, frozen=True, gc=False):
    """A HyperNode: the tier of the network that it is on."""

    spec: _Tier = _Tier()
