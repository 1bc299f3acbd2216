"""reclaim and gangreclaim: take back for a queue what it deserves from queues that have more, by evicting their pods.

Plugins decide which queue may reclaim and which pods may be evicted; without a plugin that shares the cluster nothing
is reclaimed. The queue must be able to take the pod once its victims are gone. If a gang cannot get its whole minimum,
its evictions are undone.
"""

from functools import partial

from pumice.scheduler.actions.evicting import BUNDLE_ARGUMENTS, EvictionSetting, evict
from pumice.scheduler.arguments import ERROR_CACHE
from pumice.scheduler.eviction.allowed import between_queues, gangs_of_queues
from pumice.scheduler.specs import ActionSpec

__all__ = ["BY_GANG", "SPEC"]

_PODS = EvictionSetting("reclaim", lambda session, _, queue: between_queues(session, queue))
_GANGS = EvictionSetting(
    "gangreclaim", lambda session, _, queue: gangs_of_queues(session, queue), breaks_gangs=True
)

SPEC = ActionSpec(
    name="reclaim",
    summary="Evicts pods of queues that have more than they deserve for queues that have less.",
    run=partial(evict, _PODS),
    arguments=(ERROR_CACHE,),
)

BY_GANG = ActionSpec(
    name=_GANGS.name,
    summary="Evicts whole gangs, and what gangs have beyond their minimum, of queues that have more than they deserve for queues that have less; it takes the place of `reclaim`.",
    run=partial(evict, _GANGS),
    arguments=(ERROR_CACHE, *BUNDLE_ARGUMENTS),
)
