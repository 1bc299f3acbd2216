"""The arguments that the chart gives to the components are ones that they understand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from pumice.cli.app import app
from pumice.plugins import PluginSettings
from pumice.webhook.settings import AdmissionSettings
from tests.chart.manifests import (
    NAMESPACE,
    RELEASE,
    Manifest,
    Render,
    arguments_of,
    of_kind,
    one,
)

pytestmark = pytest.mark.binaries


def parsed(arguments: list[str]) -> Any:
    """The context of a verb after its arguments were read, before it does anything.

    Components pass over flags that they do not know, because Volcano's charts give some; `args` of
    the context holds them.
    """
    verb, *rest = arguments
    commands: Any = typer.main.get_command(app)
    return commands.commands[verb].make_context(verb, list(rest))


def test_every_argument_is_understood(manifests: list[Manifest]) -> None:
    for deployment in of_kind(manifests, "Deployment"):
        arguments = arguments_of(deployment)
        assert parsed(arguments).args == [], arguments


def test_a_flag_that_does_not_exist_would_be_noticed() -> None:
    assert parsed(["controller", "--leader-elekt"]).args == ["--leader-elekt"]


def test_controller_and_webhook_allow_jobs_the_same_number_of_pods(render: Render) -> None:
    manifests = render(None, "webhook.settings.max-pods-per-job=2000000")
    controller = parsed(arguments_of(one(manifests, "Deployment", "controller"))).params
    assert controller["max_pods_per_job"] == 2_000_000
    webhook = parsed(arguments_of(one(manifests, "Deployment", "webhook"))).params
    settings = AdmissionSettings.from_assignments(webhook["settings"])
    assert settings.max_pods_per_job == 2_000_000


def test_controller_and_webhook_wire_pods_by_the_same_settings(render: Render) -> None:
    manifests = render(
        None,
        "pluginSettings.wait-image=mine:1",
        "pluginSettings.wait-resources.limits.cpu=1",
        "pluginSettings.strict-upstream=true",
    )
    expected = PluginSettings(
        wait_image="mine:1", wait_resources={"limits": {"cpu": 1}}, strict_upstream=True
    )
    for component, option in (("controller", "settings"), ("webhook", "plugin_assignments")):
        given = parsed(arguments_of(one(manifests, "Deployment", component))).params[option]
        assert PluginSettings.from_assignments(given) == expected


def test_the_webhook_accepts_its_settings(manifests: list[Manifest]) -> None:
    given = parsed(arguments_of(one(manifests, "Deployment", "webhook"))).params["settings"]
    AdmissionSettings.from_assignments(given or ())


def test_levels_of_rules_reach_the_webhook(render: Render, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    # Words of YAML's own: off is false there.
    values.write_text(
        "webhook: {settings: {rules: {JOB-ZERO: off, Q-NEG: warn}, namespaces: {dev: "
        '{JOB-ZERO: enforce, JOB-NAME: "off"}, prod: {}}, max-queue-depth: 3}}'
    )
    given = parsed(arguments_of(one(render(values), "Deployment", "webhook"))).params["settings"]
    settings = AdmissionSettings.from_assignments(given)
    assert settings.max_queue_depth == 3
    assert settings.rules == {"JOB-ZERO": "off", "Q-NEG": "warn"}
    assert settings.namespaces == {"dev": {"JOB-ZERO": "enforce", "JOB-NAME": "off"}}


def test_the_webhook_makes_certificates_for_the_address_that_is_called(render: Render) -> None:
    def given(*settings: str) -> Any:
        return parsed(arguments_of(one(render(None, *settings), "Deployment", "webhook"))).params

    inside = given()
    assert (inside["service"], inside["namespace"]) == (f"{RELEASE}-webhook", NAMESPACE)
    assert inside["secret"] == f"{RELEASE}-webhook-certs"
    assert inside["url"] is None
    assert given("webhook.url=https://192.0.2.1:8443")["url"] == "https://192.0.2.1:8443"


def test_the_scheduler_takes_the_gates_away_that_admission_adds(render: Render) -> None:
    def given(*settings: str) -> Any:
        return parsed(arguments_of(one(render(None, *settings), "Deployment", "scheduler"))).params

    gates = "SchedulingGatesQueueAdmission=true"
    assert given()["feature_gates"] == ""
    assert given("webhook.settings.scheduling-gates-queue-admission=true")["feature_gates"] == gates


def test_the_lease_lives_in_the_releases_namespace(render: Render) -> None:
    for name in ("controller", "scheduler"):
        deployment = one(render(), "Deployment", name)
        given = parsed(arguments_of(deployment)).params
        assert given["leader_elect"] is True
        assert given["lease_namespace"] == deployment["metadata"]["namespace"]
