"""Users of a kubeconfig whose credentials a plugin gives, by the official package."""

import asyncio
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pumice.cluster import kubeconfig
from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError
from pumice.cluster.errors import ApiError
from pumice.cluster.official import OfficialCredentials
from pumice.cluster.side_loop import call_in, side_loop
from tests.kit.clocks import FastClock
from tests.unit.cluster.kubeconfigs import CA, client_pair, encoded, headers, tls_server, write
from tests.unit.cluster.tiny import TinyApi, status


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A credential plugin that hands out another token each time it is run."""
    script = tmp_path / "plugin"
    runs = tmp_path / "runs"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"runs = pathlib.Path({str(runs)!r})\n"
        f"if pathlib.Path({str(tmp_path / 'down')!r}).exists(): sys.exit('the network is down')\n"
        "count = len(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text('x' * count)\n"
        "status = {'token': f'token-{count}'}\n"
        "if len(sys.argv) > 1: status['expirationTimestamp'] = sys.argv[1]\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',\n"
        "                  'kind': 'ExecCredential', 'status': status}))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def exec_user(plugin: Path | str, *arguments: str) -> dict[str, Any]:
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


async def test_credentials_stay_while_their_plugin_fails(file: Path, plugin: Path) -> None:
    """It is run again soon, and a process does not begin without credentials."""
    write(file, {"server": "http://x"}, exec_user(plugin, "2030-01-01T00:00:00Z"))
    found = await kubeconfig.load(str(file))
    credentials = found.credentials
    assert isinstance(credentials, OfficialCredentials)
    credentials._clock = clock = FastClock(1_893_456_000.0 - 30)
    credentials._renewed_at = -60.0
    down = file.parent / "down"
    down.touch()
    assert dict(await credentials.headers()) == {"authorization": "Bearer token-1"}
    with pytest.raises(ConfigurationError, match="gave no credentials; run the plugin by hand"):
        await found.of_another_thread()
    down.unlink()
    clock.now += 10
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


async def test_a_plugin_may_be_beside_the_kubeconfig(
    file: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, {"server": "http://x"}, exec_user(f"./{plugin.name}"))
    assert await headers(file) == {"authorization": "Bearer token-1"}
    monkeypatch.chdir(file.parent)
    assert await headers(Path(file.name)) == {"authorization": "Bearer token-2"}


def oidc_user(url: str, **more: str) -> dict[str, Any]:
    config = {"client-id": "c", "client-secret": "s", "refresh-token": "r", "idp-issuer-url": url}
    return {"auth-provider": {"name": "oidc", "config": config | more}}


async def _provider(request: web.BaseRequest) -> web.Response:
    """An OIDC provider."""
    if request.path.endswith("openid-configuration"):
        return web.json_response({"token_endpoint": f"https://{request.host}/token"})
    return web.json_response({"id_token": "fresh", "refresh_token": "next"})


@pytest.mark.filterwarnings("ignore::DeprecationWarning:kubernetes")
async def test_a_provider_of_tokens_must_have_a_certificate_of_its_authority(file: Path) -> None:
    (file.parent / "ca.pem").write_bytes(CA.certificate_pem)
    async with tls_server(answer=_provider) as url:
        write(file, {"server": "http://x"}, oidc_user(url))
        with pytest.raises(ConfigurationError, match="certificate verify failed"):
            await kubeconfig.load(str(file))
        write(
            file, {"server": "http://x"}, oidc_user(url, **{"idp-certificate-authority": "ca.pem"})
        )
        assert await headers(file) == {"authorization": "Bearer fresh"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:kubernetes")
async def test_a_provider_that_hangs_up_is_named(file: Path) -> None:
    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        write(file, {"server": "http://x"}, oidc_user(url))
        with pytest.raises(ConfigurationError, match="Server disconnected"):
            await kubeconfig.load(str(file))


async def test_the_chosen_context_stays_when_another_becomes_the_current_one(
    file: Path, plugin: Path
) -> None:
    """No cluster gets the credentials of another one's user."""
    more: dict[str, Any] = {
        "current-context": "a",
        "contexts": [{"name": each, "context": {"cluster": each, "user": each}} for each in "ab"],
        "clusters": [{"name": each, "cluster": {"server": f"http://{each}"}} for each in "ab"],
        "users": [{"name": "a", "user": exec_user(plugin)}, {"name": "b", "user": {"token": "b"}}],
    }
    write(file, {}, **more)
    found = await kubeconfig.load(str(file))
    write(file, {}, **(more | {"current-context": "b"}))
    credentials = found.credentials
    assert isinstance(credentials, OfficialCredentials)
    await credentials.renew()
    assert dict(await credentials.headers()) == {"authorization": "Bearer token-2"}
    other = await found.of_another_thread()
    assert other.server == "http://a"
    assert dict(await other.credentials.headers()) == {"authorization": "Bearer token-3"}


async def test_a_plugin_may_answer_with_a_certificate(file: Path) -> None:
    certificate, key = client_pair()
    status = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    user = exec_user(Path("echo"), json.dumps(answer | {"status": status}))
    cluster = {"tls-server-name": "api.test"}
    cluster["certificate-authority-data"] = encoded(CA.certificate_pem)
    async with tls_server(client_certificates=True) as url:
        write(file, cluster | {"server": url}, user)
        async with Client.connect(file) as client:
            assert await client.version() == {"presented": True}


async def test_who_signs_in_by_a_plugin_may_act_for_another(file: Path, plugin: Path) -> None:
    write(file, {"server": "http://x"}, exec_user(plugin) | {"as": "jane"})
    assert await headers(file) == {"authorization": "Bearer token-1", "Impersonate-User": "jane"}
