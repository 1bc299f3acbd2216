"""What fails at one webhook configuration, or at the Secret: the others go on, it is reported, tried again, and heals."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from pumice.api.kinds import EVENT, MUTATING_WEBHOOKS, SECRET, Kind
from pumice.certs import injection, keeper
from pumice.certs.injection import Injector, entries_of
from pumice.certs.keeper import CertificateManager
from pumice.cluster import reading
from pumice.cluster.client import Client, Object
from pumice.cluster.events import EventRecorder
from pumice.cluster.set_aside import ObjectFaults
from tests.integration.certs.webhooks import SETTINGS, configuration
from tests.kit.breakage import pauses_grow
from tests.kit.quick_loop import monotonic, quick_clock
from tests.kit.waiting import until

__all__ = ["quick_clock"]

BOTH = replace(SETTINGS, mutating=("bad", "good"), validating=())


class Breakage:
    """A function that raises where its arguments name `bad`, and notes when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.broken = True
        self.tries: list[float] = []
        works = getattr(owner, name)

        def checked(*given: Any, **named: Any) -> Any:
            if self.broken and self.is_bad(*given):
                self.tries.append(monotonic())
                raise ZeroDivisionError("oh")
            return works(*given, **named)

        monkeypatch.setattr(owner, name, checked)

    def is_bad(self, *given: Any) -> bool:
        return "'bad'" in str(given)


class DecoderBreakage(Breakage):
    def is_bad(self, *given: Any) -> bool:
        decoder, raw = given
        return '"bad"' in bytes(raw).decode() and decoder.type == dict[str, Any]


class SecretBreakage(Breakage):
    def is_bad(self, *given: Any) -> bool:
        return True


async def create(client: Client, name: str) -> None:
    made = configuration(MUTATING_WEBHOOKS, "jobs")
    await client.create(MUTATING_WEBHOOKS, made | {"metadata": {"name": name}})


async def is_trusted(client: Client, name: str, kept: CertificateManager) -> bool:
    found: Object = await client.get(MUTATING_WEBHOOKS, name)
    return kept.bundle is not None and [each.trust for each in entries_of(found)] == [
        kept.bundle.trust
    ]


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[tuple[CertificateManager, CollectorRegistry]]:
    """Certificates as `pumice certs` keeps them."""
    registry, recorder = CollectorRegistry(), EventRecorder(client, "pumice-certs", instance="i")
    kept = CertificateManager(client, BOTH)
    kept.injector.faults = ObjectFaults(registry, recorder)
    parts = (kept.injector.run(), kept.run(), recorder.run())
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield kept, registry
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def events(client: Client, kind: Kind) -> list[Object]:
    found = (await client.list(EVENT))["items"]
    return [
        each
        for each in found
        if each["reason"] == "InternalError" and each["involvedObject"]["kind"] == kind.kind
    ]


async def check_report(
    client: Client,
    registry: CollectorRegistry,
    breakage: Breakage,
    kind: Kind,
    name: str,
    place: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await until(lambda: len(breakage.tries) >= 5)
    sample = registry.get_sample_value
    assert (sample("pumice_object_errors_total", {"kind": kind.kind, "place": place}) or 0) >= 4
    assert sample("pumice_objects_set_aside", {"kind": kind.kind}) == 1
    lines = [
        each.message
        for each in caplog.records
        if each.levelno >= logging.ERROR and f"({place})" in each.message
    ]
    assert len(lines) == 1
    assert lines[0].startswith(f"{kind.kind} {name} is set aside")
    await until(lambda: events(client, kind))
    assert {each["involvedObject"]["name"] for each in await events(client, kind)} == {
        name.partition("/")[2] or name
    }


AT_A_CONFIGURATION: dict[str, tuple[Callable[[pytest.MonkeyPatch], Breakage], str]] = {
    "decoder": (lambda patch: DecoderBreakage(patch, reading, "decode"), "decoder"),
    "subscriber": (lambda patch: Breakage(patch, Injector, "_see"), "subscriber"),
    "entries": (lambda patch: Breakage(patch, injection, "entries_of"), "trust bundle"),
    "patch": (lambda patch: Breakage(patch, injection, "patch_for"), "trust bundle"),
}


@pytest.mark.parametrize("at", AT_A_CONFIGURATION)
async def test_a_configuration(
    client: Client, at: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    break_it, place = AT_A_CONFIGURATION[at]
    breakage = break_it(monkeypatch)
    for name in ("bad", "good"):
        await create(client, name)
    async with running(client) as (kept, registry):
        await until(kept.started.is_set, "a certificate to serve")
        await until(lambda: is_trusted(client, "good", kept))
        await check_report(client, registry, breakage, MUTATING_WEBHOOKS, "bad", place, caplog)
        if at != "entries":  # which the watch and the injection try, each with its pauses
            await until(lambda: pauses_grow(breakage.tries, 0.9))
        found = await client.get(MUTATING_WEBHOOKS, "good")
        found["webhooks"][0]["clientConfig"].pop("caBundle")
        await client.update(MUTATING_WEBHOOKS, found)
        await until(lambda: is_trusted(client, "good", kept), "what was reset to be put back")
        breakage.broken = False
        await until(lambda: is_trusted(client, "bad", kept))
        standing = {"kind": MUTATING_WEBHOOKS.kind}
        await until(lambda: registry.get_sample_value("pumice_objects_set_aside", standing) == 0)
        await until(lambda: kept.ready)


@pytest.mark.parametrize("name", ["read", "up_to_date", "new_leaf", "leaf_is_due"])
async def test_a_pass(
    client: Client, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breakage = SecretBreakage(monkeypatch, keeper, name)
    for each in ("bad", "good"):
        await create(client, each)
    async with running(client) as (kept, registry):
        secret = f"default/{BOTH.secret}"
        await check_report(client, registry, breakage, SECRET, secret, "certificates", caplog)
        await until(lambda: pauses_grow(breakage.tries, 0.9))
        breakage.broken = False
        await until(kept.started.is_set, "a certificate to serve")
        await until(lambda: kept.ready)
        standing = {"kind": SECRET.kind}
        await until(lambda: registry.get_sample_value("pumice_objects_set_aside", standing) == 0)
