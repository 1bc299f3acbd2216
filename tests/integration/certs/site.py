"""A namespace on the real API server whose Jobs wait for webhooks with certificates of their own.

The webhooks are those of Jobs with `failurePolicy: Fail`, in configurations beside whatever else is
installed; the replicas run as a service account that may do what the chart's own roles allow and no more.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from pumice.api.kinds import JOB, MUTATING_WEBHOOKS, QUEUE, SECRET, VALIDATING_WEBHOOKS, Kind
from pumice.certs.bundle import BundleReading, read
from pumice.cluster.client import Client, Object
from pumice.webhook.registrations import configurations
from pumice.webhook.settings import AdmissionSettings
from tests.integration.certs.probing import probe
from tests.integration.certs.replica import Orders
from tests.integration.certs.reviews import Load, loading
from tests.integration.certs.rights import rights
from tests.kit.builders import job
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process
from tests.support.ports import free_ports
from tests.support.webhook_canary import until_known

SECRET_NAME = "pumice-webhook-certs"
ACCOUNT = "keeper"
REPLICA = Path(__file__).with_name("replica.py")
RBAC = "rbac.authorization.k8s.io"
KINDS = {each.kind: each for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class Site:
    """A namespace, its webhook configurations, and the replicas that answer for it.

    Attributes:
        plane: The control plane.
        namespace: Where Jobs wait, and where the Secret is.
        replicas: Running replicas by their port.
    """

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self.replicas: dict[int, Process] = {}
        self.metrics: dict[int, int] = {}
        self._folder = folder
        self._kubeconfig = self._account()
        self.plane.apply(self._queue)

    # Webhook configurations

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Names of the site's configurations."""
        return tuple(
            each["metadata"]["name"] for each in self.manifests(1) if each["kind"] == kind.kind
        )

    def manifests(self, mutating: int, validating: int = 0) -> list[Object]:
        """The configurations, without a bundle, as somebody keeps them in a repository.

        Args:
            mutating: Port that is asked to mutate.
            validating: Port that is asked to validate; the same when 0.
        """

        def address(path: str) -> dict[str, str]:
            port = mutating if path.endswith("/mutate") else validating or mutating
            return {"url": f"https://127.0.0.1:{port}{path}"}

        found = configurations(AdmissionSettings(), address)
        own = [each for each in found if "-jobs-" in each["metadata"]["name"]]
        for each in own:
            each["metadata"]["name"] += f"-{self.namespace}"
            each["webhooks"][0]["namespaceSelector"] = {
                "matchLabels": {"kubernetes.io/metadata.name": self.namespace}
            }
        return own

    def apply(self, *ports: int, how: Sequence[str] = ("apply",)) -> None:
        """Apply the manifests, as an administrator or a GitOps tool does."""
        text = yaml.safe_dump_all(self.manifests(*ports))
        self.plane.kubectl(*how, "-f", "-", stdin=text)

    async def bundles(self, api: Client) -> list[bytes]:
        """What each configuration's webhook trusts."""
        found = [await api.get(kind, name) for kind in KINDS.values() for name in self.names(kind)]
        return [
            base64.b64decode(entry["clientConfig"].get("caBundle") or "")
            for each in found
            for entry in each["webhooks"]
        ]

    async def set_bundle(self, api: Client, bundle: bytes) -> None:
        """Put something else where the bundle belongs."""
        encoded = base64.b64encode(bundle).decode()
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": encoded}]
        for kind in KINDS.values():
            for name in self.names(kind):
                await api.patch(kind, name, None, patch, content_type="application/json-patch+json")

    # The Secret

    async def reading(self, api: Client) -> BundleReading:
        """What the Secret holds."""
        return read((await api.get(SECRET, SECRET_NAME, self.namespace)).get("data"))

    async def whole(self, api: Client) -> bool:
        """Whether the Secret is sound, and what it says is trusted everywhere."""
        try:
            reading = await self.reading(api)
        except Exception:
            return False
        if reading.bundle is None or reading.problems or reading.bundle.next is None:
            return False
        return set(await self.bundles(api)) == {reading.bundle.trust}

    # Replicas

    def certificates(self, **durations: float) -> dict[str, Any]:
        """Fields of `CertSettings`."""
        return {
            "service": "webhook",
            "namespace": self.namespace,
            "secret": SECRET_NAME,
            "mutating": self.names(MUTATING_WEBHOOKS),
            "validating": self.names(VALIDATING_WEBHOOKS),
            "extra_addresses": ("127.0.0.1",),
            **durations,
        }

    def start(self, port: int, metrics_port: int, **durations: float) -> None:
        """Start a replica as a process."""
        orders = Orders(str(self._kubeconfig), port, metrics_port, self.certificates(**durations))
        command = [sys.executable, str(REPLICA), json.dumps(asdict(orders))]
        self.replicas[port] = Process(f"replica-{port}", command, self._folder)
        self.metrics[port] = metrics_port

    @contextmanager
    def running(self, count: int, **durations: float) -> Iterator[list[int]]:
        """Replicas, started at once and not waited for, for as long as the block lasts."""
        ports = free_ports(2 * count)
        try:
            for port, metrics_port in zip(ports[:count], ports[count:], strict=True):
                self.start(port, metrics_port, **durations)
            yield ports[:count]
        finally:
            for each in self.replicas.values():
                each.end()
            self.replicas.clear()

    def signal(self, port: int, number: signal.Signals) -> None:
        """Send a signal to a replica."""
        os.kill(self.replicas[port].pid, number)

    def ready(self, *ports: int) -> bool:
        """Whether replicas say that they are ready."""
        return all(self.probe(port)[0] == 200 for port in ports)

    def probe(self, port: int, path: str = "/readyz") -> tuple[int, str]:
        """What a replica says of itself: status and text; 0 when it says nothing."""
        return probe(self.metrics[port], path)

    async def until_ready(self, *ports: int, seconds: float = 40) -> None:
        """Wait until replicas are ready, and the API server has heard of their bundle."""
        await asyncio.to_thread(
            wait_until,
            lambda: self.ready(*ports),
            "replicas are ready",
            seconds,
            [self.replicas[port] for port in ports],
        )
        async with Client.connect(self.plane.kubeconfig) as api:
            await until_known(api)

    def tails(self) -> str:
        """What the replicas logged last."""
        return "\n".join(f"--- {each.name}\n{each.tail()}" for each in self.replicas.values())

    # Reviews

    async def review(self, api: Client) -> None:
        """Create a Job as a dry run, which waits for both webhooks.

        Raises:
            ApiError: It was refused.
        """
        manifest = job("train", namespace=self.namespace, queue=self._queue_name)
        path = JOB.collection(self.namespace)
        await api.raw("POST", path, manifest, query={"dryRun": "All"})

    def load(self, api: Client, workers: int = 3) -> AbstractAsyncContextManager[Load]:
        """Reviews for as long as the block lasts; then none may have failed."""
        return loading(lambda: self.review(api), workers, self.tails)

    # The service account

    def _account(self) -> Path:
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}
        name = f"certs-{self.namespace}"
        manifests: list[Object] = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
        ]
        for kind, rules in rights(self.plane, self._renamed).items():
            manifests.append(
                {
                    "apiVersion": f"{RBAC}/v1",
                    "kind": kind,
                    "metadata": {"name": name},
                    "rules": rules,
                }
            )
            manifests.append(
                {
                    "apiVersion": f"{RBAC}/v1",
                    "kind": f"{kind}Binding",
                    "metadata": {"name": name},
                    "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
                    "subjects": [subject],
                }
            )
        for each in manifests:
            if not each["kind"].startswith("Cluster"):
                each["metadata"] = {**each["metadata"], "namespace": self.namespace}
        self.plane.apply(*manifests)
        token = self.plane.token(ACCOUNT, self.namespace)
        return self.plane.kubeconfig_for_token(token)

    def may_patch(self) -> bool:
        """Whether the replicas may put a bundle back, as far as the API server knows: it learns of roles by watching."""
        [name] = self.names(VALIDATING_WEBHOOKS)[:1]
        kind = VALIDATING_WEBHOOKS
        asked = {"verb": "patch", "group": kind.group, "resource": kind.plural, "name": name}
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        spec = {"user": user, "resourceAttributes": asked}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.plane.request("POST", path, {"spec": spec})[1]["status"]["allowed"])

    def _renamed(self, name: str) -> str | None:
        """What a configuration of the chart is called here."""
        here = f"{name}-{self.namespace}"
        return here if any(here in self.names(kind) for kind in KINDS.values()) else None

    @property
    def _queue_name(self) -> str:
        return f"certs-{self.namespace}"

    @property
    def _queue(self) -> dict[str, Any]:
        return {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": {"name": self._queue_name},
            "spec": {"weight": 1},
        }

    def clear(self) -> None:
        """Take away what is not in the namespace."""
        self.plane.delete(self._queue)
        for kind in KINDS.values():
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            self.plane.delete(*(head | {"metadata": {"name": name}} for name in self.names(kind)))
        for name in ("ClusterRole", "ClusterRoleBinding"):
            head = {"apiVersion": f"{RBAC}/v1", "kind": name}
            self.plane.delete(head | {"metadata": {"name": f"certs-{self.namespace}"}})

    @property
    def kubeconfig(self) -> Path:
        """With which one is the replicas' service account."""
        return self._kubeconfig
