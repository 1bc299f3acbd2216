"""What kubeconfig files say, and what is said of those that are wrong."""

import asyncio
import base64
import json
import os
import ssl
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.certs.authority import Authority, Leaf, generate_key, pem
from pumice.cluster import kubeconfig
from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError, load_pair
from pumice.cluster.errors import ApiError, Unavailable
from pumice.cluster.failures import NOT_TRUSTED
from pumice.cluster.official import OfficialCredentials
from pumice.cluster.side_loop import call_in, side_loop
from tests.kit.clocks import FastClock
from tests.kit.http import serving
from tests.unit.cluster.tiny import TinyApi, status

NOW = time.time()
CA = Authority.create(generate_key(), NOW - 60, NOW + 3600)
MAIN = "current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}]"


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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, {"Authorization": "Bearer abc"}),
        ({"tokenFile": "token.txt"}, {"Authorization": "Bearer from-file"}),
        ({"username": "me", "password": "pw"}, {"Authorization": "Basic bWU6cHc="}),
        (
            {"token": "abc", "as": "jane"},
            {"Authorization": "Bearer abc", "Impersonate-User": "jane"},
        ),
        ({}, {}),
    ],
)
async def test_users_sign_in_as_the_file_says(
    file: Path, user: dict[str, Any], expected: dict[str, str]
) -> None:
    (file.parent / "token.txt").write_text("from-file\n")
    assert await headers(write(file, {"server": "http://x"}, user)) == expected


async def test_every_impersonated_group_is_a_header(file: Path, api: TinyApi) -> None:
    write(file, {"server": api.url}, {"as": "jane", "as-groups": ["dev", "ops"]})
    found = await kubeconfig.load(str(file))
    signed = await found.credentials.headers()
    assert [value for key, value in signed.items() if key == "Impersonate-Group"] == ["dev", "ops"]


def client_pair() -> tuple[bytes, bytes]:
    """A client's certificate and key."""
    key = generate_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
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
async def tls_server(*, client_certificates: bool) -> AsyncIterator[str]:
    """An HTTPS server that answers with the name in the client's certificate."""
    leaf = CA.issue(generate_key(), ["api.test"], [], NOW - 60, NOW + 3600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, leaf.certificate_pem, leaf.key_pem)
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=CA.certificate_pem.decode())

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        presented = request.transport.get_extra_info("peercert")
        return web.json_response({"presented": bool(presented)})

    async with serving(answer, context) as port:
        yield f"https://127.0.0.1:{port}"


@pytest.mark.parametrize("inline", [True, False])
async def test_certificates_may_be_inline_or_in_files_beside(file: Path, inline: bool) -> None:
    certificate, key = client_pair()
    pair = {"client-certificate": certificate, "client-key": key}
    cluster: dict[str, Any] = {"tls-server-name": "api.test"}
    user: dict[str, Any] = {}
    for entry, content in (
        (cluster, {"certificate-authority": CA.certificate_pem}),
        (user, pair),
    ):
        for name, value in content.items():
            if inline:
                entry[f"{name}-data"] = encoded(value)
            else:
                (file.parent / f"{name}.pem").write_bytes(value)
                entry[name] = f"{name}.pem"
    async with tls_server(client_certificates=True) as url:
        write(file, {**cluster, "server": url}, user)
        async with Client.connect(file) as client:
            assert await client.version() == {"presented": True}


async def test_a_server_of_another_ca_is_refused(file: Path, ca_pem: bytes) -> None:
    async with tls_server(client_certificates=False) as url:
        cluster = {"tls-server-name": "api.test", "certificate-authority-data": encoded(ca_pem)}
        write(file, {**cluster, "server": url})
        async with Client.connect(file, clock=FastClock()) as client:
            with pytest.raises(Unavailable, match="certificate verify failed") as caught:
                await client.version()
    assert caught.value.reason == NOT_TRUSTED
    assert "_ssl" not in caught.value.message


async def test_verification_can_be_switched_off(file: Path) -> None:
    async with tls_server(client_certificates=False) as url:
        write(file, {"server": url, "insecure-skip-tls-verify": True})
        async with Client.connect(file) as client:
            assert await client.version() == {"presented": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1\n", "is no YAML: line 2: did not find expected ',' or ']'"),
        ("\0", "is no YAML: unacceptable character #x0000: control characters are not allowed"),
        ("\udc81", "must be UTF-8 text"),
        ("just text", "expected a mapping at the top"),
        ("{}", "current-context is not set"),
        ("current-context: gone", "contexts has no entry named 'gone'"),
        (
            f"{{{MAIN}}}",
            "clusters has no entry named 'c'",
        ),
        (
            "{current-context: gone, contexts: [{name: dev}, {name: prod}]}",
            "contexts has no entry named 'gone'; there are dev, prod",
        ),
        ("{kind: Job, metadata: {name: train}}", "is a Job, expected a kubeconfig"),
        (
            f"{{{MAIN}, clusters: [{{name: c, cluster: {{}}}}], users: [{{name: u}}]}}",
            "cluster.server is missing",
        ),
        (
            f"{{{MAIN}, clusters: [{{name: c, cluster: {{server: 'http://x'}}}}]}}",
            "users has no entry named 'u'",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(file: Path, text: str, message: str) -> None:
    file.write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(kubeconfig.load(str(file)))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"certificate-authority": "gone.pem"}, {}, "gone.pem"),
        ({"certificate-authority-data": "%%%"}, {}, "base64"),
        ({"certificate-authority-data": encoded(b"rubbish")}, {}, "config"),
        ({}, {"client-key-data": encoded(b"x")}, "go together, one is missing"),
        ({}, {"tokenFile": "gone.txt"}, "gone.txt"),
        ({"certificate-authority": "/dev/zero"}, {}, "^/dev/zero: has more than 16,777,216 bytes"),
        ({}, {"tokenFile": "/dev/zero"}, "^/dev/zero: has more than"),
    ],
)
async def test_what_a_file_refers_to_must_be_there(
    file: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    write(file, {"server": "https://x", **cluster}, user)
    with pytest.raises(ConfigurationError, match=message):
        await kubeconfig.load(str(file))


async def test_a_file_without_end_is_not_read_to_the_end(file: Path) -> None:
    for paths in ("/dev/zero", f"{write(file, {'server': 'http://x'})}{os.pathsep}/dev/zero"):
        with pytest.raises(ConfigurationError, match=r"^/dev/zero: has more than 16,777,216 bytes"):
            await kubeconfig.load(paths)


async def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        await kubeconfig.load(str(file))


# What goes to the official package


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A credential plugin that hands out another token each time it is run."""
    script = tmp_path / "plugin"
    runs = tmp_path / "runs"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"runs = pathlib.Path({str(runs)!r})\n"
        "count = len(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text('x' * count)\n"
        "status = {'token': f'token-{count}'}\n"
        "if len(sys.argv) > 1: status['expirationTimestamp'] = sys.argv[1]\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',\n"
        "                  'kind': 'ExecCredential', 'status': status}))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def exec_user(plugin: Path, *arguments: str) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "args": list(arguments),
        }
    }


async def test_plugins_are_run_and_their_token_is_sent(
    file: Path, plugin: Path, api: TinyApi
) -> None:
    write(file, {"server": api.url}, exec_user(plugin))
    async with Client.connect(file) as client:
        await client.version()
        await client.version()
    assert [seen.headers["Authorization"] for seen in api.requests] == ["Bearer token-1"] * 2


async def test_plugins_are_run_again_after_a_refusal(
    file: Path, plugin: Path, api: TinyApi, fast: FastClock
) -> None:
    write(file, {"server": api.url}, exec_user(plugin))
    async with Client.connect(file) as client:
        credentials = client.connection.credentials
        assert isinstance(credentials, OfficialCredentials)
        credentials._renewed_at -= 60
        api.answer_next(401, status(401, "Unauthorized"))
        await client.version()
        assert [seen.headers["Authorization"] for seen in api.requests] == [
            "Bearer token-1",
            "Bearer token-2",
        ]
        for _ in range(2):
            api.answer_next(401, status(401, "Unauthorized"))
        with pytest.raises(ApiError, match="401"):
            await client.version()


async def test_plugins_are_run_again_before_their_token_expires(file: Path, plugin: Path) -> None:
    write(file, {"server": "http://x"}, exec_user(plugin, "2030-01-01T00:00:00Z"))
    found = await kubeconfig.load(str(file))
    credentials = found.credentials
    assert isinstance(credentials, OfficialCredentials)
    clock = FastClock(1_893_456_000.0 - 3600)  # an hour before
    credentials._clock = clock
    credentials._renewed_at = -60.0
    assert dict(await credentials.headers()) == {"authorization": "Bearer token-1"}
    clock.now += 3600 - 30
    assert dict(await credentials.headers()) == {"authorization": "Bearer token-2"}


async def test_another_thread_has_credentials_of_its_own(file: Path, plugin: Path) -> None:
    """A renewal that waits for a blocked event loop must not hold up the Lease."""
    write(file, {"server": "http://x"}, exec_user(plugin))
    here = await kubeconfig.load(str(file))
    async with side_loop("beside") as side:
        there = await call_in(side, here.of_another_thread)
        assert there.credentials is not here.credentials
        headers = await call_in(side, there.credentials.headers)
    assert dict(headers) == {"authorization": "Bearer token-2"}
    assert dict(await here.credentials.headers()) == {"authorization": "Bearer token-1"}
    write(file, {"server": "http://x"}, {"token": "abc"})
    shared = await kubeconfig.load(str(file))
    assert await shared.of_another_thread() is shared


async def test_several_files_are_merged(tmp_path: Path) -> None:
    first = write(tmp_path / "one", {"server": "http://one"}, {"token": "abc"})
    second = write(tmp_path / "two", {"server": "http://two"})
    found = await kubeconfig.load(os.pathsep.join([str(first), str(second)]))
    assert found.server == "http://one"
    assert dict(await found.credentials.headers()) == {"authorization": "Bearer abc"}


async def test_a_file_that_the_official_package_refuses_is_named(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.write_text(json.dumps({"clusters": []}))
    second.write_text(json.dumps({"clusters": []}))
    with pytest.raises(ConfigurationError, match="current-context"):
        await kubeconfig.load(f"{first}{os.pathsep}{second}")


@pytest.mark.parametrize("user", [{"token": "abc"}, {"exec": {}}])
async def test_a_context_may_be_chosen_by_name(file: Path, user: dict[str, Any]) -> None:
    """Also where the official package reads the file."""
    if "exec" in user:
        answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"abc"}}'
        user["exec"] = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "echo",
            "args": [answer],
            "interactiveMode": "Never",
        }
    other = {"cluster": "d", "user": "u", "namespace": "team"}
    write(
        file,
        {"server": "http://first:1"},
        user,
        contexts=[
            {"name": "here", "context": {"cluster": "c"}},
            {"name": "there", "context": other},
        ],
        clusters=[
            {"name": "c", "cluster": {"server": "http://first:1"}},
            {"name": "d", "cluster": {"server": "http://second:2"}},
        ],
    )
    found = await kubeconfig.find_connection(file, context="there")
    assert (found.server, found.namespace) == ("http://second:2", "team")
    assert list((await found.credentials.headers()).values()) == ["Bearer abc"]
    assert (await kubeconfig.find_connection(file)).namespace == "default"
    with pytest.raises(ConfigurationError, match="none"):
        await kubeconfig.find_connection(file, context="none")
