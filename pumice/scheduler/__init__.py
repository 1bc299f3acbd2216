"""The scheduling core: cluster state in columns, and cycles that decide about it.

Pure: it uses no API server, clock or thread. `worker` passes events to it and carries out its decisions; `pumice
simulate` does the same with files.
"""

from pumice.scheduler.budget import Budget
from pumice.scheduler.config import ConfigError, load_config
from pumice.scheduler.cycle.run import run_cycle
from pumice.scheduler.options import Config
from pumice.scheduler.registry import SchedulerRegistry, builtin_registry, default_registry
from pumice.scheduler.results import CycleResult, Event, PodVerdict, Reason
from pumice.scheduler.state.watched_cluster import ClusterState

__all__ = [
    "Budget",
    "ClusterState",
    "Config",
    "ConfigError",
    "CycleResult",
    "Event",
    "PodVerdict",
    "Reason",
    "SchedulerRegistry",
    "builtin_registry",
    "default_registry",
    "load_config",
    "run_cycle",
]
