"""Numbers of labels and annotations: Kubernetes does not limit them, and every component keeps those of all pods."""

from typing import Any

import pytest

from pumice.controller.render import render
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import builders

Raw = dict[str, Any]
LABELS, ANNOTATIONS, ADDED = 256, 1024, 64


def entries(number: int) -> dict[str, str]:
    return {f"example.com/l{each}": "a" for each in range(number)}


def errors_of(obj: Raw, *assignments: str, old: Raw | None = None) -> list[tuple[str, str]]:
    settings = AdmissionSettings.from_assignments(assignments)
    view = Snapshot.of([builders.queue("default")])
    operation = "CREATE" if old is None else "UPDATE"
    found = judge(Admission(settings, view, builtin()), obj, operation, old)
    return [(each.code, each.path) for each in found.errors]


def job(*, of_template: Raw | None = None, **own: Raw) -> Raw:
    task = builders.task()
    if of_template is not None:
        task["template"]["metadata"] = of_template
    made = builders.job("train", [task])
    made["metadata"] |= own
    return made


def embedding(kind: str, spec: Raw) -> Raw:
    group = "flow" if kind in ("JobFlow", "JobTemplate") else "batch"
    metadata = {"name": "x", "namespace": "default"}
    api_version = f"{group}.volcano.sh/v1alpha1"
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def holder(kind: str, template_metadata: Raw) -> tuple[Raw, str]:
    """An object of a kind with the metadata of a pod template, and the path of the template."""
    made = job(of_template=template_metadata)
    if kind == "Job":
        return made, "spec.tasks[0].template"
    if kind == "JobTemplate":
        return embedding(kind, made["spec"]), "spec.tasks[0].template"
    spec = {"schedule": "@daily", "jobTemplate": {"spec": made["spec"]}}
    return embedding(kind, spec), "spec.jobTemplate.spec.tasks[0].template"


@pytest.mark.parametrize("kind", ["Job", "JobTemplate", "CronJob"])
@pytest.mark.parametrize(("field", "most"), [("labels", LABELS), ("annotations", ANNOTATIONS)])
def test_of_a_template(kind: str, field: str, most: int) -> None:
    fitting, _ = holder(kind, {field: entries(most)})
    assert errors_of(fitting) == []
    large, path = holder(kind, {field: entries(most + 1)})
    assert errors_of(large) == [("TPL-MANY-LABELS", f"{path}.metadata.{field}")]
    assert errors_of(large, "strict-upstream=true") == []


@pytest.mark.parametrize(("field", "most"), [("labels", LABELS), ("annotations", ANNOTATIONS)])
def test_of_a_job(field: str, most: int) -> None:
    assert errors_of(job(**{field: entries(most)})) == []
    found = errors_of(job(**{field: entries(most + 1)}))
    assert found == [("JOB-MANY-LABELS", f"metadata.{field}")]


@pytest.mark.parametrize(("field", "most"), [("labels", LABELS), ("annotations", ANNOTATIONS)])
@pytest.mark.parametrize("code", ["PG-MANY-LABELS", "POD-MANY-LABELS"])
def test_of_what_is_made_of_it(code: str, field: str, most: int) -> None:
    spec: Raw = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "i"}]}
    made = builders.pod_group("g") if code.startswith("PG") else builders.pod("p") | {"spec": spec}
    made["metadata"][field] = entries(most + ADDED)
    assert errors_of(made) == []
    made["metadata"][field] = entries(most + ADDED + 1)
    assert errors_of(made) == [(code, f"metadata.{field}")]


def test_pods_of_other_schedulers_are_not_looked_at() -> None:
    pod = builders.pod("p") | {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    pod["metadata"]["labels"] = entries(1000)
    assert errors_of(pod) == []


def test_all_that_is_added_finds_room() -> None:
    labels, annotations = entries(LABELS), entries(ANNOTATIONS)
    own = {"labels": labels, "annotations": annotations}
    made = job(of_template=own, **own)
    made["spec"]["plugins"] = {"svc": [], "ssh": [], "env": [], "pytorch": []}
    assert errors_of(made) == []
    made["metadata"]["uid"] = "0ad0f8b5-9d0a-4b0e-8d4c-3f1c2a5b6c7d"
    for obj in render(made, builtin()):
        if obj["kind"] in ("Pod", "PodGroup"):
            meta = obj["metadata"]
            assert len(meta["labels"]) <= LABELS + ADDED, obj["kind"]
            assert len(meta["annotations"]) <= ANNOTATIONS + ADDED, obj["kind"]


@pytest.mark.parametrize("kind", ["JobTemplate", "CronJob"])
def test_a_template_may_get_fewer_beside_a_field_of_a_wrong_type(kind: str) -> None:
    many, some = LABELS + 2, LABELS + 1
    made = []
    for number in (many, some):
        obj, path = holder(kind, {"labels": entries(number)})
        tasks = obj["spec"].get("jobTemplate", obj)["spec"]["tasks"]
        tasks[0]["template"]["spec"]["hostNetwork"] = "yes"
        made.append(obj)
    assert errors_of(made[1], old=made[0]) == []
    assert errors_of(made[0], old=made[1]) == [("TPL-MANY-LABELS", f"{path}.metadata.labels")]
