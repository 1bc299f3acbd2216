"""The chart on a real API server, with nobody behind its webhooks: what works still, and what waits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.chart.manifests import CHART, COMPONENTS, RELEASE, Manifest, arguments_of
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import wait_until

pytestmark = pytest.mark.controlplane

HOME, USERS = "chart-home", "chart-users"
NOBODY = "https://127.0.0.1:9"  # port "discard": refused at once
JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{USERS}/jobs"
MERGE = "application/merge-patch+json"


def job(name: str) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [task]},
    }


@pytest.fixture(scope="module", autouse=True)
def installed(controlplane: ControlPlane) -> Iterator[None]:
    """A release whose webhooks see one namespace only, so that no other test is held up by it."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    controlplane.add_namespace(HOME, restricted)
    controlplane.add_namespace(USERS)
    only = "webhook.namespaceSelectorExpressions[0]"
    sets = [
        f"webhook.url={NOBODY}",
        f"{only}.key=kubernetes.io/metadata.name",
        f"{only}.operator=In",
        f"{only}.values={{{USERS}}}",
        "networkPolicy.enabled=true",
    ]
    controlplane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CHART / "crds"))
    controlplane.kubectl("wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh")
    status, answer = controlplane.request("POST", JOBS, job("older"))
    assert status == 201, answer
    arguments = [word for each in sets for word in ("--set", each)]
    try:
        controlplane.helm("install", RELEASE, str(CHART), *arguments, namespace=HOME)
        yield
    finally:
        controlplane.helm("uninstall", RELEASE, "--ignore-not-found", namespace=HOME)
        for name in (HOME, USERS):
            controlplane.remove_namespace(name)


def test_everything_that_was_rendered_is_there(controlplane: ControlPlane) -> None:
    manifest = controlplane.helm("get", "manifest", RELEASE, namespace=HOME).stdout
    rendered = controlplane.kubectl(
        *("create", "--dry-run=client", "-o", "name", "-f", "-"), stdin=manifest
    ).stdout.split()
    found = controlplane.kubectl("get", "-o", "name", "-f", "-", stdin=manifest).stdout.split()
    assert found == rendered
    assert len(found) > 20


def test_the_crds_are_established(controlplane: ControlPlane) -> None:
    for path in (CHART / "crds").glob("*.yaml"):
        condition = "--for=condition=Established"
        controlplane.kubectl("wait", condition, "--timeout=10s", f"crd/{path.stem}")


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
    wait_until(lambda: started() == wanted, "the pods of all components", 20)
    _, pods = controlplane.request("GET", f"/api/v1/namespaces/{HOME}/pods")
    assert {each["spec"]["priority"] for each in pods["items"]} == {2_000_000_000}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
def test_pods_are_created_at_once(controlplane: ControlPlane, scheduler: str) -> None:
    pod = {
        "metadata": {"name": scheduler},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "busybox"}],
        },
    }
    status, answer = controlplane.request("POST", f"/api/v1/namespaces/{USERS}/pods", pod)
    assert status == 201, answer


def test_a_new_job_is_refused_with_the_name_of_who_did_not_answer(
    controlplane: ControlPlane,
) -> None:
    status, answer = controlplane.request("POST", JOBS, job("newer"))
    assert status == 500
    assert 'failed calling webhook "mutatejob.volcano.sh"' in answer["message"]
    assert f"{NOBODY}/jobs/mutate" in answer["message"]


def test_a_job_of_an_exempt_namespace_is_not_held_up(controlplane: ControlPlane) -> None:
    status, answer = controlplane.request("POST", JOBS.replace(USERS, HOME), job("own"))
    assert status == 201, answer


def test_what_no_rule_could_refuse_is_never_asked_about(controlplane: ControlPlane) -> None:
    path = f"{JOBS}/older"
    for patch in (
        {"metadata": {"labels": {"team": "vision"}, "annotations": {"note": "hello"}}},
        {"metadata": {"finalizers": ["pumice.dev/test"]}},
        {"spec": {"maxRetry": 3}},  # its value already
    ):
        status, answer = controlplane.request("PATCH", path, patch, content_type=MERGE)
        assert status == 200, answer
    status, answer = controlplane.request(
        "PATCH", f"{path}/status", {"status": {"running": 1}}, content_type=MERGE
    )
    assert status == 200, answer
    status, answer = controlplane.request(
        "PATCH", path, {"spec": {"maxRetry": 5}}, content_type=MERGE
    )
    assert status == 500
    assert controlplane.request("DELETE", path)[0] == 200
    # It is going: whatever is left to change must not be held up.
    free = {"metadata": {"finalizers": []}, "spec": {"maxRetry": 5}}
    status, answer = controlplane.request("PATCH", path, free, content_type=MERGE)
    assert status == 200, answer
    assert controlplane.request("GET", path)[0] == 404


CAN = [
    ("webhook", "yes", "get secret/pumice-webhook-certs", HOME),
    ("webhook", "yes", "create secrets", HOME),
    ("webhook", "no", "get secret/other", HOME),
    ("webhook", "no", "list secrets", HOME),
    ("webhook", "no", "create secrets", USERS),
    ("webhook", "yes", "list queues.scheduling.volcano.sh", ""),
    ("webhook", "no", "update queues.scheduling.volcano.sh", ""),
    ("webhook", "no", "create mutatingwebhookconfigurations", ""),
    ("webhook", "no", "patch mutatingwebhookconfiguration/other", ""),
    (
        "webhook",
        "yes",
        "patch mutatingwebhookconfiguration/volcano-admission-service-jobs-mutate",
        "",
    ),
    ("controller", "yes", "create pods", USERS),
    ("controller", "yes", "create events", USERS),
    ("controller", "yes", "update lease.coordination.k8s.io/pumice-controller", HOME),
    ("controller", "no", "update lease.coordination.k8s.io/pumice-scheduler", HOME),
    ("controller", "no", "create pods --subresource=binding", USERS),
    ("controller", "no", "create jobs.batch.volcano.sh", USERS),
    ("controller", "no", "create deployments", USERS),
    ("controller", "no", "update nodes", ""),
    ("scheduler", "yes", "create pods --subresource=binding", USERS),
    ("scheduler", "yes", "list nodes", ""),
    ("scheduler", "no", "update nodes", ""),
    ("scheduler", "no", "create pods", USERS),
    ("scheduler", "no", "delete pods", USERS),
    ("scheduler", "no", "get secrets", USERS),
    ("scheduler", "no", "get jobs.batch.volcano.sh/status", USERS),
]


@pytest.mark.parametrize(
    ("component", "answer", "question", "place"),
    CAN,
    ids=[f"{who}-{answer}-{question.replace(' ', '-')}" for who, answer, question, _ in CAN],
)
def test_each_component_may_do_its_work_and_no_other(
    controlplane: ControlPlane, component: str, answer: str, question: str, place: str
) -> None:
    user = f"system:serviceaccount:{HOME}:pumice-{component}"
    said = controlplane.kubectl(
        *("auth", "can-i", "--as", user, *question.split()),
        namespace=place or None,
        check=False,
    )
    assert said.stdout.strip() == answer, said.stderr


def test_the_arguments_of_the_components_survive_the_way_to_the_pod(
    controlplane: ControlPlane,
) -> None:
    for component in COMPONENTS:
        shown = controlplane.kubectl(
            *("get", "deployment", f"pumice-{component}", "-o", "json"), namespace=HOME
        ).stdout
        assert arguments_of(json.loads(shown))[0] == component
