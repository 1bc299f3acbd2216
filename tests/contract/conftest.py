"""The two API servers on which every statement of the contract must hold."""

import itertools
import ssl
from collections.abc import AsyncIterator
from functools import partial

import pytest

from pumice.embedded import EmbeddedCluster, NodeTimings
from tests.contract.api import Api
from tests.contract.kinds import GROUP, definitions, path
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

CRDS = path("apiextensions.k8s.io/v1/customresourcedefinitions")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def prepared_plane(controlplane: ControlPlane) -> tuple[ControlPlane, ssl.SSLContext]:
    """The real control plane with the kinds of the suite, and how to trust it."""
    collections = []
    for crd in definitions():
        status, answer = controlplane.request("POST", CRDS, crd)
        assert status == 201, answer
        version, plural = crd["spec"]["versions"][0]["name"], crd["spec"]["names"]["plural"]
        collections.append(path(f"{GROUP}/{version}/{plural}"))
    for collection in collections:
        served = partial(_is_served, controlplane, collection)
        wait_until(served, f"{collection} to be served", 30)
    return controlplane, ssl.create_default_context(cafile=str(controlplane.ca))


def _is_served(plane: ControlPlane, collection: str) -> bool:
    return plane.request("GET", collection)[0] == 200


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.controlplane)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """An API server that has the kinds of the suite."""
    if request.param == "embedded":
        # Long enough for a test to look at a pod that is going.
        timings = NodeTimings(start=0.0, stop=20.0)
        async with (
            EmbeddedCluster(definitions(), bookmark_interval=0.2, timings=timings) as cluster,
            Api("embedded", cluster.url, "any") as embedded,
        ):
            yield embedded
    else:
        plane, tls = request.getfixturevalue("prepared_plane")
        async with Api("real", plane.url, plane.admin_token, tls) as real:
            yield real


@pytest.fixture
async def namespace(api: Api, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    name = f"contract-{next(_numbers)}"
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    (await api.create("/api/v1/namespaces", obj)).expect(201)
    yield name
    if api.name == "real":
        request.getfixturevalue("controlplane").empty_namespace(name)
    else:
        await api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
async def pod_namespace(api: Api, namespace: str) -> str:
    """The namespace once pods can be created in it: the real one waits for a service account."""
    if api.name == "real":
        account = path("serviceaccounts", namespace, "default")
        await api.until(account, lambda answer: answer.code == 200)
    return namespace
