"""reclaim and gangreclaim: take back for a queue what it deserves from queues that have more, by evicting their pods.

Plugins decide which queue may reclaim and which pods may be evicted; without a plugin that shares the cluster nothing
is reclaimed. The queue must be able to take the pod once its victims are gone. If a gang cannot get its whole minimum,
its evictions are undone.
"""

from pumice.scheduler.actions.evicting import evicting
from pumice.scheduler.eviction.settings import EvictionSetting

SPEC = evicting(
    EvictionSetting("reclaim", reclaims=True, by_gang=False),
    "Evicts pods of queues that have more than they deserve for queues that have less.",
)

BY_GANG = evicting(
    EvictionSetting("gangreclaim", reclaims=True, by_gang=True),
    "Evicts whole gangs, and what gangs have beyond their minimum, of queues that have more than they deserve for queues that have less; it takes the place of `reclaim`.",
)
