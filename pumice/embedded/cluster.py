"""The embedded cluster: the server and its controllers, started and stopped together."""

import asyncio
import base64
import contextlib
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import structlog
import yaml
from aiohttp import web

from pumice.api import kinds
from pumice.api.nodes import SYSTEM_CLASSES
from pumice.api.raw import object_in
from pumice.embedded.admission import (
    AdmissionChain,
    EmbeddedAdmission,
    EndpointRegistration,
    namespace_lifecycle,
    pod_priority,
    runtime_class,
)
from pumice.embedded.builtin import builtin_resources
from pumice.embedded.claims import SimulatedStorage
from pumice.embedded.crds import resource_of
from pumice.embedded.gc import GarbageCollector
from pumice.embedded.handlers import Handlers
from pumice.embedded.metadata import Identities
from pumice.embedded.nodes import NodeRunner, NodeTimings, SimulatedNodes
from pumice.embedded.objects import Objects
from pumice.embedded.rendering import Renderer
from pumice.embedded.resources import ResourceRegistry
from pumice.embedded.server import Access, ApiServer, make_request
from pumice.embedded.storage import Obj, Storage, StoredWrite
from pumice.embedded.store import Store
from pumice.embedded.tables import Tables
from pumice.embedded.workloads import SimulatedWorkloads
from pumice.serving.http_server import stop_listening

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_CRDS = (kinds.CRD.group, kinds.CRD.plural)


_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Security:
    """Authentication of server and clients.

    kubectl sends a token over TLS only.

    Attributes:
        token: What clients must send as bearer token.
        tls: The server's certificate.
        authority: The CA that signed it, as PEM.
    """

    token: str
    tls: ssl.SSLContext
    authority: bytes


_HOST = "127.0.0.1"


class EmbeddedCluster:
    """A Kubernetes API server in this process, on loopback, with simulated nodes.

    The objects can be used as soon as it is constructed; entering it serves them over HTTP and
    sets the garbage collector, the nodes and the storage going.

    Args:
        crds: CustomResourceDefinitions to begin with.
        admission: The webhook's review function; None admits everything.
        registrations: Which endpoints of it are asked about what, in order.
        port: Port to listen on; 0 for any free one.
        clock: Gives the moment in UNIX seconds.
        history: Changes of a resource that a watch can go back.
        bookmark_interval: Seconds between bookmarks.
        timings: How long simulated nodes take.
        nodes: Makes what runs pods instead of simulated nodes, from the store and the clock.
        workloads: Whether pods are made of Deployments, ReplicaSets and batch Jobs, as a controller manager does.
        security: What clients must show, and how they know the server; when None everyone is answered, over plain HTTP.
        records: Whether every write is recorded in `metadata.managedFields`; otherwise those after the first server-side apply.
    """

    def __init__(
        self,
        crds: Sequence[Obj] = (),
        *,
        admission: EmbeddedAdmission | None = None,
        registrations: Sequence[EndpointRegistration] = (),
        port: int = 0,
        clock: Callable[[], float] = time.time,
        history: int = 20_000,
        bookmark_interval: float = 60.0,
        timings: NodeTimings | None = None,
        nodes: Callable[[Store, Callable[[], float]], NodeRunner] | None = None,
        workloads: bool = False,
        security: Security | None = None,
        records: bool = False,
    ) -> None:
        self._port = port
        self._security = security
        self._runner: web.ServerRunner | None = None
        self._listening: asyncio.Server | None = None
        self._work: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._registry = ResourceRegistry(builtin_resources())
        storage = Storage(history)
        identities = Identities(clock)
        chain = AdmissionChain(admission, registrations, identities)
        plugins = (namespace_lifecycle(storage), pod_priority(storage), runtime_class(storage))
        objects = Objects(storage, identities, chain, plugins, records=records)
        storage.listen(self._define)
        self._collector = GarbageCollector(self._registry, objects, self._woken.set)
        self.store = Store(self._registry, objects)
        self._nodes: NodeRunner = (
            nodes(self.store, clock)
            if nodes is not None
            else SimulatedNodes(self.store, clock, timings or NodeTimings())
        )
        renderer = Renderer(Tables(clock))
        containers = self._nodes.containers
        handlers = Handlers(objects, renderer, with_containers=containers is not None)
        self._server = ApiServer(
            self._registry,
            storage,
            handlers,
            renderer,
            bookmark_interval=bookmark_interval,
            access=Access(security.token) if security else None,
            containers=containers,
        )
        self._volumes = SimulatedStorage(self.store)
        self._workloads = SimulatedWorkloads(self.store, clock) if workloads else None
        self._seed(crds)

    def _seed(self, crds: Sequence[Obj]) -> None:
        for name in NAMESPACES:
            self.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.store.create(
                {
                    **kinds.PRIORITY_CLASS.type_meta,
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": "PreemptLowerPriority",
                }
            )
        for crd in crds:
            self.store.create(crd)

    def _define(self, change: StoredWrite) -> None:
        """Serve what a CRD defines from the moment when it is written."""
        if change.resource != _CRDS:
            return
        if change.old is not None:
            for resource in resource_of(change.old.obj):
                self._registry.remove(resource)
        if change.type != "DELETED":
            for resource in resource_of(change.new.obj):
                self._registry.add(resource)

    async def __aenter__(self) -> Self:
        runner = web.ServerRunner(
            web.Server(
                self._server.handle,
                request_factory=make_request,
                access_log=None,
                handler_cancellation=True,  # a watch ends with its connection
            ),
            shutdown_timeout=1.0,
        )
        await runner.setup()
        tls = self._security.tls if self._security else None
        assert runner.server is not None
        self._listening = await asyncio.get_running_loop().create_server(
            runner.server, _HOST, self._port, ssl=tls
        )
        self._runner = runner
        self._port = self._listening.sockets[0].getsockname()[1]
        self._work = asyncio.create_task(self._collect(), name="embedded garbage collector")
        self._nodes.start()
        self._volumes.start()
        if self._workloads is not None:
            self._workloads.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._workloads is not None:
            self._workloads.stop()
        self._volumes.stop()
        await self._nodes.stop()
        if self._work is not None:
            self._work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._work
        self.store.storage.close()
        try:
            if self._listening is not None:
                await stop_listening(self._listening)
        finally:
            if self._runner is not None:
                await self._runner.cleanup()

    async def _collect(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                self._collector.run_pending()
            except Exception:
                _log.exception("garbage collection failed; it goes on with the next change")

    @property
    def url(self) -> str:
        """Address of the server: `http://host:port`, `https` with `security`."""
        return f"http{'s' if self._security else ''}://{_HOST}:{self._port}"

    def kubeconfig(self, namespace: str = "default") -> str:
        """A kubeconfig file's text for kubectl and clients."""
        cluster, token = {"server": self.url}, "pumice"
        if self._security is not None:
            token = self._security.token
            authority = base64.b64encode(self._security.authority).decode()
            cluster["certificate-authority-data"] = authority
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "pumice", "cluster": cluster}],
            "users": [{"name": "pumice", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "pumice",
                    "context": {"cluster": "pumice", "user": "pumice", "namespace": namespace},
                }
            ],
            "current-context": "pumice",
        }
        return yaml.safe_dump(config, sort_keys=False)

    def settle(self) -> None:
        """Do at once what the garbage collector has to do."""
        self._collector.run_pending()

    def add_object(self, obj: Obj) -> Obj:
        """Add an object: one that has a uid as it was in another cluster, another as if it were created now.

        A Node becomes a simulated one.

        Raises:
            ApiStatusError: As a request would be answered.
        """
        if object_in(obj, "metadata").get("uid"):
            added = self.store.restore(obj)
        else:
            added = self.store.create(obj, admit=True)
        if (added["apiVersion"], added["kind"]) == (kinds.NODE.api_version, kinds.NODE.kind):
            self._nodes.adopt(added["metadata"]["name"])
        return added

    def add_node(
        self,
        name: str,
        cpu: str | int = "8",
        memory: str | int = "32Gi",
        pods: int = 110,
        labels: dict[str, str] | None = None,
        taints: list[Obj] | None = None,
        resources: dict[str, str | int] | None = None,
    ) -> Obj:
        """Add a simulated node.

        Args:
            name: Its name, also in the label `kubernetes.io/hostname`.
            cpu: Cores, as a quantity.
            memory: Memory, as a quantity.
            pods: Pods that it takes.
            labels: Further labels.
            taints: Taints.
            resources: Further resources, such as GPUs.
        """
        return self._nodes.add(
            name,
            {"cpu": str(cpu), "memory": str(memory), "pods": str(pods)}
            | {key: str(value) for key, value in (resources or {}).items()},
            labels or {},
            taints or [],
        )
