"""What kubeconfig files say, and what is said of those that are wrong."""

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pumice.cluster import kubeconfig
from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError
from pumice.cluster.errors import Unavailable
from pumice.cluster.failures import NOT_TRUSTED
from tests.kit.clocks import FastClock
from tests.unit.cluster.kubeconfigs import CA, client_pair, encoded, headers, tls_server, write

MAIN = "current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}]"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, {"Authorization": "Bearer abc"}),
        ({"tokenFile": "token.txt"}, {"Authorization": "Bearer from-file"}),
        ({"token": "abc", "tokenFile": "token.txt"}, {"Authorization": "Bearer from-file"}),
        ({"username": "me", "password": "pw"}, {"Authorization": "Basic bWU6cHc="}),
        (
            {"token": "abc", "as": "jane"},
            {"Authorization": "Bearer abc", "Impersonate-User": "jane"},
        ),
        ({"token": "abc", "exec": None}, {"Authorization": "Bearer abc"}),
        ({}, {}),
    ],
)
async def test_users_sign_in_as_the_file_says(
    file: Path, user: dict[str, Any], expected: dict[str, str]
) -> None:
    (file.parent / "token.txt").write_text("from-file\n")
    assert await headers(write(file, {"server": "http://x"}, user)) == expected


async def test_whom_the_user_acts_for_is_in_headers(file: Path) -> None:
    extra = {"example.org/Scopes %": ["a", "b"], "none": []}
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    write(file, {"server": "http://x"}, user)
    found = await kubeconfig.load(str(file))
    assert list((await found.credentials.headers()).items()) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.org%2FScopes%20%25", "a"),
        ("Impersonate-Extra-example.org%2FScopes%20%25", "b"),
    ]


async def test_fields_that_have_no_effect_are_reported_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, {"server": "http://x", "extensions": []}, {"tokenfile": "t", "as-group": ["dev"]})
    for _ in range(2):
        await kubeconfig.load(str(file))
    unknown = "unknown and without effect: user.as-group, user.tokenfile"
    assert caplog.messages == [f"kubeconfig {file}: {unknown}"]


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
            if inline:  # as `base64` writes it
                entry[f"{name}-data"] = base64.encodebytes(value).decode()
            else:
                (file.parent / f"{name}.pem").write_bytes(value)
                entry[name] = f"{name}.pem"
    async with tls_server(client_certificates=True) as url:
        write(file, {**cluster, "server": url}, user)
        async with Client.connect(file) as client:
            assert await client.version() == {"presented": True}


async def test_certificates_may_have_comments_in_any_encoding(file: Path) -> None:
    authority = "# Société\n".encode("latin-1") + CA.certificate_pem
    write(file, {"server": "https://x", "certificate-authority-data": encoded(authority)})
    found = await kubeconfig.load(str(file))
    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1


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
        ("# nothing yet", "current-context is not set"),
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
        ({"certificate-authority": "/dev/null"}, {}, "certificate authority is empty"),
        ({"certificate-authority-data": "%%%"}, {}, "base64"),
        ({"certificate-authority-data": encoded(b"rubbish")}, {}, "config"),
        ({"server": 5}, {}, "cluster.server: expected a string, found the integer 5"),
        ({"proxy-url": 5}, {"exec": None}, "cluster.proxy-url: expected a string, found the"),
        (
            {"insecure-skip-tls-verify": "false"},
            {},
            'cluster.insecure-skip-tls-verify: expected a boolean, found the string "false"',
        ),
        (
            {"proxy-url": "socks5://x:1"},
            {},
            'cluster.proxy-url: expected http://HOST:PORT or https://HOST:PORT, found "socks5://x:1"',
        ),
        (
            {
                "insecure-skip-tls-verify": True,
                "certificate-authority-data": encoded(CA.certificate_pem),
            },
            {},
            "cluster.insecure-skip-tls-verify: expected no certificate-authority beside it",
        ),
        (
            {"certificate-authority": "a", "certificate-authority-data": "YQ=="},
            {},
            "expected certificate-authority or certificate-authority-data, found both",
        ),
        ({}, {"as-groups": "dev"}, 'user.as-groups: expected a list, found the string "dev"'),
        (
            {},
            {"as-groups": ["a", 5]},
            r"user.as-groups\[1\]: expected a string, found the integer 5",
        ),
        ({}, {"as": ["a"]}, "user.as: expected a string, found a list"),
        ({}, {"as-uid": 5}, "user.as-uid: expected a string, found the integer 5"),
        ({}, {"as-user-extra": ["a"]}, "user.as-user-extra: expected an object, found a list"),
        (
            {},
            {"as": "a", "as-user-extra": {"b": "c"}},
            'user.as-user-extra.b: expected a list, found the string "c"',
        ),
        ({}, {"as-uid": "5"}, "user.as: expected the user to act for"),
        ({}, {"token": 123}, "user.token: expected a string, found an integer$"),
        ({}, {"as": "a\nb: c"}, "Impersonate-User: expected one line of text"),
        ({}, {"client-key-data": encoded(b"x")}, "go together, one is missing"),
        ({}, {"tokenFile": "gone.txt"}, "gone.txt"),
        ({"certificate-authority": "/dev/zero"}, {}, "^/dev/zero: has more than 16,777,216 bytes"),
        ({}, {"client-key": "/dev/zero"}, "^/dev/zero: has more than"),
        ({}, {"tokenFile": "/dev/zero"}, "^/dev/zero: has more than"),
    ],
)
async def test_what_a_file_refers_to_must_be_there(
    file: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    """Whether the user has a plugin or not, and beside another kubeconfig, too."""
    other = file.parent / "other"
    write(file, {"server": "https://x", **cluster}, user)
    write(other, {"server": "http://y"}, contexts=[])
    for paths in (f"{file}", f"{file}{os.pathsep}{other}"):
        with pytest.raises(ConfigurationError, match=message):
            await kubeconfig.load(paths)
    write(file, {"server": "https://x", **cluster}, {"exec": {}, **user})
    with pytest.raises(ConfigurationError, match=message):
        await kubeconfig.load(str(file))


async def test_a_file_without_end_is_not_read_to_the_end(file: Path) -> None:
    for paths in ("/dev/zero", f"{write(file, {'server': 'http://x'})}{os.pathsep}/dev/zero"):
        with pytest.raises(ConfigurationError, match=r"^/dev/zero: has more than 16,777,216 bytes"):
            await kubeconfig.load(paths)


async def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        await kubeconfig.load(str(file))


# Several files


async def test_of_what_several_files_have_the_first_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "folder" / "two"
    second.parent.mkdir()
    (second.parent / "token").write_text("abc")
    write(first, {"server": "http://one"}, users=[])
    write(second, {"server": "http://two"}, {"tokenFile": "token"}, **{"current-context": "no"})
    found = await kubeconfig.load(os.pathsep.join([str(first), str(second)]))
    assert found.server == "http://one"
    assert dict(await found.credentials.headers()) == {"Authorization": "Bearer abc"}


async def test_of_several_files_those_are_read_that_are_there(tmp_path: Path) -> None:
    first, second, empty = tmp_path / "one", tmp_path / "two", tmp_path / "empty"
    paths = os.pathsep.join([str(first), str(second), str(empty)])
    with pytest.raises(ConfigurationError, match=r"two:.*empty: No such file"):
        await kubeconfig.load(paths)
    empty.write_text(json.dumps({"clusters": []}))
    with pytest.raises(ConfigurationError, match="empty: current-context is not set"):
        await kubeconfig.load(paths)
    write(second, {"server": "http://two"})
    assert (await kubeconfig.load(paths)).server == "http://two"
    with pytest.raises(ConfigurationError, match="no entry named 'x'; there are here"):
        await kubeconfig.load(paths, context="x")


@pytest.mark.parametrize("other", ["/dev/null", f"/{'x' * 300}", "~no-such-user/config"])
async def test_of_several_files_one_may_be_empty_or_impossible(file: Path, other: str) -> None:
    write(file, {"server": "http://x"})
    for paths in ([str(file), other], [other, str(file)]):
        assert (await kubeconfig.load(os.pathsep.join(paths))).server == "http://x"


@pytest.mark.parametrize("user", [{"token": "abc"}, {"exec": {}}])
async def test_a_context_may_be_chosen_by_name(file: Path, user: dict[str, Any]) -> None:
    """Also where credentials are asked for, for which the file is read again."""
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
