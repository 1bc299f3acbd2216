"""Settings of the scheduler's process; its configuration file has the scheduling settings."""

from dataclasses import dataclass

from pumice.api import keys
from pumice.cluster.elected import ElectionSettings
from pumice.scheduler.model.report_times import ReportDelays

__all__ = ["DELAYS", "WorkerSettings"]

DELAYS = ReportDelays(cause=1.0, pods=5.0, numbers=30.0, arrival=5.0, counts=5.0)
"""Delays in a cluster: short-lived states are not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings(ElectionSettings):
    """Settings of the worker.

    Attributes:
        scheduler_names: `schedulerName` of the pods that are placed; others only take room.
        default_queue: Queue of PodGroups that name none.
        opens_gates: Whether the gate of pods that wait for room in their queue is taken away; Volcano's feature gate
            `SchedulingGatesQueueAdmission`.
        period: Longest time between two cycles, in seconds.
        debounce: Time for which changes are gathered before a cycle, in seconds: a Job's pods arrive
            one after the other, and a cycle for each of them would place nothing.
        cycle_budget: Processor time of a cycle in seconds, after which it leaves gangs to the next one; see `scheduler.budget`.
        delays: How long reasons wait before they are written.
        concurrent_binds: Bindings of pods under way at once, and writes for bindings of claims.
        concurrent_evictions: Evictions under way at once.
        concurrent_gates: Gates that are taken away at once.
        concurrent_writes: Writes of statuses and conditions under way at once, of each kind.
    """

    scheduler_names: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,)
    default_queue: str = keys.DEFAULT_QUEUE
    opens_gates: bool = False
    period: float = 1.0
    debounce: float = 0.02
    cycle_budget: float = 1.0
    delays: ReportDelays = DELAYS
    concurrent_binds: int = 32
    concurrent_evictions: int = 8
    concurrent_gates: int = 5
    concurrent_writes: int = 16
    lease_name: str = "pumice-scheduler"
    identity: str = "pumice-scheduler"
