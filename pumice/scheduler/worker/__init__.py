"""The scheduler's process: it passes events of watch caches to the core and carries out its decisions.

`feeds` keeps the state current, `loop` runs a cycle when something changed or a period has passed, `bindings`,
`evictions` and `statuses` carry decisions to the API server, `quarantine` deals with unexpected
exceptions, `queue_writes` makes the queues that every cluster has. Decisions are assumed in the state
(`pumice.scheduler.state.assumptions`), so a cycle never waits for the API server; refused decisions are undone. If nothing
changes, nothing is written.
"""

from pumice.scheduler.worker.configuration import WorkerSettings
from pumice.scheduler.worker.loop import SchedulerWorker
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.queue_writes import ensure_queues

__all__ = ["SchedulerMetrics", "SchedulerWorker", "WorkerSettings", "ensure_queues"]
