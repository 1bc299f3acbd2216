"""Values are checked before anything is installed, and a mistake is named with its path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.manifests import CHART, VALUES, Run

pytestmark = pytest.mark.controlplane

REFUSED = [
    ("webhook.replica=3", "at '/webhook': additional properties 'replica' not allowed"),
    ("webhok.replicas=3", "at '': additional properties 'webhok' not allowed"),
    ("webhook.replicas=two", "at '/webhook/replicas': got string, want integer"),
    ("webhook.enabled=1", "at '/webhook/enabled': got number, want boolean"),
    ("webhook.port=0", "at '/webhook/port': minimum: got 0, want 1"),
    ("scheduler.metricsPort=65536", "at '/scheduler/metricsPort': maximum: got 65,536"),
    ("webhook.failurePolicy=Maybe", "at '/webhook/failurePolicy': value must be one of"),
    ("webhook.url=http://192.0.2.1", "at '/webhook/url'"),
    ("webhook.drainSeconds=-1", "at '/webhook/drainSeconds': minimum"),
    ("webhook.settings.max-queue-dept=3", "additional properties 'max-queue-dept' not allowed"),
    ("webhook.settings.max-queue-depth=0", "at '/webhook/settings/max-queue-depth': minimum"),
    ("webhook.settings.strict-upstream=1", "got number, want boolean"),
    (
        "webhook.settings.rules.JOB-NAM=off",
        "at '/webhook/settings/rules': additional properties 'JOB-NAM' not allowed",
    ),
    (
        "webhook.settings.rules.JOB-NAME=true",
        "/JOB-NAME': value must be one of 'enforce', 'warn', 'off', false",
    ),
    (
        "webhook.settings.namespaces.dev.Q-NEG=off",
        "at '/webhook/settings/namespaces/dev': additional properties 'Q-NEG' not allowed",
    ),
    (
        "webhook.settings.namespaces.Dev.JOB-NAME=off",
        "at '/webhook/settings/namespaces': additional properties 'Dev' not allowed",
    ),
    ("webhook.resources.limits.memory=lots", "at '/webhook/resources/limits/memory'"),
    ("webhook.resources.limit.memory=1Gi", "additional properties 'limit' not allowed"),
    ("controller.tolerations[0].effct=NoSchedule", "at '/controller/tolerations/0'"),
    ("controller.nodeSelector.gpu=true", "at '/controller/nodeSelector/gpu': got boolean"),
    ("scheduler.affinity.nodeAfinity.x=1", "additional properties 'nodeAfinity' not allowed"),
    ("scheduler.config.actions=x", "at '/scheduler/config': got object, want string"),
    ("schedulerName=it's", "at '/schedulerName'"),
    ("fullnameOverride=Batch", "at '/fullnameOverride'"),
    ("image.pullPolicy=Often", "at '/image/pullPolicy': value must be one of"),
    ("networkPolicy.apiServerPorts=null,networkPolicy.metricsFrom[0].podSelecto=x", "podSelecto"),
]


@pytest.mark.parametrize(("setting", "message"), REFUSED, ids=[each for each, _ in REFUSED])
def test_a_mistake_is_refused_with_its_path(helm: Run, setting: str, message: str) -> None:
    answer = helm("template", "pumice", str(CHART), "--set", setting)
    assert answer.returncode == 1
    assert message in answer.stderr


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_the_values_files_of_the_chart_are_accepted(helm: Run, path: Path) -> None:
    answer = helm("template", "pumice", str(CHART), "--values", str(path))
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("amount", ["1", "100m", "0.5", "1.5Gi", "1e3", "500k", "128Mi"])
def test_quantities_are_what_kubernetes_takes_for_them(helm: Run, amount: str) -> None:
    setting = f"webhook.resources.limits.memory={amount}"
    assert helm("template", "pumice", str(CHART), "--set", setting).returncode == 0
    assert helm("template", "pumice", str(CHART), "--set-string", setting).returncode == 0


def test_the_chart_can_be_part_of_another(helm: Run, tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/pumice").symlink_to(CHART)
    chart = {"apiVersion": "v2", "name": "whole", "version": "0.1.0"}
    (tmp_path / "Chart.yaml").write_text(json.dumps(chart))
    values = {"global": {"registry": "example.com"}, "pumice": {"webhook": {"replicas": 4}}}
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    answer = helm("template", "whole", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert "replicas: 4" in answer.stdout
