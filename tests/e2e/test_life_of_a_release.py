"""Upgrade, re-apply, rollback and uninstall of a release that works: Jobs come in all the while, and after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.users import (
    BATCH,
    CONFIGURATIONS,
    LABEL,
    REGISTRATION,
    Users,
    bare,
    configurations,
    deleted,
    manifests,
    trusted,
    upgrade,
)
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import CHART, NAMESPACE, RELEASE, Installation


def test_an_upgrade_and_a_rollback_refuse_no_request(
    controlplane: ControlPlane, users: Users
) -> None:
    before = controlplane.helm("history", RELEASE, "-o", "json", namespace=NAMESPACE).stdout
    revision = str(json.loads(before)[-1]["revision"])
    with users.busy():
        upgrade(controlplane, "webhook.replicas=3", "scheduler.replicas=2")
        upgrade(controlplane, "webhook.failurePolicy=Ignore")
        controlplane.helm("rollback", RELEASE, revision, namespace=NAMESPACE)
    users.noticed_nothing()
    assert users.undefaulted == 0
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
def test_a_reapply_by_gitops_refuses_no_request(
    controlplane: ControlPlane, users: Users, manner: list[str]
) -> None:
    manifest = manifests(controlplane)
    with users.busy():
        for _ in range(2):
            controlplane.kubectl("apply", *manner, "-f", "-", stdin=manifest)
    users.noticed_nothing()
    assert users.undefaulted == 0
    assert trusted(controlplane)


def test_a_tool_that_replaces_what_is_there_is_healed(
    controlplane: ControlPlane, users: Users
) -> None:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    manifest = manifests(controlplane, *kinds)
    assert "caBundle" not in manifest
    controlplane.kubectl("replace", "-f", "-", stdin=manifest)
    wait_until(lambda: trusted(controlplane), "every webhook to be trusted again", 60)
    wait_until(users.defaulted, "a Job to be admitted", 60)


def test_webhooks_that_were_taken_away_come_back_with_the_next_upgrade(
    controlplane: ControlPlane, users: Users
) -> None:
    controlplane.kubectl("delete", ",".join(CONFIGURATIONS), "-l", LABEL)
    assert configurations(controlplane) == []
    upgrade(controlplane)
    wait_until(lambda: trusted(controlplane), "every webhook to be trusted again", 60)
    wait_until(users.defaulted, "a Job to be admitted", 60)


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
    webhooks = [
        r for kind in CONFIGURATIONS for r in deleted(controlplane, f"{REGISTRATION}/{kind}", since)
    ]
    answering = [
        *deleted(controlplane, f"{core}/services", since),
        *deleted(controlplane, f"{apps}/deployments", since),
    ]
    assert len(webhooks) >= 8
    assert len(answering) == 4
    assert max(webhooks) < min(answering), "a webhook was still asked when its Service was gone"
    for component in list(installation.processes):
        installation.stop(component)

    kinds = [*CONFIGURATIONS, "clusterroles", "clusterrolebindings", "roles", "rolebindings"]
    kinds += ["deployments", "services", "configmaps", "poddisruptionbudgets", "networkpolicies"]
    kinds += ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
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
