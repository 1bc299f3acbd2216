"""preempt and gangpreempt: evict pods for more important gangs of the same queue.

preempt lets each pod go for itself, first of other gangs, then of the same gang. A gang that needs ten places may then cost ten gangs
one pod each. With gangpreempt one of them goes as a whole, and the others run on.
"""

from pumice.scheduler.actions.evicting import evicting
from pumice.scheduler.arguments import SchedulerArgument
from pumice.scheduler.eviction.settings import EvictionSetting

SPEC = evicting(
    EvictionSetting("preempt", reclaims=False, by_gang=False),
    "Evicts pods for more important gangs of the same queue, and for more important pods of the same gang.",
    (
        SchedulerArgument(
            "enableTopologyAwarePreemption",
            False,
            "Volcano's search that compares nodes; nodes are always compared here.",
        ),
        SchedulerArgument(
            "topologyAwarePreemptWorkerNum", 16, "Threads of that search.", is_absent=True
        ),
        SchedulerArgument(
            "minCandidateNodesPercentage",
            10,
            "Nodes that it looks at; all nodes are looked at here.",
            is_absent=True,
        ),
        SchedulerArgument("minCandidateNodesAbsolute", 1, "The same.", is_absent=True),
        SchedulerArgument("maxCandidateNodesAbsolute", 100, "The same.", is_absent=True),
    ),
)

BY_GANG = evicting(
    EvictionSetting("gangpreempt", reclaims=False, by_gang=True),
    "Evicts whole gangs, and what gangs have beyond their minimum, for more important gangs of the same queue; it takes the place of `preempt`.",
)
