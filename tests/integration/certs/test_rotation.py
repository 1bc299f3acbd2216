"""Rotation under load: years pass in seconds, every call is a new handshake, and none fails."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from cryptography import x509

from pumice.api.kinds import SECRET
from pumice.certs.authority import same
from pumice.certs.injection import Injector
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import DAY
from pumice.cluster.client import Client
from tests.integration.certs.webhooks import (
    SETTINGS,
    Replica,
    bundles,
    create_configurations,
    replica,
)
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until


class Load:
    """Calls all replicas without pause, each time again."""

    def __init__(self, client: Client, clock: ManualClock, replicas: Sequence[Replica]) -> None:
        self.calls = 0
        self._client, self._clock, self._replicas = client, clock, replicas

    async def run(self) -> None:
        while True:
            for each in self._replicas:
                await each.call(self._client, self._clock)
                self.calls += 1


async def test_ten_rotations_under_load_fail_no_call(client: Client, clock: ManualClock) -> None:
    # The CA of 100 days signs for 67 of them, a leaf of 30 days is served for 20.
    brisk = replace(SETTINGS, ca_duration=100 * DAY)
    await create_configurations(client)
    keepers = [CertificateManager(client, brisk, clock=clock) for _ in range(2)]
    async with replica(client, clock, keepers[0]) as a, replica(client, clock, keepers[1]) as b:
        await a.keeper.look()
        await b.keeper.look()
        signers: set[x509.Name] = set()
        load = Load(client, clock, (a, b))
        calling = asyncio.create_task(load.run())
        while len(signers) <= 10:
            # The replicas look one after the other, with calls of both between them.
            for each in (a, b):
                clock.now += 4.5 * DAY
                await each.keeper.look()
                assert each.keeper.bundle is not None
                signers.add(each.keeper.bundle.current.certificate.subject)
                wanted = load.calls + 2
                await until(lambda wanted=wanted: load.calls >= wanted or calling.done())  # type: ignore[misc]
            if calling.done():
                break
        assert not calling.done(), calling.exception()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        assert load.calls > 100
        assert a.keeper.serving.swaps > 20


async def test_a_ca_is_trusted_everywhere_long_before_it_signs(
    client: Client, clock: ManualClock
) -> None:
    await create_configurations(client)
    async with replica(client, clock) as a:
        await a.keeper.look()
        coming = a.keeper.bundle.next if a.keeper.bundle else None
        assert coming is not None
        assert all(coming.certificate_pem in bundle for bundle in await bundles(client))
        clock.now += 244 * DAY
        await a.keeper.look()
        assert a.keeper.bundle is not None
        assert same(a.keeper.bundle.current.certificate, coming.certificate)


class HeldInjector(Injector):
    """An injector whose writing the API server does not let through for a while."""

    held = False

    async def inject(self, trust: bytes | None) -> None:
        await super().inject(None if self.held else trust)


@pytest.fixture
def injector(client: Client, clock: ManualClock) -> HeldInjector:
    return HeldInjector(client, SETTINGS.mutating, SETTINGS.validating, clock=clock)


async def test_a_leaf_of_a_ca_that_is_not_trusted_yet_is_not_served(
    client: Client, clock: ManualClock, injector: HeldInjector
) -> None:
    """Both authorities are lost and made again; what is served stays until the new ones are trusted."""
    await create_configurations(client)
    keeper = CertificateManager(client, SETTINGS, clock=clock, injector=injector)
    async with replica(client, clock, keeper) as a:
        await keeper.look()
        before = keeper.serving.chain
        injector.held = True
        await client.delete(SECRET, SETTINGS.secret, "default")
        keeper.bundle = None  # as if this process could not remember them either
        for _ in range(5):
            await keeper.look()
            await clock.advance(SETTINGS.poll_seconds)
            assert keeper.serving.chain == before
            await a.call(client, clock)
        injector.held = False
        await keeper.look()
        assert keeper.serving.chain == before, "API servers need a moment to learn of the bundle"
        await a.call(client, clock)
        await clock.advance(SETTINGS.poll_seconds)
        await keeper.look()
        assert keeper.serving.chain != before
        await a.call(client, clock)


async def test_a_leaf_that_would_expire_is_replaced_even_so(
    client: Client, clock: ManualClock, injector: HeldInjector
) -> None:
    await create_configurations(client)
    keeper = CertificateManager(client, SETTINGS, clock=clock, injector=injector)
    await keeper.look()
    injector.held = True
    await client.delete(SECRET, SETTINGS.secret, "default")
    keeper.bundle = None
    clock.now += 31 * DAY
    before = keeper.serving.chain
    await keeper.look()
    assert keeper.serving.chain != before, "an expired certificate is no better than a new one"
    assert not keeper.ready
    injector.held = False
    await keeper.look()
    assert keeper.ready


async def test_a_paused_machine_catches_up_at_the_next_look(
    client: Client, clock: ManualClock
) -> None:
    await create_configurations(client)
    async with replica(client, clock) as a:
        await a.keeper.look()
        for pause in (25, 200, 300, 900):
            clock.now += pause * DAY
            for _ in range(2):
                await a.keeper.look()
                await clock.advance(SETTINGS.poll_seconds)
            assert a.keeper.problem is None
            await a.call(client, clock)
