"""The subresource `scale` of workloads, which `kubectl scale` reads and writes."""

from typing import Any

import pytest

from tests.contract.api import Api, Json
from tests.contract.kinds import path

REPLICA_SETS = "apps/v1/replicasets"
DEPLOYMENTS = "apps/v1/deployments"
STATEFUL_SETS = "apps/v1/statefulsets"
CONTROLLERS = "replicationcontrollers"


def workload(kind: str, api_version: str = "apps/v1", **spec: Any) -> Json:
    template = {
        "metadata": {"labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "template": template, **spec},
    }


LABELS = {"matchLabels": {"app": "web"}}
EXPRESSIONS = {
    "matchLabels": {"tier": "front"},
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["web", "api"]},
        {"key": "stage", "operator": "DoesNotExist"},
    ],
}


@pytest.mark.parametrize(
    ("resource", "obj", "selector"),
    [
        (REPLICA_SETS, workload("ReplicaSet", selector=LABELS), "app=web"),
        (
            DEPLOYMENTS,
            workload("Deployment", selector=EXPRESSIONS),
            "app in (api,web),!stage,tier=front",
        ),
        (STATEFUL_SETS, workload("StatefulSet", selector=LABELS, serviceName="web"), "app=web"),
        (CONTROLLERS, workload("ReplicationController", "v1", selector={"app": "web"}), "app=web"),
    ],
    ids=lambda each: each.rpartition("/")[2] if isinstance(each, str) else "",
)
async def test_it_shows_and_changes_the_replicas(
    api: Api, namespace: str, resource: str, obj: Json, selector: str
) -> None:
    made = (await api.create(path(resource, namespace), obj)).expect(201)
    where = path(resource, namespace, "web", "scale")
    scale = (await api.get(where)).expect(200)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    assert scale["spec"] == {"replicas": 2}
    assert 0 <= scale["status"]["replicas"] <= 2
    assert scale["status"]["selector"] == selector

    patched = (await api.patch("merge", where, {"spec": {"replicas": 3}})).expect(200)
    assert patched["spec"] == {"replicas": 3}
    found = (await api.get(path(resource, namespace, "web"))).expect(200)
    assert found["spec"]["replicas"] == 3
    assert found["metadata"]["generation"] == 2

    patched["spec"]["replicas"] = 0
    patched["metadata"].pop("resourceVersion")
    assert (await api.update(where, patched)).expect(200)["spec"] == {}
    found = (await api.get(path(resource, namespace, "web"))).expect(200)
    assert found["spec"]["replicas"] == 0


async def test_it_refuses_what_is_no_number_of_replicas_and_an_old_version(
    api: Api, namespace: str
) -> None:
    obj = workload("Deployment", selector=LABELS)
    (await api.create(path(DEPLOYMENTS, namespace), obj)).expect(201)
    where = path(DEPLOYMENTS, namespace, "web", "scale")
    scale = (await api.get(where)).expect(200)

    answer = await api.patch("merge", where, {"spec": {"replicas": -1}})
    assert "must be greater than or equal to 0" in answer.refused(422, "Invalid")["message"]
    (await api.update(where, scale | {"spec": {"replicas": "many"}})).expect(400)
    (await api.patch("merge", where, {"spec": {"replicas": 1}})).expect(200)
    (await api.update(where, scale)).refused(409, "Conflict")
    (await api.get(path(DEPLOYMENTS, namespace, "none", "scale"))).refused(404, "NotFound")
    (await api.delete(where)).refused(405, "MethodNotAllowed")
