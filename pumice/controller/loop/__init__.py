"""The controller's process: it watches, asks `reconcile`, and writes.

`caches` are the picture of the cluster, `worker` turns news into passes, `execution` carries plans out,
`memory` holds what saves work between two passes. Nothing of it matters to the result: the process can
be killed at any moment, and the next one goes on from what is in the cluster.
"""

import asyncio
import signal
from collections.abc import Iterable

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.loop.caches import OBJECT_KINDS
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.worker import ControllerWorker
from pumice.plugins import Registry, builtin

__all__ = [
    "OBJECT_KINDS",
    "ControllerMetrics",
    "ControllerSettings",
    "ControllerWorker",
    "run_controller",
]


async def run_controller(
    client: Client,
    settings: ControllerSettings | None = None,
    stop: asyncio.Event | None = None,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    signals: Iterable[signal.Signals] = (),
) -> None:
    """Look after Jobs until told to stop.

    Args:
        client: Session with the API server.
        settings: How to work.
        stop: Ends it when set.
        registry: The job plugins; the builtin ones and those of entry points when None.
        clock: Tells the time and waits.
        signals: Signals that end it, too.
    """
    plugins = builtin().with_entry_points() if registry is None else registry
    worker = ControllerWorker(client, plugins, settings, clock=clock)
    await run_until_stopped(worker.tasks(), stop=stop, signals=signals)
