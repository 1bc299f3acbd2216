"""What people and tools do to the Secret and to `caBundle`, on the real kube-apiserver, under load.

All faults of the table run in `test_keeper.py`. Those that run here need different reactions of the replicas: they
restore the authorities that they remember, create new ones, or take over those that another tool wrote.

Two replicas run as processes; one is asked to mutate and the other to validate, so that each review
needs both of them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pumice.api.kinds import SECRET
from pumice.certs.bundle import KEYS
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import AlreadyExists, NotFound
from tests.integration.certs.faults import FAULTS, Data, encoded, live
from tests.integration.certs.site import SECRET_NAME, Site
from tests.kit.waiting import until, wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.webhook_canary import until_known

QUICK = {"poll_seconds": 0.5, "settle_seconds": 1.0}
NAMESPACE = "certs-faults"


@pytest.fixture(scope="module")
def site(
    controlplane: ControlPlane, crds: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    controlplane.add_namespace(NAMESPACE)
    found = Site(controlplane, NAMESPACE, tmp_path_factory.mktemp("replicas"))
    with found.running(2, **QUICK) as ports:
        found.apply(*ports)
        try:
            yield found
        finally:
            found.clear()
            controlplane.remove_namespace(NAMESPACE)


@pytest.fixture
def ports(site: Site) -> list[int]:
    return list(site.replicas)


@pytest.fixture
async def sound(site: Site, ports: list[int], api: Client) -> Data:
    """What the Secret holds while all is well."""
    await site.until_ready(*ports)
    await until(lambda: site.whole(api), "the Secret is sound and trusted")
    data = (await api.get(SECRET, SECRET_NAME, NAMESPACE))["data"]
    return {key: data[key] for key in KEYS}


async def spoil(api: Client, data: Data) -> None:
    found = await api.get(SECRET, SECRET_NAME, NAMESPACE)
    await api.update(SECRET, {**found, "data": data})


@pytest.mark.parametrize("fault", ["half-written", "expired", "of another cluster"])
async def test_a_secret_corrupted_while_replicas_run(
    site: Site, api: Client, sound: Data, fault: str
) -> None:
    async with site.load(api):
        await spoil(api, FAULTS[fault](sound))
        await asyncio.sleep(1.0)  # both have looked
        await until(lambda: site.whole(api), "the Secret is fixed")
        await asyncio.sleep(2.0)  # and whatever follows has been served
    assert site.ready(*site.replicas), site.tails()


@pytest.mark.parametrize("fault", ["empty", "of another cluster"])
async def test_a_replica_that_starts_on_a_corrupted_secret_beside_one_that_runs(
    site: Site, api: Client, sound: Data, fault: str, ports: list[int]
) -> None:
    old, new = ports
    site.replicas[new].end()
    await spoil(api, FAULTS[fault](sound))
    site.start(new, site.metrics[new], **QUICK)
    await site.until_ready(old, new)
    await until(lambda: site.whole(api), "the Secret is fixed")
    async with site.load(api):
        await asyncio.sleep(2.0)


async def test_a_secret_deleted_again_and_again(site: Site, api: Client, sound: Data) -> None:
    async with site.load(api):
        for _ in range(5):
            await api.delete(SECRET, SECRET_NAME, NAMESPACE)
            await until(lambda: site.whole(api), "the Secret is put back")
            await asyncio.sleep(0.3)
    found = (await api.get(SECRET, SECRET_NAME, NAMESPACE))["data"]
    assert {key: found[key] for key in KEYS} == sound


def foreign(kind: str, data: Data, **fields: object) -> Object:
    meta = {"name": SECRET_NAME, "namespace": NAMESPACE}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind}
    return {**manifest, "data": data, **fields}


async def replace(api: Client, manifest: Object) -> None:
    """Put another Secret in the place of the one that there is, before anybody puts that back."""
    while True:
        with suppress(NotFound):
            await api.delete(SECRET, SECRET_NAME, NAMESPACE)
        with suppress(AlreadyExists):
            await api.create(SECRET, manifest)
            return


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("kubernetes.io/tls", {"tls.crt": encoded(b"theirs"), "tls.key": encoded(b"theirs")}),
        ("kubernetes.io/basic-auth", {"username": encoded(b"somebody")}),
        ("example.com/anything", {"ca.crt": encoded(b"theirs")}),
    ],
)
async def test_a_secret_of_another_type_is_used_and_keeps_what_it_held(
    site: Site, api: Client, sound: Data, kind: str, data: Data
) -> None:
    async with site.load(api):
        await replace(api, foreign(kind, data))
        await until(lambda: site.whole(api), "the Secret is fixed")
    found = await api.get(SECRET, SECRET_NAME, NAMESPACE)
    assert found["type"] == kind
    assert {**found["data"], **sound} == found["data"]
    assert {key: found["data"][key] for key in data if key != "ca.crt"} == {
        key: text for key, text in data.items() if key != "ca.crt"
    }


async def test_a_secret_that_cannot_be_written_is_said_and_stops_nothing(
    site: Site, api: Client, sound: Data, ports: list[int]
) -> None:
    async with site.load(api):
        await replace(api, foreign("Opaque", {"ca.crt": encoded(b"rubbish")}, immutable=True))
        await asyncio.sleep(2.0)
        assert site.ready(*ports)
        assert "field is immutable" in site.tails()
        # Sound but immutable: a new process takes it as it is.
        await replace(api, foreign("Opaque", sound, immutable=True))
    site.replicas[ports[1]].end()
    site.start(ports[1], site.metrics[ports[1]], **QUICK)
    await site.until_ready(*ports)
    async with site.load(api):
        await replace(api, foreign("Opaque", {}))
        await until(lambda: site.whole(api), "the Secret is fixed")


@pytest.mark.parametrize(
    "how",
    [
        ("apply",),
        ("apply", "--server-side", "--force-conflicts", "--field-manager=gitops"),
    ],
    ids=["client-side", "server-side"],
)
async def test_applying_the_manifest_without_a_bundle_again_fails_no_review(
    site: Site, api: Client, sound: Data, ports: list[int], how: tuple[str, ...]
) -> None:
    async with site.load(api):
        for _ in range(2):
            await asyncio.to_thread(site.apply, *ports, how=how)
    assert await site.whole(api)


async def test_a_manifest_that_takes_the_place_of_the_old_one_is_injected_into(
    site: Site, api: Client, sound: Data, ports: list[int]
) -> None:
    before = await site.bundles(api)
    await asyncio.to_thread(site.apply, *ports, how=("replace",))
    await until(lambda: site.whole(api), "the bundle is back", 5)
    assert await site.bundles(api) == before
    await until_known(api)
    async with site.load(api):
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    "bundle",
    [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"],
    ids=["nothing", "garbage", "hollow"],
)
async def test_a_bundle_that_is_reset_comes_back(
    site: Site, api: Client, sound: Data, bundle: bytes
) -> None:
    before = await site.bundles(api)
    await site.set_bundle(api, bundle)
    await until(lambda: site.whole(api), "the bundle is back", 5)
    assert await site.bundles(api) == before
    await until_known(api)
    async with site.load(api):
        await asyncio.sleep(0.5)


async def test_a_bundle_of_another_owner_makes_a_replica_unready_until_it_is_ours_again(
    site: Site, api: Client, sound: Data, ports: list[int]
) -> None:
    """The right to patch is taken away first, so that nobody can put the bundle back."""
    name = f"certs-{NAMESPACE}"
    rules = (
        await asyncio.to_thread(site.plane.kubectl, "get", "clusterrole", name, "-o", "json")
    ).stdout
    without = rules.replace('"patch"', '"deletecollection"')
    assert await asyncio.to_thread(site.may_patch)
    await asyncio.to_thread(site.plane.kubectl, "replace", "-f", "-", stdin=without)
    try:
        await asyncio.to_thread(wait_until, lambda: not site.may_patch(), "the right to be gone")
        await site.set_bundle(api, live().certificate_pem)

        async def unready() -> bool:
            return [site.probe(port)[0] for port in ports] == [503, 503]

        await until(unready, "nobody is ready", 10)
        assert "[-]certificate: validation failed" in site.probe(ports[0])[1]
    finally:
        await asyncio.to_thread(site.plane.kubectl, "replace", "--force", "-f", "-", stdin=rules)
    await site.until_ready(*ports)
    assert await site.whole(api)
    async with site.load(api):
        await asyncio.sleep(0.5)
