"""Owners of pods that are of no kind of Kubernetes: a custom resource, which is looked up when its PodGroup is made."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import EVENT, POD, POD_GROUP, Kind
from pumice.cluster.client import Client
from pumice.cluster.clock import SystemClock
from pumice.cluster.errors import ApiError, Forbidden, Unavailable
from pumice.controller.other_owners import OwnedGang
from pumice.controller.worker import controller, owner_lookup
from pumice.controller.worker.owner_lookup import OwnerLookup
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_other_owners import MIN_MEMBER, joined, make, pod, reasons
from tests.kit.requests import Request, recorded

Raw = dict[str, Any]

RAY = Kind("ray.io", "v1", "RayCluster", "rayclusters")
ALIVE = frozenset({"pg-controller"})


@pytest.fixture(autouse=True)
def _served(cluster: EmbeddedCluster) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": RAY.plural, "kind": RAY.kind}
    spec = {"group": RAY.group, "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    cluster.store.create(head | {"metadata": {"name": RAY.resource}, "spec": spec})


async def ray(
    client: Client, annotations: dict[str, str] | None = None, name: str = "ray", workers: int = 3
) -> Raw:
    """A RayCluster with its pods."""
    head: Raw = {"apiVersion": RAY.api_version, "kind": RAY.kind}
    metadata = {"name": name, "annotations": annotations or {}}
    made = await make(client, RAY, head | {"metadata": metadata})
    for number in range(workers):
        await make(client, POD, pod(f"{name}-{number}", made))
    return made


def group_of(stage: ControllerStage, made: Raw) -> Raw:
    return stage.find(POD_GROUP, f"podgroup-{made['metadata']['uid']}")


def is_lookup(request: Request) -> bool:
    return request.method == "GET" and f"/{RAY.plural}/" in request.path


async def test_a_gang_follows_its_owner_by_one_request(cluster: EmbeddedCluster) -> None:
    async with recorded(cluster.url) as (client, requests):
        stage = ControllerStage(cluster, client)
        async with stage.controller(client, controllers=ALIVE):
            wanted = {MIN_MEMBER: "3", "scheduling.volcano.sh/queue-name": "research"}
            first = await ray(client, wanted)
            second = await ray(client, {"volcano.sh/sla-waiting-time": "1h"}, "second")
            await joined(stage)
    spec = group_of(stage, first)["spec"]
    assert (spec["minMember"], spec["queue"], spec["minResources"]["cpu"]) == (3, "research", "3")
    assert group_of(stage, second)["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] == "1h"
    read = [each for each in requests.sent if RAY.group in each.path and each.method == "GET"]
    assert [each.path.rpartition("/")[2] for each in read] == ["v1", "ray", "second"]
    assert all("as=PartialObjectMetadata" in each.headers["Accept"] for each in read[1:])


async def test_what_it_says_later_is_followed_too(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what it says when the right to read it is given; what that lacks is told once."""
    monkeypatch.setattr(owner_lookup, "FRESH_SECONDS", 0.5)
    monkeypatch.setattr(owner_lookup, "LOOK_AGAIN_SECONDS", 2.0)
    monkeypatch.setattr(controller, "RESYNC_SECONDS", 2.0)
    refusal: ApiError | None = Forbidden(403, "Forbidden", "no right")
    async with recorded(cluster.url) as (client, requests):
        requests.refuse = lambda request: refusal if is_lookup(request) else None
        stage = ControllerStage(cluster, client)
        async with stage.controller(client, controllers=ALIVE):
            made = await ray(client, {MIN_MEMBER: "2"})
            await joined(stage)
            assert group_of(stage, made)["spec"]["minMember"] == 1
            await ray(client, name="second")
            await joined(stage)
            assert len([each for each in requests.sent if is_lookup(each)]) == 1
            await asyncio.sleep(5.0)
            assert reasons(stage) == ["OwnerNotRead"] * 2
            event, _ = stage.all(EVENT)
            assert event["count"] == 1
            assert "controller.owners" in event["message"]
            assert event["involvedObject"]["kind"] == RAY.kind
            refusal = None
            await stage.until(lambda: group_of(stage, made)["spec"]["minMember"] == 2, "a right")
            changed = {"metadata": {"annotations": {MIN_MEMBER: "3"}}}
            await client.patch(RAY, "ray", "default", changed)
            await stage.until(lambda: group_of(stage, made)["spec"]["minMember"] == 3, "a change")


async def test_a_gang_waits_for_an_owner_that_cannot_be_read(cluster: EmbeddedCluster) -> None:
    error: ApiError | None = Unavailable(503, "ServiceUnavailable", "not now")
    async with recorded(cluster.url) as (client, requests):
        requests.refuse = lambda request: error if is_lookup(request) else None
        stage = ControllerStage(cluster, client)
        async with stage.controller(client, controllers=ALIVE):
            made = await ray(client, {MIN_MEMBER: "2"})
            await stage.until(lambda: "OwnerUnreadable" in reasons(stage), "an event")
            assert group_of(stage, made) == {}
            error = None
            await joined(stage)
            assert group_of(stage, made)["spec"]["minMember"] == 2


@pytest.mark.parametrize(
    ("kind", "name", "paths"),
    [
        (RAY, "ray", ["/apis/ray.io/v1", "/apis/ray.io/v1/namespaces/default/rayclusters/ray"]),
        (Kind("ray.io", "v1", "RayJob", "rayjobs"), "ray", ["/apis/ray.io/v1"]),
        (Kind("no.where", "v1", "RayCluster", "rayclusters"), "ray", ["/apis/no.where/v1"]),
        (Kind("", "v1", "ConfigMap", "x"), "ray", ["/api/v1", "/api/v1/namespaces/default/configmaps/ray"]),
        (RAY, "../../../../../api/v1/secrets/key", []),
        (RAY, "ray?watch=1", []),
        (Kind("..", "v1", "RayCluster", "rayclusters"), "ray", []),
        (Kind("ray.io", "v1%2f..", "RayCluster", "rayclusters"), "ray", []),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
async def test_what_a_reference_leads_to(
    cluster: EmbeddedCluster, client: Client, kind: Kind, name: str, paths: list[str]
) -> None:
    """References are written by users; none leads to another path than that of its owner, and none to an owner of another uid."""
    await ray(client, workers=0)
    async with recorded(cluster.url) as (client_, requests):
        found = await OwnerLookup(client_, SystemClock()).read(OwnedGang(kind, name, "default", "another"))  # fmt: skip
    assert (found.owner, found.unread) == (None, None)
    assert [each.path for each in requests.sent] == paths
