"""Upgrade, re-apply, rollback and uninstall of a release that works: Jobs come in all the while, and after."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import job, task
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import wait_until
from tests.support.installation import CHART, NAMESPACE, RELEASE, Installation

BATCH = "/apis/batch.volcano.sh/v1alpha1/namespaces"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
LABEL = f"app.kubernetes.io/instance={RELEASE}"


def bare(name: str) -> dict[str, Any]:
    """A Job that lacks what admission fills in."""
    manifest = job(name, [task("", 1, annotations={"pumice.dev/run-duration": "1s"})])
    del manifest["metadata"]["namespace"]
    return manifest


class Users:
    """Who creates Jobs, by dry run, over and over."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"{BATCH}/{namespace}/jobs?dryRun=All"
        self._over = threading.Event()
        self.admitted = 0
        self.refused: list[str] = []

    def admits(self) -> bool:
        """Whether a Job is admitted, and defaulted, by now."""
        status, answer = self._plane.request("POST", self._path, bare("asking"))
        if status != 201:
            self.refused.append(f"{status} {answer.get('message')}")
            return False
        assert answer["spec"]["tasks"][0]["name"] == "default0"
        return True

    @contextmanager
    def busy(self) -> Iterator[None]:
        """They go on for as long as the block lasts, and a moment before and after."""
        self._over.clear()
        worker = threading.Thread(target=self._work)
        worker.start()
        try:
            time.sleep(0.3)
            yield
            time.sleep(0.5)
        finally:
            self._over.set()
            worker.join()

    def _work(self) -> None:
        while not self._over.wait(0.02):
            self.admitted += self.admits()


@pytest.fixture
def users(controlplane: ControlPlane, installation: Installation, namespace: str) -> Users:
    found = Users(controlplane, namespace)
    wait_until(found.admits, "the API server to reach the webhook", 20)
    found.refused.clear()
    return found


def upgrade(plane: ControlPlane, *settings: str) -> None:
    sets = [word for each in settings for word in ("--set", each)]
    arguments = ("upgrade", RELEASE, str(CHART), "--reuse-values", *sets)
    plane.helm(*arguments, namespace=NAMESPACE)


def configurations(plane: ControlPlane) -> list[dict[str, Any]]:
    return [
        each
        for kind in KINDS
        for each in plane.request("GET", f"{REGISTRATION}/{kind}?labelSelector={LABEL}")[1]["items"]
    ]


def trusted(plane: ControlPlane) -> bool:
    """Whether every webhook is called with an authority."""
    found = configurations(plane)
    return len(found) >= 8 and all(
        webhook["clientConfig"].get("caBundle") for each in found for webhook in each["webhooks"]
    )


def rendered(plane: ControlPlane, *kinds: str) -> str:
    """What the release has rendered, of these kinds only if some are named; as a GitOps tool holds it."""
    text = plane.helm("get", "manifest", RELEASE, namespace=NAMESPACE).stdout
    found = [each for each in yaml.safe_load_all(text) if each]
    return yaml.safe_dump_all([each for each in found if not kinds or each["kind"] in kinds])


def test_an_upgrade_and_a_rollback_refuse_nobody(controlplane: ControlPlane, users: Users) -> None:
    before = controlplane.helm("history", RELEASE, "-o", "json", namespace=NAMESPACE).stdout
    revision = str(json.loads(before)[-1]["revision"])
    with users.busy():
        upgrade(controlplane, "webhook.replicas=3", "scheduler.replicas=2")
        upgrade(controlplane, "webhook.failurePolicy=Ignore")
        controlplane.helm("rollback", RELEASE, revision, namespace=NAMESPACE)
    assert users.refused == []
    assert users.admitted > 10
    policies = {
        w["failurePolicy"] for each in configurations(controlplane) for w in each["webhooks"]
    }
    assert policies == {"Fail", "Ignore"}
    assert trusted(controlplane)


@pytest.mark.parametrize(
    "manner",
    [[], ["--server-side", "--force-conflicts", "--field-manager=gitops"]],
    ids=["client-side", "server-side"],
)
def test_a_reapply_by_gitops_refuses_nobody(
    controlplane: ControlPlane, users: Users, manner: list[str]
) -> None:
    manifest = rendered(controlplane)
    with users.busy():
        for _ in range(2):
            controlplane.kubectl("apply", *manner, "-f", "-", stdin=manifest)
    assert users.refused == []
    assert users.admitted > 10
    assert trusted(controlplane)


def test_a_tool_that_replaces_what_is_there_is_healed(
    controlplane: ControlPlane, users: Users
) -> None:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    manifest = rendered(controlplane, *kinds)
    assert "caBundle" not in manifest
    controlplane.kubectl("replace", "-f", "-", stdin=manifest)
    wait_until(lambda: trusted(controlplane), "every webhook to be trusted again", 10)
    wait_until(users.admits, "a Job to be admitted", 10)


def test_webhooks_that_were_taken_away_come_back_with_the_next_upgrade(
    controlplane: ControlPlane, users: Users
) -> None:
    controlplane.kubectl("delete", ",".join(KINDS), "-l", LABEL)
    assert configurations(controlplane) == []
    upgrade(controlplane)
    wait_until(lambda: trusted(controlplane), "every webhook to be trusted again", 10)
    wait_until(users.admits, "a Job to be admitted", 10)


def deleted(plane: ControlPlane, path: str, since: str) -> list[int]:
    """Moments, as revisions of the store, at which objects went since then."""
    query = f"watch=1&resourceVersion={since}&timeoutSeconds=1&labelSelector={LABEL}"
    answer = plane.request("GET", f"{path}?{query}")[1]
    # One event alone is read as the answer, several are no JSON.
    lines = [json.dumps(answer)] if "type" in answer else answer["message"].splitlines()
    events = [json.loads(line) for line in lines if line]
    gone = [each["object"] for each in events if each["type"] == "DELETED"]
    return [int(each["metadata"]["resourceVersion"]) for each in gone]


def test_uninstalled_with_jobs_present_it_leaves_a_working_cluster(
    controlplane: ControlPlane,
    users: Users,
    installation: Installation,
    namespace: str,
    add_node: Callable[..., str],
) -> None:
    add_node("last", "8")
    running = job("running", [task("w", 2, cpu="1")], plugins={"svc": []})
    waiting = job("waiting", [task("w", 2, cpu="100")])
    for manifest in (running, waiting):
        del manifest["metadata"]["namespace"]
        controlplane.kubectl("create", "-f", "-", stdin=json.dumps(manifest), namespace=namespace)
    phase = "--for=jsonpath={.status.state.phase}=Running"
    controlplane.kubectl("wait", "vcjob/running", phase, "--timeout=30s", namespace=namespace)
    since = controlplane.request("GET", f"{BATCH}/{namespace}/jobs")[1]["metadata"][
        "resourceVersion"
    ]

    controlplane.helm("uninstall", RELEASE, namespace=NAMESPACE)
    core, apps = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/apps/v1/namespaces/{NAMESPACE}"
    webhooks = [r for kind in KINDS for r in deleted(controlplane, f"{REGISTRATION}/{kind}", since)]
    answering = [
        *deleted(controlplane, f"{core}/services", since),
        *deleted(controlplane, f"{apps}/deployments", since),
    ]
    assert len(webhooks) >= 8
    assert len(answering) == 4
    assert max(webhooks) < min(answering), "a webhook was still asked when its Service was gone"
    for component in list(installation.processes):
        installation.stop(component)

    kinds = [*KINDS, "clusterroles", "clusterrolebindings", "roles", "rolebindings"]
    kinds += ["deployments", "services", "configmaps", "poddisruptionbudgets", "networkpolicies"]
    left = controlplane.kubectl("get", ",".join(kinds), "-A", "-l", LABEL, "-o", "name").stdout
    assert left == ""
    for path in (Path(CHART) / "crds").glob("*.yaml"):
        controlplane.kubectl("get", "crd", path.stem)

    # Jobs, and what is left of them, can be made, changed and deleted with nobody there.
    controlplane.kubectl("create", "-f", "-", stdin=json.dumps(bare("new")), namespace=namespace)
    change = '{"spec":{"maxRetry":7}}'
    controlplane.kubectl(
        "patch", "vcjob/waiting", "--type=merge", "-p", change, namespace=namespace
    )
    controlplane.kubectl("delete", "vcjob/running", "--timeout=20s", namespace=namespace)
    controlplane.remove_namespace(namespace)
    gone = f"/api/v1/namespaces/{namespace}"
    wait_until(lambda: controlplane.request("GET", gone)[0] == 404, f"{namespace} to be gone", 60)
