"""A whole cluster in this process: API server, admission, controller, scheduler, simulated nodes."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.crds import all_crds
from pumice.cli.court import registry
from pumice.cli.dev_view import StoreView
from pumice.cli.nodes import NodeSpec
from pumice.cluster.client import Client
from pumice.cluster.clock import SystemClock
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.loop import ControllerWorker
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.scheduler import Config, load_config
from pumice.scheduler.worker import SchedulerWorker, ensure_queues
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings

__all__ = ["DevCluster", "dev_cluster"]


@dataclass(frozen=True, slots=True)
class DevCluster:
    """A running cluster.

    Attributes:
        api: The API server.
        components: Controller and scheduler; done only when one of them failed.
    """

    api: EmbeddedCluster
    components: asyncio.Task[None]


@asynccontextmanager
async def dev_cluster(
    nodes: Iterable[NodeSpec],
    *,
    port: int = 0,
    timings: NodeTimings | None = None,
    config: Config | None = None,
) -> AsyncIterator[DevCluster]:
    """Run a cluster for as long as the block lasts.

    Every part is the one that runs in production; they talk to each other over HTTP on loopback.

    Args:
        nodes: Simulated nodes to begin with.
        port: Where the API server listens; 0 takes a free port.
        timings: How long simulated nodes take.
        config: How to schedule; the default when None.

    Raises:
        OSError: The port is taken.
        Exception: What a component raised, at the end of the block.
    """
    plugins = registry()
    view = StoreView()
    admission = Admission(AdmissionSettings(), view, plugins)
    cluster = EmbeddedCluster(
        all_crds(),
        admission=admission,
        registrations=REGISTRATIONS,
        port=port,
        timings=timings,
    )
    view.store = cluster.store
    for node in nodes:
        cluster.add_node(node.name, node.cpu, node.memory, resources={**node.resources})
    async with cluster, Client.connect(server=cluster.url) as client:
        controller = ControllerWorker(client, plugins)
        scheduler = SchedulerWorker(client, config or load_config(None))
        stop = asyncio.Event()
        components = asyncio.create_task(
            run_until_stopped([*controller.tasks(), *scheduler.tasks()], stop=stop, signals=()),
            name="components",
        )
        try:
            # The block begins when a Job can be submitted.
            await ensure_queues(client, SystemClock(), keys.DEFAULT_QUEUE)
            yield DevCluster(cluster, components)
        finally:
            stop.set()
            await asyncio.wait([components])
        components.result()
