"""Upgrade, roll back, switch a component off: no step undoes what runs, or touches what belongs to others.

What an uninstalled release leaves behind, `tests/e2e/test_life_of_a_release.py` asserts.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.manifests import CHART, RELEASE, Manifest
from tests.support.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane

NOBODY = "https://127.0.0.1:9"
CA_BUNDLE = base64.b64encode(
    b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
).decode()
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{WEBHOOKS}/mutatingwebhookconfigurations"


@pytest.fixture
def home(controlplane: ControlPlane, namespace: str) -> Iterator[str]:
    """Namespace of a release that is gone after the test, whatever the test did."""
    yield namespace
    controlplane.helm("uninstall", RELEASE, "--ignore-not-found", namespace=namespace)


def install(plane: ControlPlane, home: str, verb: str, *settings: str) -> None:
    """Install or upgrade, with webhooks that concern nobody's namespace."""
    only = "webhook.namespaceSelectorExpressions[0]"
    sets = [f"webhook.url={NOBODY}", f"{only}.key=nobody", f"{only}.operator=Exists", *settings]
    arguments = [word for each in sets for word in ("--set", each)]
    # What tests/chart/installed installs is validated.
    unasked = "--disable-openapi-validation"
    plane.helm(verb, RELEASE, str(CHART), *arguments, unasked, namespace=home)


def configuration(plane: ControlPlane, endpoint: str) -> Manifest:
    status, found = plane.request("GET", f"{MUTATING}/volcano-admission-service-{endpoint}")
    assert status == 200, found
    return found


def ca_bundle(plane: ControlPlane, endpoint: str) -> Any:
    (webhook,) = configuration(plane, endpoint)["webhooks"]
    return webhook["clientConfig"].get("caBundle")


def inject(plane: ControlPlane, endpoint: str) -> None:
    """Do what the running webhook does: patch `caBundle` into its configuration."""
    name = f"volcano-admission-service-{endpoint}"
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA_BUNDLE}]
    status, answer = plane.request(
        "PATCH", f"{MUTATING}/{name}", patch, content_type="application/json-patch+json"
    )
    assert status == 200, answer


def left_over(plane: ControlPlane, *kinds: str) -> list[str]:
    """What the cluster holds of these kinds with the release's label."""
    label = f"app.kubernetes.io/instance={RELEASE}"
    return plane.kubectl("get", ",".join(kinds), "-A", "-l", label, "-o", "name").stdout.split()


def test_upgrade_rollback_and_reapply_keep_the_injected_certificate_authority(
    controlplane: ControlPlane, home: str
) -> None:
    endpoints = ("jobs-mutate", "queues-mutate", "podgroups-mutate")

    def policies() -> set[str]:
        """Failure policies, once each webhook has been seen to have its authority."""
        assert [ca_bundle(controlplane, each) for each in endpoints] == [CA_BUNDLE] * 3
        found = [configuration(controlplane, each)["webhooks"] for each in endpoints]
        return {webhook["failurePolicy"] for (webhook,) in found}

    install(controlplane, home, "install")
    for each in endpoints:
        assert ca_bundle(controlplane, each) is None
        inject(controlplane, each)

    install(controlplane, home, "upgrade", "webhook.replicas=3", "webhook.failurePolicy=Ignore")
    assert policies() == {"Ignore"}
    path = f"/apis/apps/v1/namespaces/{home}/deployments/pumice-webhook"
    assert controlplane.request("GET", path)[1]["spec"]["replicas"] == 3

    controlplane.helm("rollback", RELEASE, "1", namespace=home)
    assert policies() == {"Fail"}

    manifest = controlplane.helm("get", "manifest", RELEASE, namespace=home).stdout
    for manner in (["--server-side", "--force-conflicts", "--field-manager=gitops"], []):
        controlplane.kubectl("apply", *manner, "-f", "-", stdin=manifest)
        assert policies() == {"Fail"}


def test_a_component_can_be_switched_off_and_on_again(
    controlplane: ControlPlane, home: str
) -> None:
    install(controlplane, home, "install")
    install(controlplane, home, "upgrade", "webhook.enabled=false")
    assert not configuration(controlplane, "jobs-mutate").get("webhooks")
    left = left_over(controlplane, "services", "deployments", "clusterroles")
    assert [each for each in left if each.endswith("pumice-webhook")] == []
    install(controlplane, home, "upgrade")
    assert configuration(controlplane, "jobs-mutate")


@pytest.mark.parametrize("setting", ["admission.mode=policies", "webhook.enabled=false"])
def test_without_a_webhook_it_leaves_the_admission_of_others_alone(
    controlplane: ControlPlane, home: str, setting: str
) -> None:
    name = "volcano-admission-service-jobs-mutate"
    theirs = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "theirs.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": NOBODY},
                "sideEffects": "None",
            }
        ],
    }
    try:
        assert controlplane.request("POST", MUTATING, theirs)[0] == 201
        install(controlplane, home, "install", setting)
        install(controlplane, home, "upgrade", setting)
        controlplane.helm("uninstall", RELEASE, namespace=home)
        (webhook,) = configuration(controlplane, "jobs-mutate")["webhooks"]
        assert webhook["name"] == "theirs.example.com"
    finally:
        controlplane.request("DELETE", f"{MUTATING}/{name}")
