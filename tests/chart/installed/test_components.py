"""What an installed chart puts there, and what its components may do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.installed.release import GOING, HOME, USERS
from tests.chart.manifests import (
    CHART,
    COMPONENTS,
    NAMESPACE,
    RELEASE,
    VALUES,
    Render,
    arguments_of,
    of_kind,
)
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.prometheus_operator import SPECS, prometheus_kinds

pytestmark = pytest.mark.controlplane
CAN = [
    ("webhook", "yes", "get secrets/pumice-webhook-certs", HOME),
    ("webhook", "yes", "create secrets", HOME),
    ("webhook", "no", "get secrets/other", HOME),
    ("webhook", "no", "list secrets", HOME),
    ("webhook", "no", "create secrets", USERS),
    ("webhook", "yes", "list queues.scheduling.volcano.sh", ""),
    ("webhook", "no", "update queues.scheduling.volcano.sh", ""),
    ("webhook", "no", "create mutatingwebhookconfigurations.admissionregistration.k8s.io", ""),
    ("webhook", "no", "patch mutatingwebhookconfigurations.admissionregistration.k8s.io/other", ""),
    (
        "webhook",
        "yes",
        "patch mutatingwebhookconfigurations.admissionregistration.k8s.io/volcano-admission-service-jobs-mutate",
        "",
    ),
    ("controller", "yes", "create pods", USERS),
    ("controller", "yes", "create events", USERS),
    ("controller", "yes", "update leases.coordination.k8s.io/pumice-controller", HOME),
    ("controller", "no", "update leases.coordination.k8s.io/pumice-scheduler", HOME),
    ("controller", "no", "create pods --subresource=binding", USERS),
    ("controller", "yes", "create jobs.batch.volcano.sh", USERS),
    ("controller", "no", "update jobs.batch.volcano.sh", USERS),
    ("controller", "no", "create jobflows.flow.volcano.sh", USERS),
    ("controller", "no", "create deployments.apps", USERS),
    ("controller", "no", "update nodes", ""),
    ("scheduler", "yes", "create pods --subresource=binding", USERS),
    ("scheduler", "yes", "list nodes", ""),
    ("scheduler", "no", "update nodes", ""),
    ("scheduler", "yes", "patch queues.scheduling.volcano.sh --subresource=status", ""),
    ("scheduler", "no", "patch queues.scheduling.volcano.sh", ""),
    ("scheduler", "yes", "watch poddisruptionbudgets.policy", ""),
    ("scheduler", "yes", "watch resourcequotas", ""),
    ("scheduler", "no", "patch poddisruptionbudgets.policy", USERS),
    ("scheduler", "no", "create pods", USERS),
    ("scheduler", "no", "delete pods", USERS),
    ("scheduler", "no", "get secrets", USERS),
    ("scheduler", "no", "get jobs.batch.volcano.sh/status", USERS),
]


def may(plane: ControlPlane, home: str, account: str, question: str, place: str) -> bool:
    """Whether a service account has a right, asked as `kubectl auth can-i` is; without a place, in all of the cluster."""
    verb, what, *options = question.split()
    resource, _, name = what.partition("/")
    resource, _, group = resource.partition(".")
    subresource = "".join(options).removeprefix("--subresource=")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    spec = {
        "user": f"system:serviceaccount:{home}:{account}",
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{home}",
            "system:authenticated",
        ],
        "resourceAttributes": {**asked, "name": name, "namespace": place},
    }
    status, answer = plane.request(
        "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec}
    )
    assert status == 201, answer
    allowed: bool = answer["status"]["allowed"]
    return allowed


def test_everything_that_was_rendered_is_there(controlplane: ControlPlane) -> None:
    manifest = controlplane.helm("get", "manifest", RELEASE, namespace=HOME).stdout
    rendered = controlplane.kubectl(
        *("create", "--dry-run=client", "-o", "name", "-f", "-"), stdin=manifest
    ).stdout.split()
    found = controlplane.kubectl("get", "-o", "name", "-f", "-", stdin=manifest).stdout.split()
    assert found == rendered
    assert len(found) > 20


def test_the_crds_are_established(controlplane: ControlPlane) -> None:
    names = [f"crd/{path.stem}" for path in (CHART / "crds").glob("*.yaml")]
    controlplane.kubectl("wait", "--for=condition=Established", "--timeout=10s", *names)


def test_a_second_release_is_refused_as_long_as_there_is_one(controlplane: ControlPlane) -> None:
    answer = controlplane.helm("install", "second", str(CHART), namespace=USERS, check=False)
    assert answer.returncode == 1
    assert "cannot be imported into the current release" in answer.stderr


def test_the_components_pods_are_admitted_under_the_restricted_standard(
    controlplane: ControlPlane,
) -> None:
    def started() -> dict[str, int]:
        path = f"/apis/apps/v1/namespaces/{HOME}/deployments"
        _, found = controlplane.request("GET", path)
        return {
            each["metadata"]["name"]: each.get("status", {}).get("replicas", 0)
            for each in found["items"]
        }

    wanted = {"pumice-webhook": 2, "pumice-controller": 1, "pumice-scheduler": 1}
    wait_until(lambda: started() == wanted, "the pods of all components", 60)
    _, pods = controlplane.request("GET", f"/api/v1/namespaces/{HOME}/pods")
    assert {each["spec"]["priority"] for each in pods["items"]} == {0}


def test_the_prometheus_operators_objects_have_its_fields_and_no_others(
    controlplane: ControlPlane, render: Render
) -> None:
    create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    objects = [
        each
        for monitor in ("serviceMonitor", "podMonitor")
        for each in render(None, f"monitoring.{monitor}.enabled=true", "monitoring.interval=30s")
    ]
    objects = of_kind([*objects, *render(None, "monitoring.prometheusRule.enabled=true")], *SPECS)
    assert {each["kind"] for each in objects} == SPECS.keys()
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    manifest = manifest.replace(f'"{NAMESPACE}"', f'"{HOME}"')
    with prometheus_kinds(controlplane):
        controlplane.kubectl(*create, stdin=manifest)
        for field in ("matchLabels", "expr"):
            misspelt = manifest.replace(f'"{field}"', '"misspelt"')
            answer = controlplane.kubectl(*create, stdin=misspelt, check=False)
            assert "misspelt" in answer.stderr


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_pods_meet_the_restricted_standard_with_all_values(
    controlplane: ControlPlane, render: Render, values: Path
) -> None:
    for deployment in of_kind(render(values), "Deployment"):
        template = deployment["spec"]["template"]
        # The account need not be there for the question; who asks is an administrator.
        spec = {**template["spec"], "serviceAccountName": "default"}
        manifest = {"metadata": {"generateName": "asked-"}, "spec": spec}
        path = f"/api/v1/namespaces/{HOME}/pods?dryRun=All"
        status, answer = controlplane.request("POST", path, manifest)
        assert status == 201, answer
    spec["hostNetwork"] = True
    status, answer = controlplane.request("POST", path, manifest)
    assert (status, "restricted" in answer["message"]) == (403, True)


@pytest.mark.parametrize(
    ("component", "answer", "question", "place"),
    CAN,
    ids=[f"{who}-{answer}-{question.replace(' ', '-')}" for who, answer, question, _ in CAN],
)
def test_each_component_may_do_its_work_and_no_other(
    controlplane: ControlPlane, component: str, answer: str, question: str, place: str
) -> None:
    assert may(controlplane, HOME, f"pumice-{component}", question, place) is (answer == "yes")


def test_the_arguments_of_the_components_survive_the_way_to_the_pod(
    controlplane: ControlPlane,
) -> None:
    for component in COMPONENTS:
        shown = controlplane.kubectl(
            *("get", "deployment", f"pumice-{component}", "-o", "json"), namespace=HOME
        ).stdout
        assert arguments_of(json.loads(shown))[0] == component


NARROW = [
    ("controller", "yes", "create pods", USERS),
    ("controller", "yes", "patch configmaps", USERS),
    ("controller", "yes", "update leases.coordination.k8s.io/pumice-controller", USERS),
    ("controller", "yes", "list queues.scheduling.volcano.sh", ""),
    ("controller", "no", "get secrets", USERS),
    ("controller", "no", "create pods", GOING),
    ("controller", "no", "list jobs.batch.volcano.sh", GOING),
    ("controller", "no", "update leases.coordination.k8s.io/pumice-controller", GOING),
    ("scheduler", "yes", "create pods --subresource=binding", USERS),
    ("scheduler", "yes", "list pods", GOING),
    ("scheduler", "no", "create pods --subresource=binding", GOING),
    ("scheduler", "no", "patch pods --subresource=status", GOING),
]


def test_in_named_namespaces_the_components_may_do_their_work_and_nowhere_else(
    controlplane: ControlPlane, render: Render
) -> None:
    """Rights only, under other names, beside those of the release."""
    rendered = render(
        None, "fullnameOverride=narrow", f"rbac.namespaces={{{USERS}}}", "rbac.secrets=false"
    )
    kinds = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    wanted = [
        each
        for each in of_kind(rendered, *kinds)
        if each["metadata"].get("namespace") in (None, USERS)
    ]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted})
    controlplane.kubectl("apply", "-f", "-", stdin=manifest)
    try:
        for component, answer, question, place in NARROW:
            found = may(controlplane, NAMESPACE, f"narrow-{component}", question, place)
            assert found is (answer == "yes"), f"{component} {question} in {place}"
    finally:
        controlplane.kubectl("delete", "--wait=false", "-f", "-", stdin=manifest)
