"""Users of a kubeconfig whose credentials a plugin or a provider gives, and renews."""

import asyncio
import json
import os
import stat
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pumice.cluster import kubeconfig
from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError
from pumice.cluster.errors import ApiError
from pumice.cluster.renewed import Granted, RenewedCredentials
from pumice.cluster.side_loop import call_in, side_loop
from tests.kit.clocks import FastClock
from tests.unit.cluster.kubeconfigs import CA, client_pair, encoded, headers, tls_server, write
from tests.unit.cluster.tiny import TinyApi, status

CREDENTIAL = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)  # as an anchor may be in YAML


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
        assert isinstance(credentials, RenewedCredentials)
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
    assert isinstance(credentials, RenewedCredentials)
    clock = FastClock(1_893_456_000.0 - 3600)  # an hour before
    credentials._clock = clock
    credentials._renewed_at = -60.0
    assert dict(await credentials.headers()) == {"Authorization": "Bearer token-1"}
    clock.now += 3600 - 30
    assert dict(await credentials.headers()) == {"Authorization": "Bearer token-2"}


async def test_credentials_stay_while_their_plugin_fails(file: Path, plugin: Path) -> None:
    """It is run again soon, and a process does not begin without credentials."""
    write(file, {"server": "http://x"}, exec_user(plugin, "2030-01-01T00:00:00Z"))
    found = await kubeconfig.load(str(file))
    credentials = found.credentials
    assert isinstance(credentials, RenewedCredentials)
    credentials._clock = clock = FastClock(1_893_456_000.0 - 30)
    credentials._renewed_at = -60.0
    down = file.parent / "down"
    down.touch()
    assert dict(await credentials.headers()) == {"Authorization": "Bearer token-1"}
    with pytest.raises(ConfigurationError, match="gave no credentials: it ended with status 1"):
        await found.of_another_thread()
    down.unlink()
    clock.now += 10
    assert dict(await credentials.headers()) == {"Authorization": "Bearer token-2"}


async def test_requests_that_wait_for_a_plugin_do_not_run_it_again() -> None:
    """People may take longer to sign in than the time between two renewals."""
    clock = FastClock()
    asked = []

    async def ask() -> Granted:
        asked.append(clock.now)
        await clock.sleep(20.0)
        return Granted("t", expiry=clock.now + 3600)

    credentials = RenewedCredentials(ask, {}, lambda: None)
    credentials._clock = clock
    await credentials.renew()
    clock.now += 3600
    await asyncio.gather(*(credentials.headers() for _ in range(3)))
    assert len(asked) == 2


async def test_a_kubeconfig_may_come_from_a_pipe(file: Path, plugin: Path) -> None:
    """Which gives it once, though credentials are renewed."""
    content = write(file, {"server": "http://x"}, exec_user(plugin)).read_bytes()
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    found = await kubeconfig.load(f"/dev/fd/{reading}")
    assert dict(await found.credentials.headers()) == {"Authorization": "Bearer token-1"}
    again = await found.of_another_thread()
    assert dict(await again.credentials.headers()) == {"Authorization": "Bearer token-2"}
    os.close(reading)


async def test_another_thread_has_credentials_of_its_own(file: Path, plugin: Path) -> None:
    """A renewal that waits for a blocked event loop must not hold up the Lease."""
    write(file, {"server": "http://x"}, exec_user(plugin))
    here = await kubeconfig.load(str(file))
    async with side_loop("beside") as side:
        there = await call_in(side, here.of_another_thread)
        assert there.credentials is not here.credentials
        headers = await call_in(side, there.credentials.headers)
    assert dict(headers) == {"Authorization": "Bearer token-2"}
    assert dict(await here.credentials.headers()) == {"Authorization": "Bearer token-1"}
    write(file, {"server": "http://x"}, {"token": "abc"})
    shared = await kubeconfig.load(str(file))
    assert await shared.of_another_thread() is shared


async def test_a_plugin_may_be_beside_the_kubeconfig(
    file: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, {"server": "http://x"}, exec_user(f"./{plugin.name}"))
    assert await headers(file) == {"Authorization": "Bearer token-1"}
    monkeypatch.chdir(file.parent)
    assert await headers(Path(file.name)) == {"Authorization": "Bearer token-2"}


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
    assert isinstance(credentials, RenewedCredentials)
    await credentials.renew()
    assert dict(await credentials.headers()) == {"Authorization": "Bearer token-2"}
    other = await found.of_another_thread()
    assert other.server == "http://a"
    assert dict(await other.credentials.headers()) == {"Authorization": "Bearer token-3"}


async def test_certificates_of_a_plugin_are_renewed(file: Path) -> None:
    """Before they expire and after a 401; a connection with an earlier one is not used any more."""
    for number, name in enumerate("abc"):
        certificate, key = client_pair(name)
        answer = {
            "token": "t",
            "clientCertificateData": certificate.decode(),
            "clientKeyData": key.decode(),
            "expirationTimestamp": f"20{number + 3}0-01-01T00:00:00Z",
        }
        (file.parent / f"{number}").write_text(json.dumps(CREDENTIAL | {"status": answer}))
    script = f"cd {file.parent}; n=$(ls ran* 2>/dev/null | wc -l); touch ran$n; cat $n"
    user = exec_user("sh", "-c", script)
    cluster = {"tls-server-name": "api.test"}
    cluster["certificate-authority-data"] = encoded(CA.certificate_pem)
    refused = set()

    async def presented(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        [[(_, name)]] = request.transport.get_extra_info("peercert")["subject"]
        found = {"name": name, "signed": request.headers["Authorization"]}
        return web.json_response(found, status=401 if name in refused else 200)

    async with tls_server(client_certificates=True, answer=presented) as url:
        write(file, cluster | {"server": url}, user)
        async with Client.connect(file) as client:
            credentials = client.connection.credentials
            assert isinstance(credentials, RenewedCredentials)
            for _ in range(2):
                assert await client.version() == {"name": "a", "signed": "Bearer t"}
            credentials._clock = clock = FastClock(1_893_456_000.0 - 30)
            credentials._renewed_at = -60.0
            for _ in range(2):
                assert (await client.version())["name"] == "b"
            refused.add("b")
            clock.now += 20
            assert (await client.version())["name"] == "c"


async def test_a_plugin_is_told_what_it_asks_for_and_does_not_read_what_others_need(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = json.dumps(CREDENTIAL | {"status": {"token": "abc"}})
    script = f"echo \"$KUBERNETES_EXEC_INFO\" > {file.parent}/info; cat >&2; echo see $A >&2; echo '{answer}'"
    user = exec_user("sh", "-c", script)
    user["exec"] |= {"provideClusterInfo": True, "env": [{"name": "A", "value": "b"}]}
    extension = {
        "name": "client.authentication.k8s.io/exec",
        "extension": {"since": date(2030, 1, 1)},
    }
    cluster = {"server": "https://x", "tls-server-name": "y", "extensions": [extension]}
    write(file, cluster | {"certificate-authority-data": encoded(CA.certificate_pem)}, user)
    assert await headers(file) == {"Authorization": "Bearer abc"}
    told = {"server": "https://x", "tls-server-name": "y", "config": {"since": "2030-01-01"}}
    told["certificate-authority-data"] = encoded(CA.certificate_pem)
    expected = {"interactive": False, "cluster": told}
    assert json.loads((file.parent / "info").read_text())["spec"] == expected
    assert capfd.readouterr().err == "see b\n"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "gave no credentials: Only dicts with"),
        ({"extension": ENDLESS}, "gave no credentials: maximum recursion depth"),
        ({"command": None}, "user.exec.command: expected a program, found nothing"),
        ({"apiVersion": "v1alpha1"}, "user.exec.apiVersion: expected client.*/v1beta1, found"),
        ({"interactiveMode": "Sure"}, "user.exec.interactiveMode: expected Never, IfAvail"),
        ({"interactiveMode": "Always"}, "plugin sh needs a terminal"),
        ({"args": ["-c", 5]}, r"user.exec.args\[1\]: expected a string, found the integer 5"),
        ({"env": ["A=b"]}, r"user.exec.env\[0\]: expected an object, found the string"),
        ({"env": [{"name": "A=", "value": ""}]}, "illegal environment variable name"),
        ({"command": "no-such"}, "cannot be run: No such file or directory$"),
        (
            {"command": "no-such", "installHint": "brew it"},
            'cannot be run: No such file or directory; "brew it"',
        ),
        ({"args": ["-c", "exit 3"]}, "gave no credentials: it ended with status 3; run it by"),
        ({"args": ["-c", "echo {}"]}, "gave no credentials: Object missing required field"),
        ({"args": ["-c", "echo x"]}, "gave no credentials: JSON is malformed"),
        (
            {"args": ["-c", "cat /dev/zero | cat"]},
            "gave no credentials: it prints more than 16,777,216",
        ),
        ({"status": {}}, "expected status.token, or status.clientCertificateData and"),
        ({"status": {"clientKeyData": "k", "token": "t"}}, "expected status.token, or"),
        ({"status": {"token": 5}}, "Expected `str.*`, got `int` - at `\\$.status.token`"),
        ({"apiVersion": CREDENTIAL["apiVersion"] + "beta1"}, "apiVersion: expected .*v1beta1"),
    ],
)
async def test_what_is_wrong_with_a_plugin_is_said(
    file: Path, fields: dict[str, Any], message: str
) -> None:
    status = fields.get("status", {"token": "abc"})
    script = f"echo '{json.dumps(CREDENTIAL | {'status': status})}'"
    user = exec_user("sh", "-c", script)
    user["exec"] |= {"provideClusterInfo": True} | {
        k: v for k, v in fields.items() if k not in ("status", "extension")
    }
    config = fields.get("extension", {} if fields else {None: 1})
    extension = {"name": "client.authentication.k8s.io/exec", "extension": config}
    cluster = {"server": "http://x", "extensions": [extension]}
    write(file, cluster, user)
    with pytest.raises(ConfigurationError, match=message) as caught:
        await kubeconfig.load(str(file))
    assert str(file) in str(caught.value)


async def test_a_plugin_is_not_run_beside_other_ways_to_sign_in(
    file: Path, plugin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, {"server": "http://x"}, exec_user(plugin) | {"token": ""})
    assert await headers(file) == {"Authorization": "Bearer token-1"}
    write(file, {"server": "http://x"}, exec_user(plugin) | {"token": "abc"})
    assert await headers(file) == {"Authorization": "Bearer abc"}
    assert caplog.messages == [f"kubeconfig {file}: user.exec has no effect beside user.token"]
    others: list[dict[str, Any]] = [
        {"auth-provider": {}},
        {"token": "a", "username": "b"},
        {"password": "a"},
    ]
    for more in others:
        write(file, {"server": "http://x"}, exec_user(plugin) | more)
        with pytest.raises(ConfigurationError, match="expected one way to sign in, found user"):
            await kubeconfig.load(str(file))


async def test_who_signs_in_by_a_plugin_may_act_for_another(file: Path, plugin: Path) -> None:
    write(file, {"server": "http://x"}, exec_user(plugin) | {"as": "jane"})
    assert await headers(file) == {"Authorization": "Bearer token-1", "Impersonate-User": "jane"}
