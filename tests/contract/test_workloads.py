"""Owners of pods: what the spec of a Deployment, a ReplicaSet and a Job of batch/v1 must have, and may not."""

from typing import Any

import pytest

from tests.contract.api import Api, Json
from tests.contract.kinds import manifest, path

JOBS, DEPLOYMENTS, REPLICA_SETS = "batch/v1/jobs", "apps/v1/deployments", "apps/v1/replicasets"
LABELS = {"app": "a"}
TEMPLATE: Json = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
}


def causes(body: Json) -> set[tuple[str, str]]:
    return {(each["field"], each["reason"]) for each in body["details"]["causes"]}


async def test_a_job_of_volcano_under_another_group_is_refused(api: Api, namespace: str) -> None:
    spec = {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2}], "template": TEMPLATE}
    obj = manifest(JOBS, "Job", "a", spec=spec)

    strict = await api.create(path(JOBS, namespace), obj, fieldValidation="Strict")
    warned = await api.create(path(JOBS, namespace), obj)

    assert strict.refused(400, "BadRequest")["message"] == (
        'Job in version "v1" cannot be handled as a Job: strict decoding error: '
        'unknown field "spec.minAvailable", unknown field "spec.tasks"'
    )
    made = warned.expect(201)
    assert warned.warnings == ['unknown field "spec.minAvailable"', 'unknown field "spec.tasks"']
    assert not {"minAvailable", "tasks"} & {*made["spec"]}


async def test_a_job_without_a_template_is_refused(api: Api, namespace: str) -> None:
    answer = await api.create(path(JOBS, namespace), manifest(JOBS, "Job", "a", spec={}))

    assert causes(answer.refused(422, "Invalid")) >= {
        ("spec.template.spec.containers", "FieldValueRequired"),
        ("spec.template.spec.restartPolicy", "FieldValueRequired"),
    }


@pytest.mark.parametrize(
    ("kind", "collection"), [("Deployment", DEPLOYMENTS), ("ReplicaSet", REPLICA_SETS)]
)
async def test_containers_of_templates_have_images(
    api: Api, namespace: str, kind: str, collection: str
) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "main"}]}
    template = {"metadata": {"labels": LABELS}, "spec": spec}
    obj = manifest(
        collection,
        kind,
        "a",
        spec={"selector": {"matchLabels": LABELS}, "template": template, "scale": 3},
    )

    answer = await api.create(path(collection, namespace), obj)

    body = answer.refused(422, "Invalid")
    assert causes(body) == {("spec.template.spec.containers[0].image", "FieldValueRequired")}
    assert answer.warnings == ['unknown field "spec.scale"']
