"""Webhook replicas with certificates, and the API server's way of calling them, at any moment.

The clients of these tests do what kube-apiserver does: take the `caBundle` as it stands in the
configuration, open a new connection, call the Service by name. OpenSSL cannot be told another time,
so its handshake checks everything but the dates, and the dates are checked at the test's moment by path
validation of what the server really presented.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from pumice.api.kinds import MUTATING_WEBHOOKS, SECRET, VALIDATING_WEBHOOKS, Kind
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.certs.verification import problem_with
from pumice.cluster.client import Client, Object
from tests.kit.clocks import ManualClock
from tests.kit.http import serving

SETTINGS = CertSettings("webhook", "default", mutating=("pumice",), validating=("pumice",))
CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
NO_CHECK_TIME = 0x200000
"""`X509_V_FLAG_NO_CHECK_TIME` of OpenSSL."""


def configuration(kind: Kind, *entries: str) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "pumice"},
        "webhooks": [
            {
                "name": f"{entry}.volcano.sh",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "service": {"name": "webhook", "namespace": "default", "path": f"/{entry}"}
                },
            }
            for entry in entries
        ],
    }


async def create_configurations(client: Client) -> None:
    for kind in CONFIGURATIONS:
        await client.create(kind, configuration(kind, "jobs", "queues"))


async def bundles(client: Client) -> list[bytes]:
    """The bundle of each entry of each configuration, as the API server has it."""
    found = [await client.get(kind, "pumice") for kind in CONFIGURATIONS]
    return [
        base64.b64decode(entry["clientConfig"].get("caBundle") or "")
        for each in found
        for entry in each["webhooks"]
    ]


async def secret_data(client: Client) -> dict[str, str]:
    return dict((await client.get(SECRET, SETTINGS.secret, "default"))["data"])


async def reset_bundles(client: Client) -> None:
    """What a GitOps tool does: put the manifests back as they are in its repository."""
    for kind in CONFIGURATIONS:
        found = await client.get(kind, "pumice")
        for entry in found["webhooks"]:
            entry["clientConfig"].pop("caBundle", None)
        await client.update(kind, found)


@dataclass
class Replica:
    """One webhook process: a keeper, and a TLS server on its certificate."""

    keeper: CertificateManager
    port: int

    async def call(self, client: Client, clock: ManualClock) -> None:
        """Call it as the API server would at this moment.

        Raises:
            AssertionError: When the certificate is refused because of its dates.
            ssl.SSLError: When the handshake fails.
        """
        for bundle in dict.fromkeys(await bundles(client)):
            chain = await handshake(self.port, bundle)
            assert problem_with(chain, bundle, SETTINGS.host, clock.wall()) is None


async def handshake(port: int, bundle: bytes) -> bytes:
    """Open a connection, make a request, and return the certificate that was presented."""
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=SETTINGS.host
    )
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.write(f"GET / HTTP/1.1\r\nHost: {SETTINGS.host}\r\n\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")
    writer.close()
    await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(der).encode()


@asynccontextmanager
async def replica(
    client: Client, clock: ManualClock, keeper: CertificateManager | None = None
) -> AsyncIterator[Replica]:
    """Start a replica; its keeper looks only when the test says so."""
    keeper = keeper or CertificateManager(client, SETTINGS, clock=clock)

    async def review(_: web.BaseRequest) -> web.Response:
        return web.Response()

    async with serving(review, keeper.serving.context) as port:
        yield Replica(keeper, port)
