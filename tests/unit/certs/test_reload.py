"""A live TLS server changes its certificate without dropping anybody."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from pumice.certs.authority import Authority, Leaf, generate_key
from pumice.certs.reload import FileReloader, ServingCertificate
from tests.kit import http
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until
from tests.unit.certs.keys import authority

DAY = 86_400.0


def leaf_of(ca: Authority) -> Leaf:
    now = time.time()
    return ca.issue(generate_key(), ["webhook.system.svc"], [], now - 60, now + DAY)


def live_authority() -> Authority:
    return authority(time.time() - 60, time.time() + DAY)


@asynccontextmanager
async def served(serving: ServingCertificate) -> AsyncIterator[str]:
    async def hello(_: web.BaseRequest) -> web.Response:
        return web.Response(text="hello")

    async with http.serving(hello, serving.context) as port:
        yield f"https://127.0.0.1:{port}/"


def trusting(*cas: Authority) -> ssl.SSLContext:
    bundle = b"".join(ca.certificate_pem for ca in cas).decode()
    context = ssl.create_default_context(cadata=bundle)
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # as newer Pythons have it
    return context


async def ask(url: str, context: ssl.SSLContext) -> str:
    async with aiohttp.ClientSession() as session:
        options = {"ssl": context, "server_hostname": "webhook.system.svc"}
        async with session.get(url, **options) as answer:  # type: ignore[arg-type]
            return await answer.text()


def put(folder: Path, leaf: Leaf) -> tuple[Path, Path]:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    return certificate, key


async def test_new_connections_see_the_new_certificate_and_old_ones_live_on() -> None:
    old, new = live_authority(), live_authority()
    serving = ServingCertificate()
    first = leaf_of(old)
    assert serving.use(first.certificate_pem, first.key_pem)
    async with served(serving) as url, aiohttp.ClientSession() as kept:
        options = {"ssl": trusting(old), "server_hostname": "webhook.system.svc"}
        async with kept.get(url, **options) as answer:  # type: ignore[arg-type]
            assert await answer.text() == "hello"
        second = leaf_of(new)
        assert serving.use(second.certificate_pem, second.key_pem)
        assert await ask(url, trusting(new)) == "hello"
        async with kept.get(url, **options) as answer:  # type: ignore[arg-type]
            assert await answer.text() == "hello"  # the same connection, still open
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask(url, trusting(old))


async def test_an_equal_pair_is_not_swapped() -> None:
    leaf = leaf_of(live_authority())
    serving = ServingCertificate()
    assert serving.use(leaf.certificate_pem, leaf.key_pem)
    assert not serving.use(leaf.certificate_pem, leaf.key_pem)
    assert serving.swaps == 1


@pytest.mark.parametrize("spoil", ["certificate", "key", "mismatch", "empty"])
async def test_a_bad_pair_leaves_the_last_good_one(spoil: str) -> None:
    ca = live_authority()
    good, other = leaf_of(ca), leaf_of(ca)
    serving = ServingCertificate()
    serving.use(good.certificate_pem, good.key_pem)
    bad = {
        "certificate": (b"rubbish", other.key_pem),
        "key": (other.certificate_pem, other.key_pem[:40]),
        "mismatch": (other.certificate_pem, good.key_pem),
        "empty": (b"", b""),
    }[spoil]
    async with served(serving) as url:
        with pytest.raises(ValueError, match="cannot be served"):
            serving.use(*bad)
        assert serving.chain == good.certificate_pem
        assert await ask(url, trusting(ca)) == "hello"


async def test_expiry_is_known_for_metrics() -> None:
    serving = ServingCertificate()
    assert serving.expires == 0.0
    leaf = leaf_of(live_authority())
    serving.use(leaf.certificate_pem, leaf.key_pem)
    assert serving.expires == leaf.certificate.not_valid_after_utc.timestamp()


async def test_files_are_followed(tmp_path: Path) -> None:
    ca = live_authority()
    clock = ManualClock()
    serving = ServingCertificate()
    certificate, key = put(tmp_path, leaf_of(ca))
    reloader = FileReloader(serving, certificate, key, clock=clock)
    following = asyncio.create_task(reloader.run())
    try:
        async with served(serving) as url:
            renewed = leaf_of(ca)
            put(tmp_path, renewed)
            await until(lambda: clock.sleeping == 1)
            await clock.advance(10)
            await until(lambda: serving.swaps == 2)
            assert serving.chain == renewed.certificate_pem
            assert await ask(url, trusting(ca)) == "hello"
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def test_files_swapped_as_kubelet_does_are_followed(tmp_path: Path) -> None:
    """Kubelet writes a new folder and moves one symbolic link; the files' own paths are links."""
    ca = live_authority()
    for name, leaf in (("one", leaf_of(ca)), ("two", leaf_of(ca))):
        (tmp_path / name).mkdir()
        put(tmp_path / name, leaf)
    data = tmp_path / "..data"
    data.symlink_to("one")
    serving = ServingCertificate()
    reloader = FileReloader(serving, data / "tls.crt", data / "tls.key")
    fresh = tmp_path / "..fresh"
    fresh.symlink_to("two")
    fresh.rename(data)
    assert reloader.look()
    assert serving.chain == (tmp_path / "two" / "tls.crt").read_bytes()


def test_a_certificate_and_a_key_that_changed_places_are_refused(tmp_path: Path) -> None:
    certificate, key = put(tmp_path, leaf_of(live_authority()))
    with pytest.raises(ValueError, match="there is no '-----BEGIN CERTIFICATE-----' in the cert"):
        FileReloader(ServingCertificate(), key, certificate)
    both = tmp_path / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    serving = ServingCertificate()
    FileReloader(serving, both, both)
    assert serving.expires > 0


def test_half_written_and_missing_files_keep_the_last_good_pair(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = live_authority()
    serving = ServingCertificate()
    good = leaf_of(ca)
    certificate, key = put(tmp_path, good)
    reloader = FileReloader(serving, certificate, key)
    certificate.write_bytes(leaf_of(ca).certificate_pem)  # its key is not written yet
    assert not reloader.look()
    assert not reloader.look()
    assert "cannot be served" in caplog.text
    assert len(caplog.records) == 1, "one fault is said once"
    key.unlink()
    assert not reloader.look()
    assert f"cannot read {key}" in caplog.text
    assert (reloader.failures, reloader.reads) == (3, 4)
    assert serving.chain == good.certificate_pem
    put(tmp_path, leaf_of(ca))
    assert reloader.look()


def test_without_a_good_pair_to_begin_with_construction_fails(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        FileReloader(ServingCertificate(), tmp_path / "a", tmp_path / "b")
    with pytest.raises(ValueError, match=r"^/dev/zero: has more than 16,777,216 bytes"):
        FileReloader(ServingCertificate(), Path("/dev/zero"), tmp_path / "b")


async def test_an_unexpected_error_does_not_end_the_reloader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ca = live_authority()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write() -> bytes:
        leaf = leaf_of(ca)
        certificate.write_bytes(leaf.certificate_pem)
        key.write_bytes(leaf.key_pem)
        return leaf.certificate_pem

    before = write()
    serving = ServingCertificate()
    reloader = FileReloader(serving, certificate, key, poll_seconds=0.01)
    works = serving.use

    def use(*_: bytes) -> bool:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(serving, "use", use)
    following = asyncio.create_task(reloader.run())
    after = write()
    await until(lambda: reloader.failures >= 3)
    assert str(reloader.problem) == "ZeroDivisionError: oh"
    assert serving.chain == before
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    monkeypatch.setattr(serving, "use", works)
    await until(lambda: serving.chain == after)
    assert reloader.problem is None
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
