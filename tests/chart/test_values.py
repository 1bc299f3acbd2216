"""What single values do to the manifests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.chart.manifests import (
    CHART,
    MONITORING,
    NAMESPACE,
    RELEASE,
    Manifest,
    Render,
    Run,
    arguments_of,
    component,
    of_kind,
    one,
)
from tests.chart.test_arguments import parsed
from tests.kit.tables import documents, table
from tools.dashboard import dashboard

pytestmark = pytest.mark.binaries

ROWS = table("chart/values")


def at(manifest: Any, path: str) -> Any:
    """What stands at a path; None where nothing does."""
    for step in path.split("."):
        found = manifest or {}
        manifest = found[int(step)] if isinstance(found, list) else found.get(step)
    return manifest


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_value_does_what_it_says(helm: Run, row: dict[str, Any]) -> None:
    sets = [word for each in row["set"] for word in ("--set", each)]
    namespace = row.get("namespace", NAMESPACE)
    answer = helm("template", RELEASE, str(CHART), "--namespace", namespace, *sets)
    assert answer.returncode == 0, answer.stderr
    found: list[Manifest] = documents(answer.stdout)
    if row["kind"] != "all":
        kinds = [row["kind"]] if isinstance(row["kind"], str) else row["kind"]
        found = of_kind(found, *kinds)
    found = [each for each in found if row.get("of") in (None, component(each))]
    assert len(found) == row["count"] if "count" in row else found
    for each in found:
        value = at(each, row["path"])
        what = f"{each['kind']} {each['metadata']['name']}"
        if isinstance(row["is"], list):
            assert [item for item in row["is"] if item not in (value or [])] == [], what
        else:
            assert value == row["is"], what


def test_the_last_arguments_count(render: Render) -> None:
    manifests = render(None, "logLevel=warning", "webhook.extraArgs={--log-level=debug}")
    levels = {
        name: parsed(arguments_of(one(manifests, "Deployment", name))).params["log_level"]
        for name in ("webhook", "scheduler")
    }
    assert levels == {"webhook": "debug", "scheduler": "warning"}


def alerts(render: Render, *settings: str) -> dict[str, str]:
    """The expressions of the alerts by name."""
    rules = render(None, "monitoring.prometheusRule.enabled=true", *settings)
    (rule,) = of_kind(rules, "PrometheusRule")
    return {
        alert["alert"]: alert["expr"]
        for group in rule["spec"]["groups"]
        for alert in group["rules"]
    }


def test_alerts_follow_the_values(render: Render) -> None:
    usual = alerts(render)
    assert "$" not in " ".join(usual.values())
    assert usual["PumiceCertificateExpiring"].endswith("< 864000")
    assert usual["PumiceControllerNotLeading"].endswith("< 1")
    # One controller in each namespace, and a certificate that lasts for less than ten days.
    named = alerts(
        render,
        "rbac.namespaces={research,vision}",
        "webhook.certificates.mode=cert-manager",
        "webhook.certificates.duration=48h",
        "webhook.certificates.renewBefore=24h",
    )
    assert named["PumiceCertificateExpiring"].endswith("< 86400")
    assert named["PumiceControllerNotLeading"].endswith("< 2")


def test_there_are_no_alerts_on_components_that_are_not_installed(render: Render) -> None:
    found = alerts(render, "admission.mode=policies", "scheduler.enabled=false")
    assert list(found) == ["PumiceControllerNotLeading", "PumiceObjectsSetAside"]


def test_every_pod_has_the_port_that_is_scraped(render: Render) -> None:
    manifests = render(None, "monitoring.serviceMonitor.enabled=true", "scheduler.metricsPort=9090")
    (monitor,) = of_kind(manifests, "ServiceMonitor")
    service = one(manifests, "Service", MONITORING)
    labels = service["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    # The Service of the webhook has none of these metrics.
    (picked,) = (
        each
        for each in of_kind(manifests, "Service")
        if monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
    )
    assert picked == service
    (port,) = service["spec"]["ports"]
    assert port["name"] == monitor["spec"]["endpoints"][0]["port"]
    for each in of_kind(manifests, "Deployment"):
        ports = {
            port["name"] for port in each["spec"]["template"]["spec"]["containers"][0]["ports"]
        }
        assert port["targetPort"] in ports


def test_the_dashboard_arrives_as_it_was_written(render: Render) -> None:
    config = one(render(None, "monitoring.dashboard.enabled=true"), "ConfigMap", MONITORING)
    assert json.loads(config["data"]["pumice.json"]) == dashboard()
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)
