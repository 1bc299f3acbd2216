"""The component verbs as processes, with the arguments that a chart gives them."""

import asyncio
import base64
import contextlib
import json
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.api.kinds import JOB, LEASE, MUTATING_WEBHOOKS, SECRET
from pumice.certs.authority import Authority, generate_key
from pumice.cli.files.manifests import read_objects
from pumice.embedded import EmbeddedCluster
from pumice.webhook.registrations import configurations
from pumice.webhook.settings import AdmissionSettings
from tests.integration.cli.running import Running, pumice, running
from tests.kit.builders import job, queue
from tests.kit.stage import quick_cluster
from tests.kit.waiting import until
from tests.support.ports import free_port

EXAMPLES = Path(__file__).parents[3] / "examples"
SECONDS = 60.0


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        yield found


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text(cluster.kubeconfig())
    return str(file)


async def answer(url: str, method: str = "GET", **options: Any) -> tuple[int, str]:
    """Ask until somebody answers."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(SECONDS):
        while True:
            try:
                async with session.request(method, url, **options) as found:
                    return found.status, await found.text()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)


async def ready(url: str, **options: Any) -> None:
    async def status() -> bool:
        return (await answer(url, **options))[0] == 200

    await until(status, f"{url} is ready")


async def shows(url: str, text: str) -> None:
    found = ""

    async def shown() -> bool:
        nonlocal found
        found = (await answer(url))[1]
        return text in found

    await until(shown, f"{url} shows {text}", around=lambda: found)


async def stop(process: Running) -> tuple[int, str]:
    return await asyncio.to_thread(process.stop, signal.SIGTERM)


def review(obj: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "namespace": "default",
            "resource": {"group": "batch.volcano.sh", "version": "v1alpha1", "resource": "jobs"},
            "object": obj,
        },
    }


async def test_what_a_configuration_names_and_this_version_lacks_is_shown_by_a_ready_scheduler(
    cluster: EmbeddedCluster, kubeconfig: str, tmp_path: Path
) -> None:
    file, port = tmp_path / "scheduler.conf", free_port()
    file.write_text(
        "actions: allocate\ntiers: [{plugins: [{name: extender}, {name: numa-aware}]}]\n"
    )
    command = (f"--kubeconfig={kubeconfig}", f"--config={file}", f"--metrics-port={port}")
    with running("scheduler", *command) as process:
        await ready(f"http://127.0.0.1:{port}/readyz")
        await shows(
            f"http://127.0.0.1:{port}/readyz?verbose",
            "[!]configuration: not part of this version, does nothing: plugin extender, plugin numa-aware",
        )
        await shows(
            f"http://127.0.0.1:{port}/metrics",
            'pumice_scheduler_config_missing{what="plugin numa-aware"} 1.0',
        )
        code, said = await stop(process)
    assert code == 0
    assert "plugin extender is not part of this version and does nothing" in said


async def test_controller_and_scheduler(cluster: EmbeddedCluster, kubeconfig: str) -> None:
    for name, cpu in (("node1", "2"), ("node2", "1"), ("node3", "4")):
        cluster.add_node(name, cpu=cpu)
    ports = {"controller": free_port(), "scheduler": free_port()}
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                running(
                    component,
                    f"--kubeconfig={kubeconfig}",
                    "--leader-elect",
                    "--leader-elect-resource-namespace=kube-system",
                    f"--metrics-port={port}",
                    "--logtostderr",
                    "-v=3",
                    "2>&1",
                )
            )
            for component, port in ports.items()
        ]
        for port in ports.values():
            await ready(f"http://127.0.0.1:{port}/readyz")
        [train] = read_objects([EXAMPLES / "tensorflow.yaml"])
        cluster.store.create(train)

        def phase() -> str:
            found = cluster.store.get(JOB, "train", "default") or {}
            return str(found.get("status", {}).get("state", {}).get("phase", ""))

        await until(lambda: phase() == "Completed", "the Job completes")
        await shows(
            f"http://127.0.0.1:{ports['scheduler']}/metrics",
            'pumice_scheduler_binds_total{result="bound"} 6.0',
        )
        assert (await answer(f"http://127.0.0.1:{ports['controller']}/healthz"))[0] == 200
        for process in processes:
            code, said = await stop(process)
            assert code == 0, said
            lines = [json.loads(line) for line in said.splitlines()]
            assert any("ignored arguments" in line["event"] for line in lines)
            assert not any(line["level"] == "error" for line in lines), said
    leases = {each["metadata"]["name"]: each for each in cluster.store.list(LEASE, "kube-system")}
    assert {"pumice-controller", "pumice-scheduler"} <= set(leases)
    assert {each["spec"]["holderIdentity"] for each in leases.values()} == {""}


async def test_one_that_a_library_aborts_shows_where(
    cluster: EmbeddedCluster, kubeconfig: str
) -> None:
    port = free_port()
    with running("controller", f"--kubeconfig={kubeconfig}", f"--metrics-port={port}") as process:
        await ready(f"http://127.0.0.1:{port}/readyz")
        code, said = await asyncio.to_thread(process.stop, signal.SIGABRT)
    assert code == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in said


async def test_certificates_are_made_and_trusted_once(
    cluster: EmbeddedCluster, kubeconfig: str
) -> None:
    for each in configurations(AdmissionSettings(), lambda path: {"url": f"https://x{path}"}):
        cluster.store.create(each)
    arguments = ("certs", "--once", "--kubeconfig", kubeconfig, "-n", "default")
    ran = await asyncio.to_thread(pumice, *arguments)
    assert ran.returncode == 0, ran.stderr
    made = cluster.store.get(SECRET, "pumice-webhook-certs", "default")
    assert made is not None
    hook = cluster.store.get(MUTATING_WEBHOOKS, "volcano-admission-service-jobs-mutate")
    assert hook is not None
    bundle = base64.b64decode(hook["webhooks"][0]["clientConfig"]["caBundle"])
    assert b"BEGIN CERTIFICATE" in bundle
    again = await asyncio.to_thread(pumice, *arguments)
    assert again.returncode == 0
    assert cluster.store.get(SECRET, "pumice-webhook-certs", "default") == made


async def test_certificates_are_kept(cluster: EmbeddedCluster, kubeconfig: str) -> None:
    port = free_port()
    with running("certs", f"--kubeconfig={kubeconfig}", f"--metrics-port={port}") as process:
        await ready(f"http://127.0.0.1:{port}/readyz")
        assert cluster.store.get(SECRET, "pumice-webhook-certs", "default") is not None
        assert (await stop(process))[0] == 0


async def test_a_webhook_with_certificates_of_its_own(
    cluster: EmbeddedCluster, kubeconfig: str
) -> None:
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    for each in configurations(AdmissionSettings(), lambda path: {"url": url + path}):
        cluster.store.create(each)
    with running(
        "webhook",
        f"--kubeconfig={kubeconfig}",
        "--host=127.0.0.1",
        f"--port={port}",
        "--webhook-namespace=default",
        "--webhook-service-name=pumice-webhook",
        "--webhook-secret-name=certificates",
        f"--webhook-url={url}",
        "--drain-seconds=0",
    ) as process:
        await until(
            lambda: cluster.store.get(SECRET, "certificates", "default"), "the Secret is made"
        )
        await ready(f"{url}/readyz", ssl=False)
        hook = cluster.store.get(MUTATING_WEBHOOKS, "volcano-admission-service-jobs-mutate")
        assert hook is not None
        bundle = base64.b64decode(hook["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        trusting = ssl.create_default_context(cadata=bundle)
        status, text = await answer(f"{url}/jobs/mutate", "POST", json=review(job()), ssl=trusting)
        assert status == 200
        assert json.loads(text)["response"]["allowed"] is True
        assert (await stop(process))[0] == 0


async def test_a_webhook_without_a_cluster(tmp_path: Path) -> None:
    state = tmp_path / "queues.yaml"
    state.write_text(json.dumps(queue("research")))
    port = free_port()
    arguments = ("webhook", "--state", str(state), "--port", str(port))
    with running(*arguments, "--max-queue-depth=3", "--scheduler-name=mine") as process:
        url = f"http://127.0.0.1:{port}"
        await ready(f"{url}/readyz")
        for name, allowed in (("research", True), ("reserach", False)):
            asked = review(job(queue=name, schedulerName="mine", minAvailable=1))
            _, text = await answer(f"{url}/jobs/validate", "POST", json=asked)
            assert json.loads(text)["response"]["allowed"] is allowed
        code, said = await stop(process)
        assert code == 0
        assert "Traceback" not in said


async def test_a_webhook_with_a_certificate_from_files(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    port = free_port()
    files = ("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key))
    state = tmp_path / "queues.yaml"
    state.write_text(json.dumps(queue("research")))
    missing = await asyncio.to_thread(pumice, "webhook", "--state", str(state), *files)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    authority = Authority.create(generate_key(), 0.0, 4e9)
    made = authority.issue(generate_key(), ["localhost"], ["127.0.0.1"], 0.0, 4e9)
    certificate.write_bytes(made.certificate_pem)
    key.write_bytes(made.key_pem)
    with running("webhook", "--state", str(state), "--port", str(port), *files) as process:
        await ready(f"https://127.0.0.1:{port}/readyz", ssl=False)
        assert (await stop(process))[0] == 0


def test_a_port_that_is_taken(kubeconfig: str) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for component in ("controller", "scheduler", "certs"):
            ran = pumice(component, "--master", "http://127.0.0.1:1", "--metrics-port", port)
            assert ran.returncode == 2
            assert f"--metrics-port {port}" in ran.stderr.splitlines()[-1]
            assert "Traceback" not in ran.stderr
