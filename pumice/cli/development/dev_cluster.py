"""A whole cluster in this process: API server, admission, controller, scheduler, simulated nodes; and the metrics of all of it."""

import asyncio
import secrets
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from pumice.api import keys
from pumice.api.crds import all_crds
from pumice.api.kinds import Kind
from pumice.certs.authority import Authority, generate_key
from pumice.cli.development.dev_nodes import SimulatedNode
from pumice.cli.development.dev_state import load
from pumice.cli.files.checking import registry
from pumice.cli.files.manifests import Manifest
from pumice.cluster.client import Client
from pumice.cluster.clock import SystemClock
from pumice.cluster.connection import Connection, StaticCredentials, bearer
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.embedded import EmbeddedCluster, NodeTimings, Security, Store
from pumice.embedded.nodes import NodeRunner
from pumice.embedded.storage import StoredWrite
from pumice.plugins import Registry
from pumice.scheduler import Config, load_config
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings, ensure_queues
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.view import READ_AS, AdmissionView


class StoreView(AdmissionView):
    """An admission view without delay: it reads the store at each call.

    Attributes:
        store: The store; set after the server is created, because the server needs admission first.
    """

    def __init__(self, store: Store | None = None) -> None:
        """Create a view on a store; without one the cluster is empty."""
        self.store = store

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object, or None if it does not exist."""
        found = self.store.get(kind, name, namespace) if self.store is not None else None
        return None if found is None else msgspec.convert(found, READ_AS[kind])

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind."""
        found = self.store.list(kind) if self.store is not None else ()
        return [msgspec.convert(each, READ_AS[kind]) for each in found]

    def knows(self, kind: Kind) -> bool:
        """True: all kinds are looked up."""
        del kind
        return True


_SCHEDULERS = (keys.DEFAULT_SCHEDULER, "default-scheduler")
"""There is no kube-scheduler, so pods that name none, as those of `kubectl run`, are placed, too."""
_VALID_SECONDS = 10 * 365 * 86_400.0
"""Validity of the certificate in seconds: longer than any process runs."""


@dataclass(frozen=True, slots=True)
class DevCluster:
    """A running cluster.

    Attributes:
        api: The API server; requests need the token of its kubeconfig.
        client: A session with it.
        components: Controller and scheduler; done only when one of them failed.
        metrics: Metrics of admission, controller and scheduler.
    """

    api: EmbeddedCluster
    client: Client
    components: asyncio.Task[None]
    metrics: CollectorRegistry


def _security() -> Security:
    """A token and a certificate for this process only."""
    now = time.time()
    authority = Authority.create(generate_key(), now - 60, now + _VALID_SECONDS)
    leaf = authority.issue(
        generate_key(), ["localhost"], ["127.0.0.1", "::1"], now - 60, now + _VALID_SECONDS
    )
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(
        prefix="pumice-dev-"
    ) as file:  # which its owner alone can read
        file.write(leaf.certificate_pem + leaf.key_pem)
        file.flush()
        tls.load_cert_chain(file.name)
    return Security(secrets.token_urlsafe(32), tls, authority.certificate_pem)


@asynccontextmanager
async def _client(url: str, security: Security) -> AsyncIterator[Client]:
    tls = ssl.create_default_context(cadata=security.authority.decode())
    credentials = StaticCredentials(bearer(security.token))
    client = Client(Connection(server=url, credentials=credentials, tls=tls))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def dev_cluster(
    nodes: Iterable[SimulatedNode],
    *,
    port: int = 0,
    timings: NodeTimings | None = None,
    config: Config | None = None,
    runs_pods: Callable[[Store, Callable[[], float]], NodeRunner] | None = None,
    state: Iterable[Manifest] = (),
    on_write: Callable[[StoredWrite], None] | None = None,
) -> AsyncIterator[DevCluster]:
    """Run a cluster inside the block.

    Every part is the one that runs in production; they talk to each other over HTTP on loopback.

    Args:
        nodes: Initial simulated nodes.
        port: Port of the API server; 0 takes a free port.
        timings: Delays of simulated nodes.
        config: Configuration of the scheduler; the default if None.
        runs_pods: Makes what runs pods instead of simulated nodes, from the store and the clock.
        state: Initial objects.
        on_write: Called inside every write.

    Raises:
        UserError: An object of `state` is refused.
        OSError: The port is taken.
        Exception: The exception of a component, at the end of the block.
    """
    plugins, security, view = registry(), _security(), StoreView()
    admission = CountedAdmission(
        Admission(RuleSettings(scheduler_names=_SCHEDULERS), view, plugins)
    )
    cluster = EmbeddedCluster(
        all_crds(),
        admission=admission,
        registrations=REGISTRATIONS,
        workloads=True,
        records=True,
        port=port,
        timings=timings,
        nodes=runs_pods,
        security=security,
    )
    view.store = cluster.store
    for node in nodes:
        cluster.add_node(node.name, node.cpu, node.memory, node.pods, resources={**node.resources})
    if on_write is not None:
        cluster.store.storage.listen(on_write)
    async with cluster, _client(cluster.url, security) as client:
        # Jobs name a queue, those of `state` too.
        await ensure_queues(client, SystemClock(), keys.DEFAULT_QUEUE)
        load(cluster, state)
        controller, scheduler = _workers(client, plugins, config or load_config(None))
        registries = {
            "webhook": admission.metrics.registry,
            "controller": controller.metrics.registry,
            "scheduler": scheduler.metrics.registry,
        }
        async with _running(controller, scheduler) as components:
            yield DevCluster(cluster, client, components, together(registries))


def _workers(
    client: Client, plugins: Registry, config: Config
) -> tuple[ControllerWorker, SchedulerWorker]:
    controller = ControllerSettings(scheduler_names=_SCHEDULERS)
    scheduler = WorkerSettings(scheduler_names=_SCHEDULERS)
    return (
        ControllerWorker(client, plugins, controller),
        SchedulerWorker(client, config, scheduler),
    )


@asynccontextmanager
async def _running(
    controller: ControllerWorker, scheduler: SchedulerWorker
) -> AsyncIterator[asyncio.Task[None]]:
    """Run controller and scheduler inside the block, and raise the exception of one that failed."""
    stop = asyncio.Event()
    components = asyncio.create_task(
        run_until_stopped([*controller.tasks(), *scheduler.tasks()], stop=stop, signals=()),
        name="components",
    )
    try:
        yield components
    finally:
        stop.set()
        await asyncio.wait([components])
    components.result()


class CountedAdmission:
    """Admission that counts its reviews, as the webhook's server does.

    Attributes:
        metrics: The counts.
    """

    def __init__(self, admission: Admission) -> None:
        """Count the reviews of an admission."""
        self.metrics = ServerMetrics()
        self._admission = admission

    def review(self, path: str, body: bytes) -> bytes:
        """Answer a review: an AdmissionReview as JSON in, one out."""
        began = time.perf_counter()
        answer = self._admission.answer(path, body)
        self.metrics.answered(path, answer, time.perf_counter() - began)
        return answer.body


class _AllMetrics(Collector):
    def __init__(self, registries: Mapping[str, CollectorRegistry]) -> None:
        self._registries = registries

    def collect(self) -> Iterator[Metric]:
        """Every metric of every registry. Some components have metrics of one name, so the label tells them apart."""
        found: dict[str, Metric] = {}
        for component, its in self._registries.items():
            for metric in its.collect():
                kept = found.setdefault(
                    metric.name, Metric(metric.name, metric.documentation, metric.type)
                )
                kept.samples += [
                    each._replace(labels={**each.labels, "component": component})
                    for each in metric.samples
                ]
        yield from found.values()


def together(registries: Mapping[str, CollectorRegistry]) -> CollectorRegistry:
    """One registry of several, with the label `component` on each sample.

    Args:
        registries: The registry of each component, by its name.
    """
    registry = CollectorRegistry()
    registry.register(_AllMetrics(registries))
    return registry
