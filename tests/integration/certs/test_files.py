"""A certificate in a mounted Secret that cert-manager renews: nobody notices, whatever the files go through."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from pumice.certs.authority import Authority, Leaf, generate_key
from pumice.certs.injection import Injector
from pumice.certs.verification import refusal
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.webhook.server import FileCertificates
from tests.integration.certs.reviews import loading
from tests.integration.certs.webhooks import bundles, configuration
from tests.kit.clocks import ManualClock
from tests.kit.http import serving
from tests.kit.waiting import until
from tests.support.mounts import SecretMount
from tests.unit.certs.keys import authority

HOST = "webhook.default.svc"


def live() -> Authority:
    return authority(time.time() - 3600, time.time() + 86_400)


def files(ca: Authority) -> dict[str, bytes]:
    """What cert-manager writes."""
    now = time.time()
    leaf: Leaf = ca.issue(generate_key(), [HOST], [], now - 60, now + 3600)
    return {
        "tls.crt": leaf.certificate_pem,
        "tls.key": leaf.key_pem,
        "ca.crt": ca.certificate_pem,
    }


@pytest.fixture
def ca() -> Authority:
    return live()


@pytest.fixture
def mount(tmp_path: Path, ca: Authority) -> SecretMount:
    made = SecretMount(tmp_path / "tls")
    made.put(files(ca))
    return made


@pytest.fixture
def certificates(mount: SecretMount, clock: ManualClock) -> FileCertificates:
    clock.now = time.time()
    return FileCertificates(mount.folder / "tls.crt", mount.folder / "tls.key", clock=clock)


@pytest.fixture
async def following(certificates: FileCertificates) -> AsyncIterator[FileCertificates]:
    """The certificates, read again every ten seconds of the clock."""
    async with running(certificates):
        yield certificates


@asynccontextmanager
async def running(certificates: FileCertificates) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_until_stopped(certificates.tasks(), stop=stop, signals=()))
    try:
        yield
    finally:
        stop.set()
        await task


@pytest.fixture
async def url(certificates: FileCertificates) -> AsyncIterator[str]:
    async def answer(_: web.BaseRequest) -> web.Response:
        await asyncio.sleep(0.01)  # so that renewals happen while it answers
        return web.Response(text="ok")

    async with serving(answer, certificates.serving.context) as port:
        yield f"https://127.0.0.1:{port}/"


async def test_ten_renewals_under_load_drop_no_connection(
    mount: SecretMount,
    ca: Authority,
    following: FileCertificates,
    clock: ManualClock,
    url: str,
) -> None:
    trusting = ssl.create_default_context(cadata=ca.certificate_pem.decode())

    async def ask(session: aiohttp.ClientSession) -> None:
        async with session.get(url, ssl=trusting, server_hostname=HOST) as answer:
            assert await answer.text() == "ok"

    async def ask_anew() -> None:
        async with aiohttp.ClientSession() as fresh:
            await ask(fresh)

    connections: list[object] = []

    async def opened(*about: object) -> None:
        connections.append(about)

    watching = aiohttp.TraceConfig()
    watching.on_connection_create_end.append(opened)
    async with (
        aiohttp.ClientSession(trace_configs=[watching]) as kept,
        loading(lambda: ask(kept), 1),
        loading(ask_anew, 2),
    ):
        for _ in range(10):
            good = files(ca)
            for spoilt in ({**good, "tls.key": b""}, {**good, "tls.crt": b""}, {"ca.crt": b""}):
                mount.put(spoilt)
                await until(lambda: clock.sleeping)
                await clock.advance(10)
                assert following.problem is None
            mount.put(good)
            await until(lambda: clock.sleeping)
            await clock.advance(10)
            await until(lambda good=good: _serves(following, good))  # type: ignore[misc]
    assert len(connections) == 1, "the connection that was kept lived through all of it"


def _serves(certificates: FileCertificates, pair: dict[str, bytes]) -> bool:
    return certificates.serving.chain == pair["tls.crt"]


async def test_readiness_follows_what_is_injected_by_another_program(
    mount: SecretMount,
    ca: Authority,
    certificates: FileCertificates,
    client: Client,
) -> None:
    unknown = certificates.problem
    assert unknown is None, "nobody has said who calls"
    certificates.compare_with(Injector(client, ("pumice",), ("pumice",)))
    assert certificates.problem == "the webhook configurations are not read yet"
    async with running(certificates):
        await until(lambda: certificates.problem is None)  # nobody calls, so nobody can be refused
        await _judged(certificates, ca, client)


async def _judged(certificates: FileCertificates, ca: Authority, client: Client) -> None:
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        await client.create(kind, configuration(kind, "jobs"))
    refused = f"the API server would refuse what is served to {HOST}: "
    await until(lambda: certificates.problem == f"{refused}the bundle holds no certificate")

    async def inject(bundle: bytes) -> None:
        await Injector(client, ("pumice",), ("pumice",)).inject(bundle)

    await inject(live().certificate_pem)
    await until(lambda: "unable to get local issuer" in str(certificates.problem))
    await inject(ca.certificate_pem)
    await until(lambda: certificates.problem is None)
    assert await bundles(client) == [ca.certificate_pem] * 2, "and nobody wrote anything else"


async def test_a_handshake_after_the_end_reads_the_files_first(
    mount: SecretMount, certificates: FileCertificates, clock: ManualClock
) -> None:
    """As after a night in which the machine was suspended, and kubelet was awake first."""
    renewed = live()
    mount.put(files(renewed))
    clock.now += 2 * 3600
    assert certificates.problem == "the served certificate has expired"
    assert refusal(certificates.serving.context, renewed.certificate_pem, HOST) is None
