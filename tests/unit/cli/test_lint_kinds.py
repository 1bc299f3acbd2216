"""Which kinds `pumice lint` judges, skips and refuses."""

import pytest

from tests.kit.builders import job
from tests.unit.cli.conftest import Pumice, texts


@pytest.mark.parametrize(
    ("version", "kind", "path", "meant"),
    [
        ("batch.volcano.sh/v1alpha1", "job", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Jobb", "kind", "Job"),
        ("batch.volcano.sh/v1alpha1", "VolcanoJob", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Queue", "kind", "scheduling.volcano.sh/v1beta1 Queue"),
        ("batch.volcano.sh/v1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1beta1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Jobs", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.io/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.io/v1alpha1", "Thing", "apiVersion", "batch.volcano.sh/v1alpha1"),
        ("bacth.volcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.vulcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("Batch.Volcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("volcano.sh/v1beta1", "Queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("queues.volcano.sh/v1", "queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("scheduling.volcano.sh/v1", "Queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("v1", "PodGroup", "kind", "scheduling.volcano.sh/v1beta1 PodGroup"),
        ("v1alpha1", "PodGroup", "apiVersion", "scheduling.volcano.sh/v1beta1 PodGroup"),
        ("batch/v1alpha1", "Job", "apiVersion", "batch/v1 Job"),
        ("batch/v1", "Jobs", "kind", "batch/v1 Job"),
        ("v1", "pod", "kind", "v1 Pod"),
        ("core/v1", "Pod", "apiVersion", "v1 Pod"),
        ("V1", "Pod", "apiVersion", "v1 Pod"),
        (
            "scheduling.volcano.sh/v1alpha2",
            "PodGroup",
            "apiVersion",
            "scheduling.volcano.sh/v1beta1 PodGroup",
        ),
    ],
)
def test_a_kind_that_no_api_server_has_is_refused(
    pumice: Pumice, version: str, kind: str, path: str, meant: str
) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(manifest, job()))
    assert (ran.code, ran.err) == (1, "")
    message = f'there is no kind "{version} {kind}" (did you mean "{meant}"?)'
    refused, good = ran.json
    error = {
        "code": "SCHEMA-KIND",
        "path": path,
        "message": message,
        "level": "error",
        "file": "-",
        "line": 1,
    }
    assert refused == {
        "object": f"{kind}/default/a",
        "allowed": False,
        "errors": [error],
        "warnings": [],
        "patched": manifest,
        "file": "-",
        "line": 1,
        "problems": [error],
    }
    assert good["allowed"] is True


def test_a_kind_that_resembles_none_is_refused_without_a_guess(pumice: Pumice) -> None:
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Notebook",
        "metadata": {"name": "a"},
    }
    ran = pumice("lint", "-", stdin=texts(manifest))
    assert 'there is no kind "batch.volcano.sh/v1alpha1 Notebook" [SCHEMA-KIND]' in ran.out


def test_a_job_with_tasks_is_volcanos(pumice: Pumice) -> None:
    ran = pumice("lint", "-", stdin=texts({**job(), "apiVersion": "batch/v1alpha1"}))
    assert ran.code == 1
    assert '(did you mean "batch.volcano.sh/v1alpha1 Job"?) [SCHEMA-KIND]' in ran.out


@pytest.mark.parametrize(
    "spelt",
    [
        "kubeflow.org/v1 PyTorchJob",
        "kubeflow.org/v1 Job",
        "argoproj.io/v1alpha1 Workflow",
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        "scheduling.incubator.k8s.io/v1alpha1 PodGroup",
        "scheduling.run.ai/v2 Queue",
        "batch.tutorial.kubebuilder.io/v1 CronJob",
        "nodeinfo.volcano.sh/v1alpha1 Numatopology",
        "shard.volcano.sh/v1alpha1 NodeShard",
        "workload.serving.volcano.sh/v1alpha1 ModelServing",
        "jobset.x-k8s.io/v1 JobSet",
        "batch/v1 CronJob",
        "batch/v1 Job",
        "apps/v1 Deployment",
        "v1 Config",
        "v2 Chart",
    ],
)
def test_a_kind_of_another_project_is_skipped(pumice: Pumice, spelt: str) -> None:
    version, kind = spelt.split()
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(manifest, job()))
    assert (ran.code, len(ran.json)) == (0, 1)
    assert ran.err == f"skipped {kind}/default/a: {version} is not validated\n"


def test_a_job_of_kubernetes_with_tasks_is_refused(pumice: Pumice) -> None:
    """Kubectl refuses it, too: unknown field "spec.tasks"."""
    ran = pumice("lint", "-", stdin=texts({**job(), "apiVersion": "batch/v1"}))
    assert (ran.code, ran.err) == (1, "")
    hint = '(did you mean "batch.volcano.sh/v1alpha1"?)'
    assert f'apiVersion: a Job of "batch/v1" has no tasks {hint} [SCHEMA-KIND]' in ran.out


def test_objects_of_another_kind_share_a_note(pumice: Pumice) -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"}} for n in range(9)]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    ran = pumice("lint", "-", stdin=texts(*nodes[:5], service, *nodes[5:], job()))
    assert (ran.code, ran.err.splitlines()) == (
        0,
        [
            "skipped Node/n0 (and 8 more like it): v1 is not validated",
            "skipped Service/default/s: v1 is not validated",
        ],
    )


def test_other_kinds_are_skipped_with_a_word(pumice: Pumice) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(deployment, job()))
    assert ran.code == 0
    assert [each["object"] for each in ran.json] == ["Job/default/train"]
    assert "skipped Deployment/default/web" in ran.err
