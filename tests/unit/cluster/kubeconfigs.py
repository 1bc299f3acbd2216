"""Kubeconfigs, and a server that asks for a client's certificate."""

import base64
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.certs.authority import Authority, Leaf, generate_key, pem
from pumice.cluster import kubeconfig
from pumice.cluster.connection import load_pair
from pumice.serving.http_server import Handler
from tests.kit.http import serving

NOW = time.time()
CA = Authority.create(generate_key(), NOW - 60, NOW + 3600)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def write(
    path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **more: Any
) -> Path:
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


async def headers(path: Path) -> dict[str, str]:
    return dict(await (await kubeconfig.load(str(path))).credentials.headers())


def client_pair(who: str = "jane") -> tuple[bytes, bytes]:
    """A client's certificate and key."""
    key = generate_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(CA.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(NOW - 60, UTC))
        .not_valid_after(datetime.fromtimestamp(NOW + 3600, UTC))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(CA.key, hashes.SHA256())
    )
    return pem(certificate), Leaf(certificate, key).key_pem


@asynccontextmanager
async def tls_server(
    *, client_certificates: bool = False, answer: Handler | None = None
) -> AsyncIterator[str]:
    """An HTTPS server that answers whether the client presents a certificate, or something else."""
    leaf = CA.issue(generate_key(), ["api.test"], ["127.0.0.1"], NOW - 60, NOW + 3600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, leaf.certificate_pem, leaf.key_pem)
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=CA.certificate_pem.decode())

    async def presents(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        presented = request.transport.get_extra_info("peercert")
        return web.json_response({"presented": bool(presented)})

    async with serving(answer or presents, context) as port:
        yield f"https://127.0.0.1:{port}"
