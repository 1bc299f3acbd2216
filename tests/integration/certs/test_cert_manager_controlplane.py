"""The chart with `webhook.certificates.mode: cert-manager` on the real kube-apiserver.

The webhook runs as a process with the Deployment's arguments and the chart's service account; its Secret
is mounted as kubelet mounts it. cert-manager is played.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.api.kinds import JOB, SECRET
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden
from tests.chart.manifests import CHART, RELEASE, arguments_of
from tests.integration.certs.probing import expiry, probe
from tests.integration.certs.reviews import loading
from tests.kit.builders import job
from tests.kit.waiting import until
from tests.support.cert_manager import CertManager
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process
from tests.support.mounts import SecretMount
from tests.support.ports import free_ports
from tests.support.webhook_canary import until_known
from tests.unit.certs.keys import authority

USERS = "certs-users"
SERVED = "pumice-webhook-tls"
MOUNTED = "/etc/pumice-tls"


@pytest.fixture
def ports() -> list[int]:
    return free_ports(2)


@pytest.fixture
def home(controlplane: ControlPlane, crds: None, namespace: str, ports: list[int]) -> Iterator[str]:
    """The release's namespace, with the webhook's objects and nobody who runs them."""
    controlplane.add_namespace(USERS)
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": USERS},
        "spec": {"weight": 1},
    }
    controlplane.kubectl("create", "-f", "-", stdin=json.dumps(queue))
    only = "webhook.namespaceSelectorExpressions[0]"
    sets = [
        "webhook.certificates.mode=cert-manager",
        f"webhook.url=https://127.0.0.1:{ports[0]}",
        f"{only}.key=kubernetes.io/metadata.name",
        f"{only}.operator=In",
        f"{only}.values={{{USERS}}}",
        "controller.enabled=false",
        "scheduler.enabled=false",
    ]
    arguments = [word for each in sets for word in ("--set", each)]
    manager = CertManager(controlplane, namespace)
    try:
        controlplane.helm("install", RELEASE, str(CHART), *arguments, namespace=namespace)
        yield namespace
    finally:
        controlplane.helm("uninstall", RELEASE, "--ignore-not-found", namespace=namespace)
        manager.remove()
        controlplane.kubectl("delete", "queue.scheduling.volcano.sh", USERS, "--ignore-not-found")
        controlplane.remove_namespace(USERS)


@pytest.fixture
def manager(controlplane: ControlPlane, home: str) -> CertManager:
    return CertManager(controlplane, home)


@pytest.fixture
def kubeconfig(controlplane: ControlPlane, home: str) -> Path:
    """The webhook's own."""
    return controlplane.kubeconfig_for_token(controlplane.token(f"{RELEASE}-webhook", home))


@pytest.fixture
def mount(tmp_path: Path) -> SecretMount:
    return SecretMount(tmp_path / "tls")


@pytest.fixture
def webhook(
    controlplane: ControlPlane,
    home: str,
    manager: CertManager,
    kubeconfig: Path,
    ports: list[int],
    mount: SecretMount,
    tmp_path: Path,
) -> Iterator[Process]:
    """The webhook, started when its Secret is there and the injector has not run yet."""
    manager.sync(inject=False)
    mount.put(manager.files(SERVED))
    shown = controlplane.kubectl(
        *("get", f"deployment/{RELEASE}-webhook", "-o", "json"), namespace=home
    ).stdout
    given = [each.replace(MOUNTED, str(mount.folder)) for each in arguments_of(json.loads(shown))]
    here = ["--host=127.0.0.1", f"--port={ports[0]}", f"--metrics-port={ports[1]}"]
    command = [sys.executable, "-m", "pumice", *given, *here, f"--kubeconfig={kubeconfig}"]
    process = Process("webhook", command, tmp_path)
    yield process
    process.end()


async def test_cert_manager_makes_renews_and_injects_and_the_webhook_follows(
    home: str,
    webhook: Process,
    manager: CertManager,
    kubeconfig: Path,
    ports: list[int],
    mount: SecretMount,
    api: Client,
) -> None:
    async def says(status: int, text: str = "") -> bool:
        found, said = await asyncio.to_thread(probe, ports[1])
        return found == status and text in said

    async def review() -> None:
        manifest = job("train", namespace=USERS, queue=USERS)
        await api.raw("POST", JOB.collection(USERS), manifest, query={"dryRun": "All"})

    async def renewed(*names: str) -> None:
        """Renew, inject, and wait until kubelet's new files are served."""
        before = await asyncio.to_thread(expiry, ports[1])
        await asyncio.sleep(1.1)  # certificates know whole seconds
        for each in names:
            await asyncio.to_thread(manager.renew, each)
        await asyncio.to_thread(manager.inject)
        await until_known(api)  # kubelet is later than the injector
        mount.put(manager.files(SERVED))

        async def served() -> bool:
            return await asyncio.to_thread(expiry, ports[1]) != before

        await until(served, "the renewed certificate is served", 15)

    refused = "[-]certificate: the API server would refuse what is served to 127.0.0.1: "
    await until(lambda: says(503, refused), f"it is unready\n{webhook.tail()}", 40)
    await asyncio.to_thread(manager.inject)
    await until(lambda: says(200), "it is ready", 10)
    await until_known(api)

    async with loading(review):
        await renewed(f"{RELEASE}-webhook")
        # The authority is renewed, too: its key stays, so old and new are trusted alike.
        await renewed(f"{RELEASE}-webhook-authority", f"{RELEASE}-webhook")

    async with Client.connect(kubeconfig) as own:
        with pytest.raises(Forbidden):
            await own.get(SECRET, SERVED, home)

    await asyncio.to_thread(manager.inject, authority().certificate_pem)
    await until(lambda: says(503, refused), "it is unready", 10)
    await asyncio.to_thread(manager.inject)
    await until(lambda: says(200), "it is ready again", 10)
