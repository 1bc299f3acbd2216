"""Readiness, metrics, draining, certificates: what makes it a service."""

import asyncio
import ssl
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.cluster.lifecycle import SupervisedTask, run_until_stopped
from pumice.plugins import builtin
from pumice.plugins.other_owners import OwnerKey
from pumice.serving.probes import Probes
from pumice.webhook.admission import Admission
from pumice.webhook.server import (
    FileCertificates,
    InsecureAddressError,
    Listener,
    ServerSettings,
)
from pumice.webhook.server.lookup import LiveLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.integration.webhook.serving import QUICK, Pair, offline, running, session
from tests.kit.builders import job
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until
from tests.unit.webhook.reviewing import UID, request, review

JSON = {"Content-Type": "application/json"}
REVIEW = review(request("/jobs/validate", job()))


async def test_probes_and_metrics_on_both_ports(
    client: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pumice")
    worker = offline(settings=replace(QUICK, metrics_port=0))
    async with running(worker) as address:
        bad = review(request("/jobs/validate", job(queue="gone", plugins={"nope": []})))
        for body in (REVIEW, bad, b"{"):
            async with client.post(f"http://{address}/jobs/validate", data=body, headers=JSON):
                pass
        assert f"health and metrics on port {worker.listener.metrics_port}" in caplog.messages
        for place in (address, f"127.0.0.1:{worker.listener.metrics_port}"):
            async with client.get(f"http://{place}/healthz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")
            async with client.get(f"http://{place}/readyz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")
            async with client.get(f"http://{place}/readyz?verbose") as answer:
                assert await answer.text() == "[+]draining: ok\n"
            async with client.get(f"http://{place}/metrics") as answer:
                metrics = await answer.text()
        async with client.get(f"http://127.0.0.1:{worker.listener.metrics_port}/jobs") as answer:
            assert answer.status == 404
    for line in (
        'reviews_total{code="200",operation="CREATE",outcome="allowed",path="/jobs/validate"} 1.0',
        'reviews_total{code="422",operation="CREATE",outcome="denied",path="/jobs/validate"} 1.0',
        'reviews_total{code="400",operation="other",outcome="errored",path="/jobs/validate"} 1.0',
        'refusals_total{path="/jobs/validate",rule="JOB-PLUGIN"} 1.0',
        'refusals_total{path="/jobs/validate",rule="JOB-QUEUE-MISSING"} 1.0',
        'review_seconds_count{path="/jobs/validate"} 3.0',
    ):
        assert f"pumice_admission_{line}" in metrics


async def test_an_unknown_operation_is_counted_with_the_others(
    client: aiohttp.ClientSession,
) -> None:
    worker = offline()
    async with running(worker) as address:
        for number in range(3):
            asked = request("/jobs/validate", job(), f"O{number}")
            async with client.post(
                f"http://{address}/jobs/validate", data=review(asked), headers=JSON
            ) as answer:
                assert answer.status == 200
        labels = {
            "path": "/jobs/validate",
            "operation": "other",
            "outcome": "errored",
            "code": "400",
        }
        counted = worker.metrics.registry.get_sample_value("pumice_admission_reviews_total", labels)
    assert counted == 3


async def test_what_settings_let_pass_is_counted_and_logged(
    client: aiohttp.ClientSession, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = AdmissionSettings.from_assignments(
        ["rule.JOB-QUEUE-MISSING=warn", "namespace.dev.rule.JOB-QUEUE-MISSING=off"]
    )
    worker = offline(admission=levels)
    async with running(worker) as address:
        for namespace in ("default", "default", "dev"):
            asked = request("/jobs/validate", job(namespace=namespace, queue="gone", minSuccess=9))
            async with client.post(
                f"http://{address}/jobs/validate", data=review(asked), headers=JSON
            ) as answer:
                assert (await answer.json())["response"]["allowed"]

    def counted(name: str, rule: str) -> float | None:
        labels = {"path": "/jobs/validate", "rule": rule}
        return worker.metrics.registry.get_sample_value(f"pumice_admission_{name}_total", labels)

    assert counted("warnings", "JOB-MIN-SUCCESS") == 3
    assert counted("warnings", "JOB-QUEUE-MISSING") == 2
    assert counted("tolerated", "JOB-QUEUE-MISSING") == 2
    assert counted("tolerated", "JOB-MIN-SUCCESS") is None
    assert counted("refusals", "JOB-QUEUE-MISSING") is None
    logged = [line for line in capsys.readouterr().out.splitlines() if "tolerated" in line]
    assert len(logged) == 2
    assert all("JOB-QUEUE-MISSING" in line and "train" in line for line in logged)


class Broken(Snapshot):
    """A view in which every look for a queue fails."""

    def queue(self, name: str) -> None:
        raise RuntimeError(f"no answer for {name}")


async def test_a_rule_that_raises_refuses_and_is_logged_once(
    client: aiohttp.ClientSession, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = offline(Broken())
    async with running(worker) as address:
        for _ in range(2):
            async with client.post(
                f"http://{address}/jobs/validate", data=REVIEW, headers=JSON
            ) as answer:
                response = (await answer.json())["response"]
        assert not response["allowed"]
        message = response["status"]["message"]
        assert "[JOB-QUEUE-MISSING]" in message
        assert "RuntimeError: no answer for default" in message
        assert UID in message
    counted = worker.metrics.registry.get_sample_value(
        "pumice_admission_rule_crashes_total", {"rule": "JOB-QUEUE-MISSING"}
    )
    assert counted == 2
    assert capsys.readouterr().out.count("a rule raised") == 1


class Clueless(LiveLookup):
    """A lookup that does not do what lookups do."""

    def __init__(self) -> None:
        """Create it without an API server."""

    async def find(
        self, keys: Collection[OwnerKey], seconds: float, *, tree: bool = False
    ) -> dict[OwnerKey, Any]:
        raise RuntimeError(f"no idea of {[name for _, _, name in keys]} in {seconds > 0}")


async def test_whatever_else_raises_refuses_too_and_is_reported_once(
    client: aiohttp.ClientSession, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = ServerMetrics()
    reviews = Reviews(
        Admission(AdmissionSettings(), Snapshot(), builtin()), metrics, QUICK, Clueless()
    )
    probes = Probes(metrics.registry, {})
    listener = Listener(reviews, probes, ("/jobs/validate",), QUICK, metrics)
    stop = asyncio.Event()
    ending = asyncio.create_task(
        run_until_stopped([SupervisedTask("port", listener.run)], stop=stop, signals=())
    )
    await listener.started.wait()
    for _ in range(2):
        url = f"http://127.0.0.1:{listener.port}/jobs/validate"
        async with client.post(url, data=REVIEW, headers=JSON) as answer:
            assert answer.status == 200
            response = (await answer.json())["response"]
    stop.set()
    await ending
    assert (response["uid"], response["allowed"]) == (UID, False)
    assert response["status"]["code"] == 500
    assert (
        "RuntimeError: no idea of ['default'] in True [JOBS-VALIDATE]"
        in (response["status"]["message"])
    )
    crashes = metrics.registry.get_sample_value(
        "pumice_admission_rule_crashes_total", {"rule": "JOBS-VALIDATE"}
    )
    assert crashes == 2
    assert capsys.readouterr().out.count("a rule raised") == 1


async def test_plain_http_is_for_loopback_only(pair: Pair) -> None:
    with pytest.raises(
        InsecureAddressError, match=r"only loopback is served, found address 0\.0\.0\.0"
    ):
        offline(settings=ServerSettings(host="0.0.0.0"))
    offline(settings=ServerSettings(host="::1"))
    offline(settings=ServerSettings(host="localhost"))
    offline(
        settings=ServerSettings(host="0.0.0.0"),
        certificates=FileCertificates(pair.certificate, pair.key),
    )


async def test_it_ends_without_losing_a_review(client: aiohttp.ClientSession) -> None:
    clock = ManualClock()
    worker = offline(settings=ServerSettings(drain_seconds=5, shutdown_seconds=5), clock=clock)
    stop = asyncio.Event()
    ending = asyncio.create_task(run_until_stopped(worker.tasks(), stop=stop, signals=()))
    await worker.listener.started.wait()
    url = f"http://127.0.0.1:{worker.listener.port}"
    reader, writer = await asyncio.open_connection("127.0.0.1", worker.listener.port)
    head = (
        b"POST /jobs/validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(REVIEW)
    )
    writer.write(head + REVIEW[:100])
    await writer.drain()

    stop.set()
    await until(lambda: clock.sleeping)
    assert not worker.ready
    async with client.get(f"{url}/readyz") as answer:
        assert answer.status == 503
        assert "[-]draining: the process is ending" in await answer.text()
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=JSON) as answer:
        assert (await answer.json())["response"]["allowed"]
        assert answer.headers["Connection"] == "close"

    await clock.advance(5)
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.get(f"{url}/healthz")
    writer.write(REVIEW[100:])
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()
    await ending


async def read_anew(clock: ManualClock, seen: Callable[[], bool]) -> None:
    """Let the files be read again until that is seen; the clock moves once for each time."""
    async with asyncio.timeout(60):
        while not seen():
            await until(lambda: clock.sleeping or seen())
            await clock.advance(10)


async def test_files_that_cannot_be_served_are_noted_while_the_last_good_ones_are(
    own_pair: Pair,
) -> None:
    clock = ManualClock(time.time())
    certificates = FileCertificates(own_pair.certificate, own_pair.key, clock=clock)
    worker = offline(certificates=certificates)

    def unusable() -> float | None:
        return worker.metrics.registry.get_sample_value("pumice_certificate_files_unusable")

    async with running(worker) as address, session(own_pair.trusting()) as client:
        assert unusable() == 0
        own_pair.certificate.write_text("half")
        await read_anew(clock, lambda: unusable() == 1)
        async with client.get(f"https://{address}/readyz?verbose") as answer:
            assert answer.status == 200
            note = "[!]certificate files: the certificate read before stays: "
            assert note in await answer.text()
        own_pair.renew()
        await read_anew(clock, lambda: unusable() == 0)


async def test_a_renewed_certificate_is_served_without_a_restart(own_pair: Pair) -> None:
    clock = ManualClock(time.time())
    certificates = FileCertificates(own_pair.certificate, own_pair.key, clock=clock)
    worker = offline(certificates=certificates)

    def served(port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    async with running(worker) as address, session(own_pair.trusting()) as client:
        port = worker.listener.port
        before = await asyncio.to_thread(served, port)
        expiry = worker.metrics.registry.get_sample_value(
            "pumice_certificate_expiry_timestamp_seconds"
        )
        assert expiry == certificates.serving.expires
        async with client.get(f"https://{address}/readyz?verbose") as answer:
            parts = ("draining", "certificate", "certificate files")
            assert await answer.text() == "".join(f"[+]{each}: ok\n" for each in parts)

        own_pair.renew(seconds=600)
        await read_anew(clock, lambda: certificates.serving.expires != expiry)
        assert await asyncio.to_thread(served, port) != before

        await clock.advance(600)
        async with client.get(f"https://{address}/readyz") as answer:
            assert answer.status == 503
            assert "[-]certificate: the served certificate has expired" in await answer.text()


def test_a_missing_certificate_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        FileCertificates(tmp_path / "tls.crt", tmp_path / "tls.key")


async def test_a_port_that_is_taken_is_said_at_once() -> None:
    async with running(offline()) as address:
        settings = ServerSettings(port=int(address.split(":")[1]), drain_seconds=0)
        with pytest.raises(OSError, match="in use"):
            async with running(offline(settings=settings)):
                pass


def test_only_the_endpoints_that_are_wanted_are_served() -> None:
    worker = offline(paths=["/jobs/validate"], settings=QUICK)
    assert worker.ready
