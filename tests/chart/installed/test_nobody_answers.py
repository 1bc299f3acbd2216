"""With nobody behind its webhooks: what works still, and what waits."""

from __future__ import annotations

import json
import re

import pytest

from tests.chart.installed.release import GOING, HOME, JOBS, USERS, Dead, job, pod
from tests.chart.manifests import RELEASE
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane
MERGE = "application/merge-patch+json"
CHANGE = (
    "patch",
    "vcjob/held",
    "--dry-run=server",
    "--type=merge",
    "-p",
    '{"spec":{"maxRetry":7}}',
)
HOUSEKEEPING = {
    "node": ("system:node:n1", "system:nodes", True),
    "namespace-controller": (
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccounts",
        True,
    ),
    "garbage-collector": (
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccounts",
        False,
    ),
    "controller-manager": ("system:kube-controller-manager", "system:authenticated", False),
}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
def test_an_unrelated_pod_is_created_without_a_call(
    controlplane: ControlPlane, dead: Dead, scheduler: str
) -> None:
    before = dead.calls
    path = f"/api/v1/namespaces/{USERS}/pods"
    status, answer = controlplane.request("POST", path, pod(scheduler, scheduler, note="hello"))
    assert status == 201, answer
    assert dead.calls == before


@pytest.mark.parametrize(
    "annotation", ["pumice.dev/plugins", "volcano.sh/jdb-min-available"], ids=["mutate", "validate"]
)
def test_a_pod_that_would_be_judged_is_created_all_the_same(
    controlplane: ControlPlane, dead: Dead, annotation: str
) -> None:
    before = dead.calls
    manifest = pod(annotation.rpartition("/")[2], "volcano", **{annotation: "1"})
    status, answer = controlplane.request("POST", f"/api/v1/namespaces/{USERS}/pods", manifest)
    assert status == 201, answer
    assert dead.calls > before


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
def test_the_pods_of_a_deployment_are_created_at_once(
    controlplane: ControlPlane, dead: Dead, scheduler: str
) -> None:
    before = dead.calls
    labels = {"app": f"web-{scheduler}"}
    template = {**pod("", scheduler), "metadata": {"labels": labels}}
    manifest = {
        "metadata": {"name": labels["app"]},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{USERS}/deployments"
    status, answer = controlplane.request("POST", path, manifest)
    assert status == 201, answer

    def created() -> bool:
        _, found = controlplane.request("GET", f"{path}/{labels['app']}")
        return bool(found.get("status", {}).get("replicas") == 3)

    wait_until(created, "three pods", 60)
    assert dead.calls == before


def test_the_webhooks_own_pods_are_never_asked_about(
    controlplane: ControlPlane, dead: Dead
) -> None:
    """Else an outage of the webhook could keep it from ever coming back."""
    before = dead.calls
    selector = "app.kubernetes.io/component=webhook"
    path = f"/api/v1/namespaces/{HOME}/pods?labelSelector={selector}"
    _, found = controlplane.request("GET", path)
    old = {each["metadata"]["uid"] for each in found["items"]}
    assert len(old) == 2
    assert controlplane.request("DELETE", path)[0] == 200

    def came_back() -> bool:
        _, found = controlplane.request("GET", path)
        new = {each["metadata"]["uid"] for each in found["items"]} - old
        return len(new) == 2

    wait_until(came_back, "two new pods of the webhook", 60)
    concerned = pod("concerned", "volcano", **{"pumice.dev/plugins": "env"})
    container = concerned["spec"]["containers"][0]
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    status, answer = controlplane.request("POST", f"/api/v1/namespaces/{HOME}/pods", concerned)
    assert status == 201, answer
    assert dead.calls == before


def test_a_new_job_is_refused_with_a_message_that_says_what_to_do(
    controlplane: ControlPlane, dead: Dead
) -> None:
    status, answer = controlplane.request("POST", JOBS, job("newer"))
    assert status == 500
    assert 'failed calling webhook "mutatejob.volcano.sh"' in answer["message"]
    assert f"{dead.url}/jobs/mutate/if-this-fails-run/" in answer["message"]
    found = re.search(r"if-this-fails-run/kubectl-(\S+?)\?timeout", answer["message"])
    assert found, answer["message"]
    *command, namespace = found[1].replace("--n-", " -n ").replace("-", " ", 2).split()
    assert command == ["describe", "deployment", f"{RELEASE}-webhook", "-n"]
    said = controlplane.kubectl(*command, namespace).stdout
    assert "--set webhook.failurePolicy=Ignore" in said
    assert f"helm upgrade {RELEASE} CHART -n {HOME} --reset-then-reuse-values" in said
    # What it says does what it says.
    ways = [each.strip() for each in said.splitlines() if each.strip().startswith("kubectl ")]
    assert len(ways) == 4
    for way in ways:
        dry = ["--dry-run=server"] if " delete " in way else []
        answered = controlplane.kubectl(*way.split()[1:], *dry, check=" logs " not in way)
        if dry:
            assert answered.stdout.count("volcano-admission-service") >= 4, way


@pytest.mark.parametrize("namespace", [HOME, "kube-system"])
def test_a_job_of_an_exempt_namespace_is_not_held_up(
    controlplane: ControlPlane, dead: Dead, namespace: str
) -> None:
    before = dead.calls
    path = JOBS.replace(USERS, namespace)
    status, answer = controlplane.request("POST", path, job("own"))
    assert status == 201, answer
    assert controlplane.request("DELETE", f"{path}/own")[0] == 200
    assert dead.calls == before


@pytest.mark.parametrize(
    ("user", "group", "creates"), HOUSEKEEPING.values(), ids=list(HOUSEKEEPING)
)
def test_nodes_and_housekeeping_are_not_held_up(
    controlplane: ControlPlane, dead: Dead, user: str, group: str, creates: bool
) -> None:
    name = re.sub(r"\W", "-", user).strip("-")
    kubeconfig = controlplane.kubeconfig_for(user, [group])
    grant = ["create", "rolebinding", name, "--clusterrole=cluster-admin", f"--user={user}"]
    controlplane.kubectl(*grant, namespace=USERS)

    def kubectl(*arguments: str, stdin: str | None = None) -> str:
        done = controlplane.kubectl(
            *arguments, stdin=stdin, kubeconfig=kubeconfig, namespace=USERS, check=False
        )
        return done.stdout + done.stderr

    before = dead.calls
    assert "patched" in kubectl(*CHANGE)
    assert dead.calls == before
    created = kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job(name)))
    assert ("created" in created) is creates, created
    assert (dead.calls == before) is creates
    # Who has the same rights and is none of them waits.
    held = controlplane.kubectl(*CHANGE, namespace=USERS, check=False)
    assert "failed calling webhook" in held.stderr


def test_a_namespace_with_jobs_in_it_can_go(controlplane: ControlPlane, dead: Dead) -> None:
    before = dead.calls
    controlplane.remove_namespace(GOING)
    wait_until(
        lambda: controlplane.request("GET", f"/api/v1/namespaces/{GOING}")[0] == 404,
        f"namespace {GOING} to be gone",
        60,
    )
    assert dead.calls == before


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
