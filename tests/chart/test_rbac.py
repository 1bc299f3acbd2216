"""What each component may do: what it needs and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.controller.loop.settings import ControllerSettings
from pumice.scheduler.worker.settings import WorkerSettings
from tests.chart.manifests import Manifest, Render, component, of_kind

pytestmark = pytest.mark.binaries

READING = {"get", "list", "watch"}
VERBS = READING | {"create", "update", "patch", "delete"}

LEASES = {
    "controller": ControllerSettings().lease_name,
    "scheduler": WorkerSettings().lease_name,
}
MAY_WRITE = {
    "webhook": {
        "secrets",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    },
    "controller": {
        "jobs",
        "jobs/status",
        "jobs/finalizers",
        "jobsets/finalizers",
        "leaderworkersets/finalizers",
        "commands",
        "podgroups",
        "queues/status",
        "pods",
        "services",
        "configmaps",
        "secrets",
        "networkpolicies",
        "persistentvolumeclaims",
        "events",
        "leases",
    },
    "scheduler": {
        "podgroups",
        "queues",
        "pods/binding",
        "pods/eviction",
        "pods/status",
        "events",
        "leases",
    },
}


def rules(manifests: list[Manifest], *kinds: str) -> Iterator[tuple[str, Manifest]]:
    for each in of_kind(manifests, *(kinds or ("Role", "ClusterRole"))):
        for rule in each["rules"]:
            yield component(each), rule


def test_no_rule_is_a_wildcard_or_a_way_to_more_rights(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}, name
        for field, values in rule.items():
            assert "*" not in "".join(values), f"{name}: {field} {values}"
        assert set(rule["verbs"]) <= VERBS, name
        assert "rbac.authorization.k8s.io" not in rule["apiGroups"], name


def test_each_component_writes_its_own_things_only(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        if set(rule["verbs"]) - READING:
            assert set(rule["resources"]) <= MAY_WRITE[name], name


def test_the_webhook_reads_and_changes_one_secret(render: Render) -> None:
    for settings, secret in (
        ((), "pumice-webhook-certs"),
        (("webhook.secretName=batch-ca",), "batch-ca"),
    ):
        manifests = render(None, *settings)
        found = [(name, rule) for name, rule in rules(manifests) if "secrets" in rule["resources"]]
        own = [rule for name, rule in found if name == "webhook"]
        assert [rule for name, rule in rules(manifests, "Role") if rule in own] == own
        for rule in own:
            assert rule["resources"] == ["secrets"]
            # Nobody can say beforehand what something that is created will be called.
            bound = rule.get("resourceNames") == [secret]
            assert bound or rule["verbs"] == ["create"]
        assert any(rule.get("resourceNames") == [secret] for rule in own)


def test_the_webhook_changes_its_own_configurations_only(render: Render) -> None:
    manifests = render()
    allowed = {
        (resource, name)
        for component_, rule in rules(manifests)
        if component_ == "webhook" and "admissionregistration.k8s.io" in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule["resourceNames"]
    }
    made = {
        (f"{each['kind'].lower()}s", each["metadata"]["name"])
        for each in of_kind(
            manifests, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
        )
    }
    assert allowed == made


def test_only_the_controller_sees_the_secrets_of_users(manifests: list[Manifest]) -> None:
    seeing = {
        name for name, rule in rules(manifests, "ClusterRole") if "secrets" in rule["resources"]
    }
    assert seeing <= {"controller"}


def test_a_lease_is_bound_to_its_name(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        if "leases" in rule["resources"]:
            bound = rule.get("resourceNames") == [LEASES[name]]
            assert bound or rule["verbs"] == ["create"]
    assert not [
        rule for _, rule in rules(manifests, "ClusterRole") if "leases" in rule["resources"]
    ]
