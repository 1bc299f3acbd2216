"""What the chart renders, whatever the values: complete, consistent, and no more than needed."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import pumice
from pumice.cli.controller import discovery_of
from pumice.scheduler.config import DEFAULT
from tests.chart.manifests import (
    AGGREGATE,
    CHART,
    COMPONENTS,
    MONITORING,
    NAMESPACE,
    RELEASE,
    USERS,
    VALUES,
    Manifest,
    Render,
    Run,
    arguments_of,
    component,
    containers,
    of_kind,
    one,
)

pytestmark = pytest.mark.binaries

NAMED = "research"
"""The namespace that `ci/named-namespaces-values.yaml` names."""
CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
ENABLED = [
    pytest.param(path, name, id=f"{path.stem.removesuffix('-values')}-{name}")
    for path in VALUES
    for name in COMPONENTS
    if (yaml.safe_load(path.read_text()).get(name) or {}).get("enabled", True)
]


def test_helm_finds_no_fault_with_it(helm: Run) -> None:
    files = [word for path in VALUES for word in ("--values", str(path))]
    for arguments in ([], *(["--values", str(path)] for path in VALUES), files):
        answer = helm("lint", "--strict", str(CHART), *arguments)
        assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_package_holds_what_is_rendered_from_and_no_values_of_tests(
    helm: Run, tmp_path: Path
) -> None:
    answer = helm("package", str(CHART), "--destination", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    with tarfile.open(tmp_path / f"pumice-{pumice.__version__}.tgz") as archive:
        held = {name.removeprefix("pumice/") for name in archive.getnames()}
    assert {"values.schema.json", "README.md", "files/webhooks.yaml"} <= held
    assert {f"crds/{path.name}" for path in (CHART / "crds").iterdir()} <= held
    assert not [name for name in held if name.startswith("ci/")]


def test_it_carries_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (pumice.__version__, pumice.__version__)


def test_every_object_is_labelled_and_has_its_place(manifests: list[Manifest]) -> None:
    for each in manifests:
        metadata = each["metadata"]
        what = f"{each['kind']} {metadata['name']}"
        labels = {key.removeprefix("app.kubernetes.io/") for key in metadata["labels"]}
        wanted = {"name", "instance", "component", "version", "managed-by", "helm.sh/chart"}
        if component(each) == MONITORING:
            labels -= {"release", "grafana_dashboard"}
        if component(each) == USERS:
            labels -= {f"{AGGREGATE}{role}" for role in ("view", "edit", "admin")}
        assert labels == wanted, what
        assert component(each) in (*COMPONENTS, MONITORING, USERS), what
        namespace = None if each["kind"] in CLUSTER_WIDE else NAMESPACE
        if metadata.get("namespace") == NAMED:
            assert each["kind"] in ("Role", "RoleBinding"), what
            namespace = NAMED
        assert metadata.get("namespace") == namespace, what


def test_no_two_objects_are_the_same(manifests: list[Manifest]) -> None:
    names = Counter((each["kind"], each["metadata"]["name"]) for each in manifests)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("off", COMPONENTS)
def test_a_component_that_is_off_leaves_nothing_behind(render: Render, off: str) -> None:
    left = {
        component(each)
        for each in render(None, f"{off}.enabled=false")
        # These stay, with nothing in them.
        if off != "webhook" or "WebhookConfiguration" not in each["kind"]
    }
    assert left == {*COMPONENTS, USERS} - {off}


def test_the_default_is_two_webhooks_one_controller_and_one_scheduler(render: Render) -> None:
    replicas = {
        component(each): each["spec"]["replicas"] for each in of_kind(render(), "Deployment")
    }
    assert replicas == {"webhook": 2, "controller": 1, "scheduler": 1}


def test_selectors_pick_the_pods_of_their_component_alone(manifests: list[Manifest]) -> None:
    pods = {
        component(each): each["spec"]["template"]["metadata"]["labels"]
        for each in of_kind(manifests, "Deployment")
    }
    for each in of_kind(manifests, "Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"):
        selector = each["spec"].get("selector", each["spec"].get("podSelector"))
        labels = selector.get("matchLabels", selector)
        picked = [name for name, had in pods.items() if labels.items() <= had.items()]
        wanted = list(pods) if component(each) == MONITORING else [component(each)]
        assert picked == wanted, each["kind"]


def test_what_an_object_refers_to_exists(manifests: list[Manifest]) -> None:
    known = {(each["kind"], each["metadata"]["name"]) for each in manifests}
    for each in of_kind(manifests, "Deployment"):
        spec = each["spec"]["template"]["spec"]
        assert ("ServiceAccount", spec["serviceAccountName"]) in known
        volumes = {volume["name"] for volume in spec["volumes"]}
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in known
        (container,) = spec["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        ports = {port["name"] for port in container["ports"]}
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] in ports
    for each in of_kind(manifests, "RoleBinding", "ClusterRoleBinding"):
        assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in known
        for subject in each["subjects"]:
            assert (subject["kind"], subject["name"]) in known
            assert subject["namespace"] == NAMESPACE


def test_the_service_leads_to_a_port_that_the_webhook_opens(render: Render) -> None:
    manifests = render(None, "webhook.port=9443")
    (service,) = of_kind(manifests, "Service")
    (target,) = (port["targetPort"] for port in service["spec"]["ports"])
    deployment = one(manifests, "Deployment", "webhook")
    ports = {port["name"]: port["containerPort"] for port in containers(deployment)[0]["ports"]}
    assert ports[target] == 9443
    assert "--port=9443" in arguments_of(deployment)


def test_pods_meet_the_restricted_standard_and_write_nowhere(manifests: list[Manifest]) -> None:
    for each in of_kind(manifests, "Deployment"):
        spec = each["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        # Without one the image's own user is taken, or that of OpenShift's namespace.
        assert spec["securityContext"].get("runAsUser", 65532) > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for volume in spec["volumes"]:
            (source,) = volume.keys() - {"name"}
            assert source in {"emptyDir", "configMap", "secret"}
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "cpu" in container["resources"]["requests"]


def test_every_pod_is_probed(manifests: list[Manifest]) -> None:
    for each in of_kind(manifests, "Deployment"):
        (container,) = containers(each)
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_a_webhook_without_a_certificate_is_not_started_anew(manifests: list[Manifest]) -> None:
    """It gets one from the API server, however long that is away; whether it is ready is asked as the API server asks."""
    for each in of_kind(manifests, "Deployment"):
        if component(each) == "webhook":
            (container,) = containers(each)
            for probe in ("startupProbe", "livenessProbe"):
                assert container[probe]["httpGet"] == {"path": "/healthz", "port": "metrics"}
            ready = {"path": "/readyz", "port": "https", "scheme": "HTTPS"}
            assert container["readinessProbe"]["httpGet"] == ready


@pytest.mark.parametrize(("path", "name"), ENABLED)
def test_replicas_keep_apart(render: Render, path: Path, name: str) -> None:
    deployment = one(render(path), "Deployment", name)
    spec = deployment["spec"]["template"]["spec"]
    selector = deployment["spec"]["selector"]
    (spread,) = spec["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"] == selector
    given = (yaml.safe_load(path.read_text()).get(name) or {}).get("affinity")
    if given:
        assert spec["affinity"] == given
        return
    (term,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == selector


def test_the_webhook_is_never_without_a_replica_on_purpose(render: Render) -> None:
    manifests = render()
    strategy = one(manifests, "Deployment", "webhook")["spec"]["strategy"]["rollingUpdate"]
    assert (strategy["maxUnavailable"], strategy["maxSurge"]) == (0, 1)
    assert one(manifests, "PodDisruptionBudget", "webhook")["spec"]["maxUnavailable"] == 1


def test_the_webhook_has_time_to_drain(render: Render) -> None:
    deployment = one(render(None, "webhook.drainSeconds=60"), "Deployment", "webhook")
    assert "--drain-seconds=60" in arguments_of(deployment)
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 60 + 10


def test_a_changed_scheduler_configuration_starts_the_scheduler_anew(render: Render) -> None:
    def checksum(*settings: str) -> str:
        template = one(render(None, *settings), "Deployment", "scheduler")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum("webhook.replicas=3")
    assert checksum() != checksum("scheduler.config=actions: allocate")


def test_the_scheduler_reads_the_configuration_that_was_given(render: Render) -> None:
    manifests = render(CHART / "ci/locked-down-values.yaml")
    (content,) = one(manifests, "ConfigMap", "scheduler")["data"].items()
    given = yaml.safe_load((CHART / "ci/locked-down-values.yaml").read_text())
    assert content == ("volcano-scheduler.conf", given["scheduler"]["config"])
    deployment = one(manifests, "Deployment", "scheduler")
    (mount,) = (
        mount for mount in containers(deployment)[0]["volumeMounts"] if mount["name"] == "config"
    )
    assert f"--config={mount['mountPath']}/{content[0]}" in arguments_of(deployment)


def test_the_default_configuration_is_the_schedulers_own(render: Render) -> None:
    content = one(render(), "ConfigMap", "scheduler")["data"]["volcano-scheduler.conf"]
    assert yaml.safe_load(content) == yaml.safe_load(DEFAULT)


def test_settings_of_admission_reach_it_as_they_were_written(render: Render) -> None:
    deployment = one(render(CHART / "ci/admission-only-values.yaml"), "Deployment", "webhook")
    given = [each for each in arguments_of(deployment) if "--set=" in each or "scheduler" in each]
    assert given == [
        "--scheduler-name=volcano",
        "--scheduler-name=pumice",
        "--scheduler-name=pumice-canary",
        "--set=max-queue-depth=1000000",
        "--set=strict-upstream=true",
    ]


def test_names_follow_the_release_unless_one_is_given(render: Render) -> None:
    def names(*settings: str) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in render(None, *settings)
            if "WebhookConfiguration" not in each["kind"]
        }

    made = (*COMPONENTS, "controller-configmap", "scheduler-charges", "view", "edit")
    assert names() == {f"{RELEASE}-{each}" for each in made}
    assert names("fullnameOverride=batch") == {f"batch-{each}" for each in made}


def test_the_controller_watches_the_configuration_of_its_release(render: Render) -> None:
    for settings in ((), ("fullnameOverride=batch",)):
        manifests = render(None, *settings, "controller.config=networkTopologyDiscovery: []")
        [container] = one(manifests, "Deployment", "controller")["spec"]["template"]["spec"]["containers"]  # fmt: skip
        given = {each["name"]: each["value"] for each in container["env"]}
        config_map = one(manifests, "ConfigMap", "controller")
        assert discovery_of(given) == (
            config_map["metadata"]["namespace"],
            config_map["metadata"]["name"],
        )
        assert config_map["data"] == {"volcano-controller.conf": "networkTopologyDiscovery: []"}
    assert discovery_of({}) == ("volcano-system", "volcano-controller-configmap")


def test_network_policies_exist_only_when_asked_for(render: Render) -> None:
    assert of_kind(render(), "NetworkPolicy") == []
    manifests = render(CHART / "ci/locked-down-values.yaml")
    policies = {component(each): each["spec"] for each in of_kind(manifests, "NetworkPolicy")}
    assert set(policies) == set(COMPONENTS)
    for name, policy in policies.items():
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        opened: list[Any] = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
        assert opened == ([8443, 8080] if name == "webhook" else [8080])
        (metrics,) = (rule for rule in policy["ingress"] if "from" in rule)
        assert [port["port"] for port in metrics["ports"]] == [8080]
        outward = [port["port"] for rule in policy["egress"] for port in rule["ports"]]
        assert outward == [6443, 53, 53]


def test_without_readers_of_metrics_the_policies_open_the_webhook_alone(render: Render) -> None:
    policies = of_kind(render(None, "networkPolicy.enabled=true"), "NetworkPolicy")
    opened = {component(each): each["spec"]["ingress"] for each in policies}
    assert opened["controller"] == opened["scheduler"] == []
    assert opened["webhook"] == [{"ports": [{"protocol": "TCP", "port": 8443}]}]
