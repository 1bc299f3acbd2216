"""Values are checked before anything is installed, and a mistake is named with its path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.manifests import CHART, Run

pytestmark = pytest.mark.binaries

GROUP = "webhook.resourceGroups[0].object"
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
    ("scheduler.config.action=x", "at '/scheduler/config': missing property 'actions'"),
    ("scheduler.config[0]=x", "at '/scheduler/config': got array, want string or object"),
    ("controller.config.networkTopologyDiscovry[0]=x", "'networkTopologyDiscovry' not allowed"),
    ("pluginSettings.wait-resources.limts.cpu=1", "additional properties 'limts' not allowed"),
    ("pluginSettings.wait-security-context.runAsUser=x", "got string, want integer"),
    ("schedulerName=it's", "at '/schedulerName'"),
    ("webhook.secretName=A_B", "at '/webhook/secretName'"),
    ("webhook.certificates.issuerRef.name=A B", "at '/webhook/certificates/issuerRef/name'"),
    ("image.tag=a b", "at '/image/tag'"),
    ("image.tag=1.2.3@sha256:0", "at '/image/tag'"),
    ("image.repository=a b", "at '/image/repository'"),
    ("image.registry=registry.example.com/", "at '/image/registry'"),
    ("image.digest=sha256:7c61", "at '/image/digest'"),
    ("logLevel=trace", "at '/logLevel': value must be one of 'debug'"),
    ("commonLabels.team=a b", "at '/commonLabels/team'"),
    ("podSecurityContext.runAsUsr=1", "additional properties 'runAsUsr' not allowed"),
    ("podSecurityContext.runAsUser=root", "at '/podSecurityContext/runAsUser'"),
    ("securityContext.capabilities.drop=ALL", "at '/securityContext/capabilities/drop'"),
    ("webhook.extraArgs=--help", "at '/webhook/extraArgs': got string, want array"),
    ("webhook.env[0].value=a", "at '/webhook/env/0': missing property 'name'"),
    ("scheduler.env.A=b", "at '/scheduler/env': got object, want array"),
    ("scheduler.serviceAccount.annotation.a=b", "additional properties 'annotation' not allowed"),
    ("monitoring.interval=30", "at '/monitoring/interval'"),
    ("monitoring=null", "at '': missing property 'monitoring'"),
    ("webhook.serviceAccount=null", "at '/webhook': missing property 'serviceAccount'"),
    (
        "commonLabels.app\\.kubernetes\\.io/name=a",
        "commonLabels: the chart sets the label app.kubernetes.io/name itself; remove it",
    ),
    (
        "scheduler.podLabels.pumice\\.dev/namespace=a",
        "scheduler.podLabels: the chart sets the label pumice.dev/namespace itself; remove it",
    ),
    (
        "monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true",
        "are both enabled, so that all pods would be scraped twice; enable one of them",
    ),
    (
        "monitoring.podMonitor.enabled=true,networkPolicy.enabled=true",
        "networkPolicy.metricsFrom is empty, so that no Prometheus could scrape the pods",
    ),
    ("controller.priorityClassName=A B", "at '/controller/priorityClassName'"),
    ("imagePullSecrets={A B}", "at '/imagePullSecrets/0'"),
    ("admission.jobPlugins={it's}", "at '/admission/jobPlugins/0'"),
    ("webhook.nodeSelector.a=b/c d", "at '/webhook/nodeSelector/a'"),
    ("webhook.podAnnotations.a b=c", "additional properties 'a b' not allowed"),
    ("webhook.namespaceSelectorExpressions[0].key=a b", "namespaceSelectorExpressions/0/key'"),
    (f"{GROUP}=namespace", "at '/webhook/resourceGroups/0/object': got string, want object"),
    (f"{GROUP}.key=namespace,{GROUP}.value=foo", "/0/object/value': got string, want array"),
    (f"{GROUP}.key=namespac", "value must be one of 'namespace', 'annotation', ''"),
    (
        f"{GROUP}.key=namespace,{GROUP}.value={{a'b}}",
        "at '/webhook/resourceGroups/0/object/value/0'",
    ),
    (f"{GROUP}.value={{gpu}}", "at '/webhook/resourceGroups/0/object/value/0'"),
    (f"{GROUP}.value={{a: b: c}}", '"a: b: c" is no annotation such as "key: value"'),
    (f"{GROUP}.value[0].a'b=c", "additional properties 'a\\'b' not allowed"),
    ("webhook.resourceGroups[0].lables.a=b", "additional properties 'lables' not allowed"),
    (
        "webhook.resources.limits.memory=95Mi",
        "webhook.resources: the limit of memory is 95Mi, less than the request of 96Mi",
    ),
    (
        "scheduler.resources.limits.cpu=0.1",
        "the limit of cpu is 0.1, less than the request of 200m",
    ),
    (
        "webhook.certificates.mode=cert-manager,webhook.certificates.duration=1h",
        "webhook.certificates.renewBefore is 720h: must be less than the duration, 1h",
    ),
    (
        "controller.config=a,rbac.namespaces={research}",
        "controller.config has no effect with rbac.namespaces",
    ),
    ("webhook.replicas=0", "with webhook.failurePolicy Fail every new Job would be refused"),
    ("webhook.port=8080", "webhook.port and webhook.metricsPort are both 8080"),
    ("fullnameOverride=Batch", "at '/fullnameOverride'"),
    ("image.pullPolicy=Often", "at '/image/pullPolicy': value must be one of"),
    ("networkPolicy.apiServerPorts=null,networkPolicy.metricsFrom[0].podSelecto=x", "podSelecto"),
]


@pytest.mark.parametrize(("setting", "message"), REFUSED, ids=[each for each, _ in REFUSED])
def test_a_mistake_is_refused_with_its_path(helm: Run, setting: str, message: str) -> None:
    answer = helm("template", "pumice", str(CHART), "--set", setting)
    assert answer.returncode == 1
    assert message in answer.stderr


@pytest.mark.parametrize(
    "setting",
    [
        "webhook.replicas=0,webhook.failurePolicy=Ignore",
        "webhook.replicas=0,webhook.url=https://192.0.2.1",
        "webhook.replicas=0,webhook.enabled=false",
        "webhook.resources.limits.memory=96Mi",
        "webhook.resources.limits.memory=100663296",
        "webhook.resources.limits.memory=1e9",
        "webhook.resources.limits.cpu=0.1",
        "webhook.resources.requests.memory=null",
        f"{GROUP}.value={{team: a}}",
        f'{GROUP}.value={{"team": a}}',
        f"{GROUP}.value[0].example\\.com/team=a",
        f"{GROUP}.key=namespace,{GROUP}.value={{a,b}}",
        "image.tag=1.2.3,image.repository=registry.example.com:5000/a/b",
    ],
)
def test_what_can_work_is_accepted(helm: Run, setting: str) -> None:
    answer = helm("template", "pumice", str(CHART), "--set", setting)
    assert answer.returncode == 0, answer.stderr


AMOUNTS = ("1", "100m", "0.5", "1.5Gi", "1e3", "500k", "128Mi")


def test_quantities_are_what_kubernetes_takes_for_them(helm: Run) -> None:
    limits = "webhook.resources.limits.example\\.com/"
    numbers = ",".join(f"{limits}n{place}={each}" for place, each in enumerate(AMOUNTS))
    texts = ",".join(f"{limits}t{place}={each}" for place, each in enumerate(AMOUNTS))
    answer = helm("template", "pumice", str(CHART), "--set", numbers, "--set-string", texts)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("example.com/") == 2 * len(AMOUNTS)


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
