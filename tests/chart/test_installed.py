"""The chart on a real API server, with nobody behind its webhooks: what works still, and what waits."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.manifests import (
    CHART,
    COMPONENTS,
    RELEASE,
    VALUES,
    Manifest,
    Render,
    arguments_of,
    of_kind,
)
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import wait_until

pytestmark = pytest.mark.controlplane

HOME, USERS, GOING = "chart-home", "chart-users", "chart-going"
JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{USERS}/jobs"
MERGE = "application/merge-patch+json"


class Dead:
    """A webhook that hangs up on everybody, and counts who called.

    Attributes:
        url: Where it is.
        calls: How often it was called.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._hang_up, daemon=True).start()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self.calls += 1
                caller.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def job(name: str) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [task]},
    }


@pytest.fixture(scope="module")
def dead() -> Iterator[Dead]:
    webhook = Dead()
    yield webhook
    webhook.close()


@pytest.fixture(scope="module", autouse=True)
def installed(controlplane: ControlPlane, dead: Dead) -> Iterator[None]:
    """A release whose webhooks see these namespaces only, so that no other test is held up by it."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    controlplane.add_namespace(HOME, restricted)
    controlplane.add_namespace(USERS)
    controlplane.add_namespace(GOING)
    only = "webhook.namespaceSelectorExpressions[0]"
    sets = [
        f"webhook.url={dead.url}",
        f"{only}.key=kubernetes.io/metadata.name",
        f"{only}.operator=In",
        f"{only}.values={{{USERS},{GOING},{HOME},kube-system}}",
        "networkPolicy.enabled=true",
    ]
    controlplane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CHART / "crds"))
    controlplane.kubectl("wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh")
    for namespace, name in ((USERS, "older"), (USERS, "held"), (GOING, "older")):
        path = JOBS.replace(USERS, namespace)
        status, answer = controlplane.request("POST", path, job(name))
        assert status == 201, answer
    arguments = [word for each in sets for word in ("--set", each)]
    try:
        controlplane.helm("install", RELEASE, str(CHART), *arguments, namespace=HOME)
        yield
    finally:
        controlplane.helm("uninstall", RELEASE, "--ignore-not-found", namespace=HOME)
        for name in (HOME, USERS, GOING):
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


def pod(name: str, scheduler: str, **annotations: str) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


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

    wait_until(created, "three pods", 10)
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

    wait_until(came_back, "two new pods of the webhook", 20)
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
    assert f"helm upgrade {RELEASE} CHART -n {HOME} --reuse-values" in said
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
