"""The scheduler's process: it feeds the core from watch caches and carries out what it decides.

`feeds` keeps the state current, `loop` runs a cycle when something changed or a period has passed,
`bindings` and `statuses` carry decisions to the API server, `queues` makes the queues that every cluster
has. The core assumes what it decided, so a cycle never waits for the API server; what the server
refuses is taken back. Where nothing changes, nothing is written.
"""

from pumice.scheduler.worker.loop import SchedulerWorker
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.queues import ensure_queues
from pumice.scheduler.worker.settings import WorkerSettings

__all__ = [
    "SchedulerMetrics",
    "SchedulerWorker",
    "WorkerSettings",
    "ensure_queues",
]
