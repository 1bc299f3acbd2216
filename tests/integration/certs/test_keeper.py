"""Certificates that look after themselves: first start, loss, damage, reset."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pumice.api.kinds import MUTATING_WEBHOOKS, SECRET, VALIDATING_WEBHOOKS
from pumice.certs.injection import Injector
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import DAY
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.integration.certs.faults import FAULTS
from tests.integration.certs.webhooks import (
    CONFIGURATIONS,
    SETTINGS,
    Replica,
    bundles,
    configuration,
    create_configurations,
    replica,
    reset_bundles,
    secret_data,
)
from tests.kit.clocks import FastClock, ManualClock
from tests.kit.waiting import until


@pytest.fixture
async def pair(client: Client, clock: ManualClock) -> AsyncIterator[tuple[Replica, Replica]]:
    """Two replicas that have started, with configurations that trust them."""
    await create_configurations(client)
    async with replica(client, clock) as a, replica(client, clock) as b:
        await a.keeper.look()
        await b.keeper.look()
        yield a, b


@asynccontextmanager
async def running(*keepers: CertificateManager) -> AsyncIterator[None]:
    """Let keepers and their injectors run by themselves."""
    tasks = [asyncio.create_task(part.run()) for each in keepers for part in (each, each.injector)]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_first_start_makes_everything(client: Client, clock: ManualClock) -> None:
    await create_configurations(client)
    async with replica(client, clock) as a:
        assert not a.keeper.ready
        assert not a.keeper.started.is_set()
        await a.keeper.look()
        assert a.keeper.started.is_set()
        assert a.keeper.problem is None
        await a.call(client, clock)
    assert a.keeper.bundle is not None
    assert await bundles(client) == [a.keeper.bundle.trust] * 4


async def test_two_replicas_that_start_at_once_agree(client: Client, clock: ManualClock) -> None:
    await create_configurations(client)
    async with replica(client, clock) as a, replica(client, clock) as b:
        await asyncio.gather(a.keeper.look(), b.keeper.look())
        assert a.keeper.bundle is not None
        assert b.keeper.bundle is not None
        assert a.keeper.bundle.trust == b.keeper.bundle.trust
        await a.call(client, clock)
        await b.call(client, clock)
        assert a.keeper.serving.chain != b.keeper.serving.chain, "each has a leaf of its own"


async def test_two_replicas_that_start_at_once_on_an_empty_secret_agree(
    client: Client, clock: ManualClock
) -> None:
    """A chart may create the Secret empty, so that nobody needs the right to create Secrets."""
    meta = {"name": SETTINGS.secret, "namespace": "default", "labels": {"app": "pumice"}}
    await client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    await test_two_replicas_that_start_at_once_agree(client, clock)
    found = await client.get(SECRET, SETTINGS.secret, "default")
    assert found["metadata"]["labels"] == {"app": "pumice"}


async def test_a_second_look_changes_nothing(client: Client, pair: tuple[Replica, Replica]) -> None:
    secret = await client.get(SECRET, SETTINGS.secret, "default")
    found = [await client.get(kind, "pumice") for kind in CONFIGURATIONS]
    chains = [each.keeper.serving.chain for each in pair]
    for each in pair:
        await each.keeper.look()
    assert await client.get(SECRET, SETTINGS.secret, "default") == secret
    assert [await client.get(kind, "pumice") for kind in CONFIGURATIONS] == found
    assert [each.keeper.serving.chain for each in pair] == chains


async def test_a_restarted_replica_takes_what_is_there(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    before = await secret_data(client)
    async with replica(client, clock) as again:
        await again.keeper.look()
        await again.call(client, clock)
    assert await secret_data(client) == before


async def test_a_deleted_secret_is_put_back_as_it_was(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    before = await secret_data(client)
    await client.delete(SECRET, SETTINGS.secret, "default")
    await asyncio.gather(*(each.keeper.look() for each in pair))
    assert await secret_data(client) == before
    for each in pair:
        await each.call(client, clock)


async def test_a_new_replica_on_a_deleted_secret_does_not_cut_off_the_old_ones(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    await client.delete(SECRET, SETTINGS.secret, "default")
    async with replica(client, clock) as new:
        await new.keeper.look()  # before the others notice
        for each in (*pair, new):
            await each.call(client, clock)
        for _ in range(2):
            for each in pair:
                await each.keeper.look()
                await each.call(client, clock)
            await clock.advance(SETTINGS.poll_seconds)
        await new.call(client, clock)
        leaf_issuers = {each.keeper.bundle.trust for each in (*pair, new) if each.keeper.bundle}
        assert len(leaf_issuers) == 1


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_corrupted_secret_is_repaired_without_a_failed_call(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica], fault: str
) -> None:
    found = await client.get(SECRET, SETTINGS.secret, "default")
    await client.update(SECRET, {**found, "data": FAULTS[fault](found["data"])})
    for _ in range(3):
        for each in pair:
            await each.keeper.look()
            for other in pair:
                await other.call(client, clock)
        await clock.advance(SETTINGS.poll_seconds)
    assert all(each.keeper.ready for each in pair)
    async with replica(client, clock) as restarted:
        await restarted.keeper.look()
        for each in (*pair, restarted):
            await each.call(client, clock)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_new_process_can_start_on_a_corrupted_secret(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica], fault: str
) -> None:
    found = await client.get(SECRET, SETTINGS.secret, "default")
    await client.update(SECRET, {**found, "data": FAULTS[fault](found["data"])})
    async with replica(client, clock) as new:
        await new.keeper.look()
        for each in (*pair, new):
            await each.call(client, clock)
        assert new.keeper.ready


async def back(client: Client, trust: bytes) -> None:
    """Wait until each configuration trusts this again."""

    async def trusted() -> bool:
        return await bundles(client) == [trust] * 4

    await until(trusted, "each configuration trusts this again")


async def turns() -> None:
    """Let pass half a second, in which everybody has a turn, also where the machine stands still in it."""
    for _ in range(50):
        await asyncio.sleep(0.01)


async def test_a_reset_bundle_is_injected_again_at_once(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    trust = (await bundles(client))[0]
    async with running(*(each.keeper for each in pair)):
        await until(lambda: clock.sleeping >= 2)
        for _ in range(3):
            await reset_bundles(client)
            await back(client, trust)
        # No clock was moved: it was the watch that told, not the poll.
        for each in pair:
            await each.call(client, clock)
        await until(lambda: all(each.keeper.ready for each in pair))


async def test_two_injectors_come_to_rest(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    async with running(*(each.keeper for each in pair)):
        await until(lambda: clock.sleeping >= 2)
        trust = (await bundles(client))[0]
        await reset_bundles(client)
        await back(client, trust)
        await turns()
        before = [await client.get(kind, "pumice") for kind in CONFIGURATIONS]
        await turns()
        assert [await client.get(kind, "pumice") for kind in CONFIGURATIONS] == before


async def test_readiness_follows_what_is_injected(
    client: Client, pair: tuple[Replica, Replica]
) -> None:
    keeper = pair[0].keeper
    assert keeper.ready
    await reset_bundles(client)
    await keeper.injector.inject(None)
    assert keeper.problem == "the bundle holds no CA that is valid now"
    await keeper.look()
    assert keeper.ready


async def test_readiness_ends_with_the_certificate(
    clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    clock.now += 31 * 86_400
    assert "not valid at validation time" in str(pair[0].keeper.problem)


async def test_a_configuration_that_appears_later_is_injected_into(
    client: Client, clock: ManualClock
) -> None:
    async with replica(client, clock) as a:
        await a.keeper.look()
        assert a.keeper.problem == "no webhook configuration exists yet"
        async with running(a.keeper):
            await until(lambda: clock.sleeping >= 1)
            for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
                await client.create(kind, configuration(kind, "jobs"))
            await until(lambda: a.keeper.ready)
            await a.call(client, clock)


async def test_an_entry_added_later_is_injected_into(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    found = await client.get(VALIDATING_WEBHOOKS, "pumice")
    found["webhooks"] += configuration(VALIDATING_WEBHOOKS, "pods")["webhooks"]
    await client.update(VALIDATING_WEBHOOKS, found)
    await pair[0].keeper.look()
    assert len(set(await bundles(client))) == 1


async def test_without_the_api_server_the_certificate_goes_on_being_served(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    keeper = pair[0].keeper
    trust = (await bundles(client))[0]
    async with Client.connect(server="http://127.0.0.1:1", clock=clock) as nowhere:
        keeper._client = nowhere
        await look_in_vain(keeper, clock)
    assert keeper.ready
    assert await bundles(client) == [trust] * 4
    await pair[0].call(client, clock)


@asynccontextmanager
async def without_the_secret(keeper: CertificateManager, clock: ManualClock) -> AsyncIterator[None]:
    """A keeper that cannot read or write its Secret, but can inject."""
    kept = keeper._client
    async with Client.connect(server="http://127.0.0.1:1", clock=clock) as nowhere:
        keeper._client = nowhere
        yield
    keeper._client = kept


async def look_in_vain(keeper: CertificateManager, clock: ManualClock) -> None:
    looking = asyncio.create_task(keeper.look())
    async with asyncio.timeout(60):
        while not looking.done():
            await clock.advance(5)
    with pytest.raises(ApiError):
        await looking


async def test_leaves_are_renewed_while_the_secret_cannot_be_read(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    keeper = pair[0].keeper
    async with without_the_secret(keeper, clock):
        for _ in range(3):
            before = keeper.serving.chain
            clock.now += 21 * DAY
            await look_in_vain(keeper, clock)
            assert keeper.serving.chain != before
            await pair[0].call(client, clock)


async def test_readiness_is_right_while_the_secret_cannot_be_read(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    keeper = pair[0].keeper
    async with without_the_secret(keeper, clock):
        watching = asyncio.create_task(keeper.injector.run())
        try:
            await until(lambda: keeper.injector.synced)
            assert keeper.ready
            await reset_bundles(client)
            await until(lambda: not keeper.ready)
            for kind in CONFIGURATIONS:
                await client.delete(kind, "pumice")
            await until(lambda: keeper.problem == "no webhook configuration exists yet")
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def test_readiness_is_about_the_host_that_the_api_server_calls(
    client: Client, pair: tuple[Replica, Replica]
) -> None:
    keeper = pair[0].keeper
    found = await client.get(VALIDATING_WEBHOOKS, "pumice")
    found["webhooks"][0]["clientConfig"]["service"]["name"] = "other"
    await client.update(VALIDATING_WEBHOOKS, found)
    await keeper.look()
    assert "no matching subjectAltName" in str(keeper.problem)


async def test_the_first_handshake_after_a_long_pause_sees_a_new_leaf(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    """Before any look: 400 days, in which the CA that signed went, leave the next one to sign."""
    keeper = pair[0].keeper
    for pause in (31, 400):
        clock.now += pause * DAY
        before = keeper.ready
        keeper.injector.changed.clear()
        await pair[0].call(client, clock)
        assert (before, keeper.ready) == (False, True)
        assert keeper.injector.changed.is_set(), "whatever else is due is looked at now"


async def test_after_a_pause_that_outlived_all_authorities_a_look_makes_new_ones(
    client: Client, clock: ManualClock, pair: tuple[Replica, Replica]
) -> None:
    clock.now += 4000 * DAY
    with pytest.raises(AssertionError):
        await pair[0].call(client, clock)
    for each in pair:
        await each.keeper.look()
    await asyncio.gather(*(each.call(client, clock) for each in pair))


async def test_a_watch_that_fails_is_said_by_the_name_of_its_configuration(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Client.connect(server="http://127.0.0.1:1", clock=FastClock()) as nowhere:
        injector = Injector(nowhere, ("jobs", "pods"), ("jobs",), clock=FastClock())
        following = asyncio.create_task(injector.run())
        await until(lambda: len(caplog.messages) >= 3)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    group = "admissionregistration.k8s.io"
    said = {each.partition(":")[0] for each in caplog.messages}
    assert said == {
        f"watching mutatingwebhookconfigurations.{group} jobs",
        f"watching mutatingwebhookconfigurations.{group} pods",
        f"watching validatingwebhookconfigurations.{group} jobs",
    }
