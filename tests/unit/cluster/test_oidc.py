"""Users of a kubeconfig with an OIDC provider, whose new tokens are kept."""

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from pumice.cluster import kubeconfig, oidc
from pumice.cluster.connection import ConfigurationError, contents
from pumice.cluster.side_loop import call_in, side_loop
from tests.kit.http import serving
from tests.unit.cluster.kubeconfigs import CA, headers, tls_server, write


def token(**claims: Any) -> str:
    """A JWT; its payload has characters that only URLs write so."""
    payload = json.dumps({"sub": "Zoë>>>???", **claims}, ensure_ascii=False).encode()
    text = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    assert set("-_") <= set(text)
    return f"e30.{text}.signature"


class Provider:
    """An OIDC provider that takes each refresh token once, unless it gives none instead."""

    def __init__(self) -> None:
        self.url = ""
        self.refresh = "r0"
        self.rotates = True
        self.found: dict[str, Any] = {}
        self.asked: list[tuple[str | None, dict[str, str]]] = []

    async def answer(self, request: web.BaseRequest) -> web.Response:
        if request.path.endswith("openid-configuration"):
            place = f"{request.scheme}://{request.host}/token"
            return web.json_response({"token_endpoint": place} | self.found)
        form = {key: str(value) for key, value in (await request.post()).items()}
        if form.pop("refresh_token") != self.refresh:
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.asked.append((request.headers.get("Authorization"), form))
        answer = {"id_token": token(exp=time.time() + 3600, n=len(self.asked))}
        if self.rotates:
            answer["refresh_token"] = self.refresh = f"r{len(self.asked)}"
        return web.json_response(answer)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    async with serving(made.answer) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


def oidc_user(url: str, **more: str) -> dict[str, Any]:
    config = {"client-id": "c", "client-secret": "s:", "refresh-token": "r0", "idp-issuer-url": url}
    return {"auth-provider": {"name": "oidc", "config": config | more}}


def settings(content: bytes) -> dict[str, str]:
    [user] = yaml.safe_load(content)["users"]
    found: dict[str, str] = user["user"]["auth-provider"]["config"]
    return found


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def mode(file: Path, new: int | None = None) -> int:
    if new is not None:
        file.chmod(new)
    return file.stat().st_mode & 0o777


async def test_new_tokens_are_written_where_the_user_is(
    file: Path, provider: Provider, tmp_path: Path
) -> None:
    """So that what starts later does not ask the provider, and has the refresh token that it takes."""
    first, link = tmp_path / "first", tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to(file)
    write(first, {"server": "http://x"}, users=[])
    write(file, {"server": "http://y"}, oidc_user(provider.url), extensions=["é"], other=[1])
    mode(file, 0o640)
    before, untouched = contents(file), contents(first)
    found = await kubeconfig.load(os.pathsep.join([str(first), str(link)]))
    after = contents(file)
    config = settings(after)
    assert dict(await found.credentials.headers()) == {
        "Authorization": f"Bearer {config['id-token']}"
    }
    assert (link.is_symlink(), mode(file)) == (True, 0o640)
    assert contents(first) == untouched
    assert {**yaml.safe_load(after), "users": []} == {**yaml.safe_load(before), "users": []}
    assert config == settings(before) | {
        "id-token": config["id-token"],
        "refresh-token": "r1",
    }
    assert await headers(file) == {"Authorization": f"Bearer {config['id-token']}"}
    assert len(provider.asked) == 1
    assert names(tmp_path) == ["config", "first", "folder"]


async def test_beside_the_user_there_may_be_what_is_none(file: Path, provider: Provider) -> None:
    user = {"name": "u", "user": oidc_user(provider.url)}
    others = ["u", {"user": {}}, {"name": "u", "user": "text"}]
    write(file, {"server": "http://x"}, users=[*others, user])
    await kubeconfig.load(str(file))
    *untouched, written = yaml.safe_load(contents(file))["users"]
    assert (untouched, written["user"]["auth-provider"]["config"]["refresh-token"]) == (
        others,
        "r1",
    )


async def test_tokens_that_are_about_to_expire_are_renewed(file: Path, provider: Provider) -> None:
    for number in (1, 2):
        more = {"id-token": token(exp=time.time() + 30), "refresh-token": provider.refresh}
        write(file, {"server": "http://x"}, oidc_user(provider.url, **more))
        await kubeconfig.load(str(file))
        assert len(provider.asked) == number
    write(file, {"server": "http://x"}, oidc_user("", **{"id-token": token(exp=9e9)}))
    assert await headers(file) == {"Authorization": f"Bearer {token(exp=9e9)}"}


async def test_of_several_that_need_a_token_one_asks_the_provider(
    file: Path, provider: Provider
) -> None:
    write(file, {"server": "http://x"}, oidc_user(provider.url))
    await asyncio.gather(*(kubeconfig.load(str(file)) for _ in range(4)))
    assert len(provider.asked) == 1


@pytest.mark.parametrize("why", ["it is not writable", "File exists"])
async def test_a_file_that_cannot_be_written_is_said_once(
    file: Path,
    provider: Provider,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    why: str,
) -> None:
    """This process goes on with the new tokens."""
    write(file, {"server": "http://x"}, oidc_user(provider.url))
    link = tmp_path / "link"
    link.symlink_to(file)
    lock = Path(f"{link}.lock")
    if why == "File exists":
        write(lock, {})  # as kubectl does while it writes
    mode(file, 0o640 if why == "File exists" else 0o444)
    before = contents(file)
    found = await kubeconfig.load(str(link))
    async with side_loop("beside") as side:
        await call_in(side, found.of_another_thread)
    assert len(provider.asked) == 1
    assert contents(file) == before
    [message] = caplog.messages
    assert f"kubeconfig {link}: the provider's new tokens cannot be written there" in message
    assert why in message
    locks = [lock.name] if why == "File exists" else []
    assert names(file.parent) == ["config", "link", *locks]


@pytest.mark.parametrize(
    ("secret", "methods", "expected"),
    [
        ("s:", None, ("Basic YzpzJTNB", {})),
        ("s:", ["client_secret_post"], (None, {"client_id": "c", "client_secret": "s:"})),
        ("", None, (None, {"client_id": "c"})),
    ],
)
async def test_a_provider_is_asked_in_the_way_that_it_takes(
    file: Path,
    provider: Provider,
    secret: str,
    methods: list[str] | None,
    expected: tuple[str | None, dict[str, str]],
) -> None:
    """One that gives no other refresh token takes the same again."""
    provider.rotates = False
    if methods:
        provider.found["token_endpoint_auth_methods_supported"] = methods
    write(file, {"server": "http://x"}, oidc_user(provider.url, **{"client-secret": secret}))
    await kubeconfig.load(str(file))
    assert provider.asked == [(expected[0], {"grant_type": "refresh_token", **expected[1]})]
    assert settings(contents(file))["refresh-token"] == "r0"


async def test_a_provider_must_have_a_certificate_of_its_authority(
    file: Path, provider: Provider
) -> None:
    (file.parent / "ca.pem").write_bytes(CA.certificate_pem)
    async with tls_server(answer=provider.answer) as url:
        write(file, {"server": "http://x"}, oidc_user(url))
        with pytest.raises(ConfigurationError, match="certificate verify failed"):
            await kubeconfig.load(str(file))
        authority = {"idp-certificate-authority": "ca.pem"}
        write(file, {"server": "http://x"}, oidc_user(url, **authority))
        await kubeconfig.load(str(file))
    assert settings(contents(file))["refresh-token"] == "r1"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"refresh-token": "old"}, 'answers 400: {"error": "invalid_grant"}'),
        ({"refresh-token": ""}, "config.refresh-token: expected a string, found nothing"),
        ({"idp-issuer-url": "file:///etc"}, 'begins with https://, found "file:///etc/.well-'),
        ({"idp-issuer-url": "http://127.0.0.1:1"}, "http://127.0.0.1:1: .*refused"),
        ({"client-id": 5}, "config.client-id: expected a string, found the integer 5"),
    ],
)
async def test_what_is_wrong_with_a_provider_is_said(
    file: Path, provider: Provider, more: dict[str, str], message: str
) -> None:
    write(file, {"server": "http://x"}, oidc_user(provider.url, **more))
    with pytest.raises(ConfigurationError, match=message) as caught:
        await kubeconfig.load(str(file))
    assert str(file) in str(caught.value)
    write(file, {"server": "http://x"}, {"auth-provider": {"name": "gcp"}})
    with pytest.raises(ConfigurationError, match='expected oidc, found "gcp"; for others'):
        await kubeconfig.load(str(file))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "no id token of {}: Remote end closed"),
        (b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "{} answers 500$"),
    ],
)
async def test_a_provider_that_hangs_up_is_named(file: Path, said: bytes, message: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        write(file, {"server": "http://x"}, oidc_user(url))
        with pytest.raises(ConfigurationError, match=message.format(url)):
            await kubeconfig.load(str(file))


async def test_an_answer_that_does_not_end_is_given_up(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing interrupts the thread that waits for it."""

    async def trickle(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(b" ")
                await asyncio.sleep(0.02)
        return answer

    monkeypatch.setattr(oidc, "_SECONDS", 0.2)
    async with serving(trickle) as port:
        write(file, {"server": "http://x"}, oidc_user(f"http://127.0.0.1:{port}"))
        with pytest.raises(ConfigurationError, match="the answer does not end"):
            await asyncio.wait_for(kubeconfig.load(str(file)), 20)
