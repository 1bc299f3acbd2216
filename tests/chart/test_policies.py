"""Admission by policies: Helm makes of the generated drafts what Python makes of them, and calls nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.webhook.policies.chart import main
from pumice.webhook.policies.manifests import policies
from pumice.webhook.policies.mutations import mutations
from pumice.webhook.registrations import EXEMPT_NAMESPACES
from pumice.webhook.settings import AdmissionSettings
from tests.chart.manifests import CHART, NAMESPACE, RELEASE, Manifest, Render, Run

FILE = CHART / "files/policies.yaml"
LEVELS: dict[str, Any] = {
    "rules": {
        "JOB-REPLICAS": "enforce",
        "JOB-TOPO-BOTH": "off",
        "Q-NEG": "warn",
        "TPL-IMAGE": False,
    },
    "namespaces": {
        "test": {"JOB-NO-TASKS": "off", "JOB-REPLICAS": "warn"},
        "dev": {"JOB-NO-TASKS": "warn", "JOB-IMMUTABLE": False, "POD-JDB-INT": "warn"},
    },
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"strict-upstream": True},
    {"enable-queue-allocated-pods-check": True, "enable-root-queue-protection": False},
    LEVELS,
    {**LEVELS, "strict-upstream": True},
    {"rules": {"HN-REGEX": "warn"}},
    {"rules": {"JOB-IMMUTABLE": "off", "JOB-TASK-COUNT": "off"}},
]


def by_name(manifests: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Policies and bindings."""
    return {
        (each["kind"], each["metadata"]["name"]): each["spec"]
        for each in manifests
        if "AdmissionPolicy" in each["kind"]
    }


def test_the_committed_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(FILE)]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named_and_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policies.yaml"
    assert main(["--check", str(file)]) == 1
    assert str(file) in capsys.readouterr().err
    assert not file.exists()
    assert main([str(file)]) == 0
    assert file.read_text() == FILE.read_text()


@pytest.mark.binaries
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda found: " ".join(found) or "default")
def test_helm_makes_what_python_makes(
    render: Render, tmp_path: Path, settings: dict[str, Any]
) -> None:
    values = tmp_path / "values.yaml"
    whole = {
        "admission": {"mode": "policies", "jobPlugins": ["wandb"]},
        "schedulerName": "pumice",
        "webhook": {"settings": settings, "extraSchedulerNames": ["volcano"]},
    }
    values.write_text(yaml.safe_dump(whole))
    found = by_name(render(values))
    fields = {name.replace("-", "_"): value for name, value in settings.items()}
    read = AdmissionSettings(scheduler_names=("pumice", "volcano"), **fields)
    wanted = by_name([*policies(read, job_plugins=("wandb",)), *mutations(read)])
    assert sorted(found) == sorted(wanted)
    for name, spec in wanted.items():
        ours, theirs = ({**each, "matchConstraints": None} for each in (found[name], spec))
        assert ours == theirs, name


@pytest.mark.binaries
def test_namespaces_are_exempt_as_for_webhooks(render: Render, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    team = {"key": "team", "operator": "Exists"}
    webhook = {"namespaceSelectorExpressions": [team]}
    values.write_text(yaml.safe_dump({"admission": {"mode": "policies"}, "webhook": webhook}))
    for (kind, name), spec in by_name(render(values)).items():
        if kind.endswith("Binding") or "queues" in name or "hypernodes" in name:
            continue
        kept, own, further = spec["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert kept["values"] == list(EXEMPT_NAMESPACES)
        assert (own["operator"], own["values"]) == ("NotIn", [NAMESPACE])
        assert further == team


@pytest.mark.binaries
def test_nothing_is_called_and_nothing_runs_for_it(render: Render) -> None:
    found = render(None, "admission.mode=policies", "networkPolicy.enabled=true")
    for each in found:
        if "WebhookConfiguration" in each["kind"]:
            continue  # empty, as tests/chart/test_webhooks.py has it
        labels = each["metadata"].get("labels", {})
        assert labels.get("app.kubernetes.io/component") != "webhook", each["metadata"]["name"]
    assert {each["metadata"]["name"] for each in found if each["kind"] == "Deployment"} == {
        f"{RELEASE}-controller",
        f"{RELEASE}-scheduler",
    }


@pytest.mark.binaries
@pytest.mark.parametrize("settings", [(), ("admission.mode=policies", "webhook.enabled=false")])
def test_there_are_no_policies_unless_they_are_asked_for(
    render: Render, settings: tuple[str, ...]
) -> None:
    assert by_name(render(None, *settings)) == {}


@pytest.mark.binaries
def test_an_api_server_that_does_not_know_them_is_told_at_once(helm: Run) -> None:
    arguments = ("template", RELEASE, str(CHART), "--kube-version", "1.35.2")
    assert helm(*arguments).returncode == 0
    answer = helm(*arguments, "--set", "admission.mode=policies")
    assert answer.returncode != 0
    assert "admission.mode policies needs Kubernetes 1.36, found v1.35.2" in answer.stderr
