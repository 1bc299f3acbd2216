"""The scheduler's process: it feeds the core from watch caches and carries out what it decides.

`feeds` keeps the state current, `loop` runs a cycle when something changed or a period has passed,
`bindings` and `statuses` carry decisions to the API server, `queues` makes the queues that every cluster
has. The core assumes what it decided, so a cycle never waits for the API server; what the server
refuses is taken back. Where nothing changes, nothing is written.
"""

import asyncio
import signal
from collections.abc import Iterable

from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.scheduler import Config
from pumice.scheduler.worker.loop import SchedulerWorker
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.queues import ensure_queues
from pumice.scheduler.worker.settings import WorkerSettings

__all__ = [
    "SchedulerMetrics",
    "SchedulerWorker",
    "WorkerSettings",
    "ensure_queues",
    "run_scheduler",
]


async def run_scheduler(
    client: Client,
    config: Config,
    settings: WorkerSettings | None = None,
    stop: asyncio.Event | None = None,
    *,
    signals: Iterable[signal.Signals] = (),
) -> None:
    """Schedule until told to stop.

    Args:
        client: Session with the API server.
        config: How to schedule.
        settings: How to work.
        stop: Ends it when set.
        signals: Signals that end it, too.
    """
    worker = SchedulerWorker(client, config, settings)
    await run_until_stopped(worker.tasks(), stop=stop, signals=signals)
