"""The CRDs as the API server takes them: established, served, named as Volcano names them."""

from __future__ import annotations

import json

import pytest

from tests.e2e.crds.objects import CRDS, JOBS, TASK, cron_job
from tests.support.controlplane.cluster import ControlPlane


def test_all_of_them_are_established_and_served(controlplane: ControlPlane) -> None:
    found = controlplane.kubectl("api-resources", "--no-headers", "-o", "name").stdout.split()
    assert {path.stem for path in CRDS.glob("*.yaml")} <= set(found)


def test_none_of_them_is_at_odds_with_itself(controlplane: ControlPlane) -> None:
    for path in CRDS.glob("*.yaml"):
        _, crd = controlplane.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{path.stem}"
        )
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, path.stem


@pytest.mark.parametrize(
    ("short", "resource"),
    [
        ("vcjob", "jobs.batch.volcano.sh"),
        ("vj", "jobs.batch.volcano.sh"),
        ("pg", "podgroups.scheduling.volcano.sh"),
        ("podgroup-v1beta1", "podgroups.scheduling.volcano.sh"),
        ("q", "queues.scheduling.volcano.sh"),
        ("queue-v1beta1", "queues.scheduling.volcano.sh"),
    ],
)
def test_short_names_are_volcanos(
    controlplane: ControlPlane, namespace: str, short: str, resource: str
) -> None:
    explained = controlplane.kubectl("explain", short).stdout
    assert f"GROUP:      {resource.partition('.')[2]}" in explained
    controlplane.kubectl("get", short, namespace=namespace)


def test_the_cronjob_of_kubernetes_is_still_called_cronjob(
    controlplane: ControlPlane, namespace: str
) -> None:
    cron_job(controlplane, namespace)
    found = controlplane.kubectl("get", "cronjob", "it", namespace=namespace, check=False)
    assert 'cronjobs.batch "it" not found' in found.stderr


def test_kubectl_explain_knows_every_field(controlplane: ControlPlane) -> None:
    explained = controlplane.kubectl("explain", "vcjob.spec.tasks.partitionPolicy").stdout
    assert "Pods in a partition." in explained
    assert "totalPartitions" in explained


def test_a_second_apply_changes_nothing(controlplane: ControlPlane, namespace: str) -> None:
    manifest = json.dumps(
        {
            "apiVersion": JOBS,
            "kind": "Job",
            "metadata": {"name": "it"},
            "spec": {"tasks": [TASK], "plugins": {"svc": [], "env": []}},
        }
    )
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    answer = controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    assert answer.stdout == "job.batch.volcano.sh/it unchanged\n"
