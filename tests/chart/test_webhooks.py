"""The webhook configurations: made of the table of endpoints, and harmless when nobody answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pumice.webhook.registrations import REGISTRATIONS, configurations
from pumice.webhook.resource_group_file import parse
from pumice.webhook.settings import AdmissionSettings
from tests.chart.manifests import CHART, NAMESPACE, Manifest, Render, Run, component, of_kind
from tests.kit.tables import documents
from tools.webhook_configurations import (
    GROUP_ANNOTATIONS,
    GROUP_NAMESPACES,
    SCHEDULER_NAMES,
    chart_configurations,
    main,
)

FILE = CHART / "files/webhooks.yaml"
OWN_GROUPS = {
    "batch.volcano.sh",
    "bus.volcano.sh",
    "flow.volcano.sh",
    "scheduling.volcano.sh",
    "topology.volcano.sh",
}


def configured(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The only webhook of each configuration, by the configuration's name."""
    found = {}
    for each in of_kind(
        manifests, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
    ):
        (found[each["metadata"]["name"]],) = each["webhooks"]
    return found


def of_values(webhook: Manifest) -> Manifest:
    """A webhook without what depends on the chart's values."""
    depends = {"clientConfig", "failurePolicy", "namespaceSelector"}
    return {key: value for key, value in webhook.items() if key not in depends}


def exempt(webhook: Manifest) -> set[str]:
    """Namespaces that are never asked about."""
    found: set[str] = set()
    for each in webhook["namespaceSelector"]["matchExpressions"]:
        if (each["key"], each["operator"]) == ("kubernetes.io/metadata.name", "NotIn"):
            found |= set(each["values"])
    return found


def test_the_committed_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(FILE)]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named_and_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "webhooks.yaml"
    assert main(["--check", str(file)]) == 1
    assert str(file) in capsys.readouterr().err
    assert not file.exists()
    assert main([str(file)]) == 0
    assert file.read_text() == FILE.read_text()


def test_scheduler_names_are_left_to_the_chart() -> None:
    expressions = [
        condition["expression"]
        for configuration in chart_configurations()["configurations"]
        for webhook in configuration["webhooks"]
        for condition in webhook["matchConditions"]
    ]
    assert [each for each in expressions if f"['{SCHEDULER_NAMES}']" in each]
    assert not [each for each in expressions if "'volcano'" in each]


@pytest.mark.binaries
@pytest.mark.parametrize("names", [("volcano",), ("volcano", "pumice", "other")])
def test_what_is_installed_is_what_the_table_of_endpoints_says(
    render: Render, names: tuple[str, ...]
) -> None:
    extra = ",".join(names[1:])
    sets = [f"webhook.extraSchedulerNames={{{extra}}}"] if extra else []
    installed = configured(render(None, *sets))
    stated = configured(configurations(AdmissionSettings(scheduler_names=names), lambda _: {}))
    assert list(installed) == sorted(stated, key=list(installed).index)
    for name, webhook in stated.items():
        assert of_values(installed[name]) == of_values(webhook), name
        assert installed[name]["failurePolicy"] == webhook["failurePolicy"], name


GROUPS = """
webhook:
  resourceGroups:
  - resourceGroup: management
    object: {key: namespace, value: [mng-ns-2, mng-ns-1]}
    tolerations: [{key: mng, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
    affinity: '{"podAntiAffinity": {}}'
  - resourceGroup: cpu
    object: {key: annotation, value: ["volcano.sh/resource-group: cpu", "team: a", "team: b", {area: c}]}
    labels: {nodetype: cpu}
  - resourceGroup: gpu
    object: {value: ["class: gpu"]}
  - {resourceGroup: others, object: {key: namespace, value: [mng-ns-1, others]}}
  - {resourceGroup: tpu, schedulerName: volcano}
"""


@pytest.mark.binaries
@pytest.mark.parametrize("values", [GROUPS, ""], ids=["groups", "none"])
def test_the_api_server_asks_about_the_pods_of_resource_groups_and_of_no_others(
    render: Render, tmp_path: Path, values: str
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(values)
    manifests = render(file)
    (conf,) = [
        each["data"]["volcano-admission.conf"]
        for each in of_kind(manifests, "ConfigMap")
        if "volcano-admission.conf" in each["data"]
    ]
    groups, warnings = parse(conf.encode())
    assert len(groups) == (5 if values else 0)
    assert [each.path for each in warnings] == (["resourceGroups[3]"] if values else [])
    (stated,) = [
        each
        for each in configurations(AdmissionSettings(), lambda _: {}, groups=groups)
        if each["metadata"]["name"].endswith("pods-mutate")
    ]
    installed = configured(manifests)[stated["metadata"]["name"]]
    assert installed["matchConditions"] == stated["webhooks"][0]["matchConditions"]
    assert installed.get("objectSelector") == stated["webhooks"][0].get("objectSelector")
    assert ("objectSelector" in installed) is not bool(values)  # groups are about all pods
    for text in (GROUP_ANNOTATIONS, GROUP_NAMESPACES):
        assert text not in str(manifests)


@pytest.mark.binaries
def test_only_pumices_own_kinds_ever_wait_for_it(manifests: list[Manifest]) -> None:
    for name, webhook in configured(manifests).items():
        groups = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
        if not groups <= OWN_GROUPS:
            assert webhook["failurePolicy"] == "Ignore", name


@pytest.mark.binaries
def test_nothing_waits_where_that_is_wished(render: Render) -> None:
    webhooks = configured(render(None, "webhook.failurePolicy=Ignore"))
    assert {each["failurePolicy"] for each in webhooks.values()} == {"Ignore"}


@pytest.mark.binaries
def test_every_webhook_is_quick_free_of_side_effects_and_narrow(manifests: list[Manifest]) -> None:
    for name, webhook in configured(manifests).items():
        assert webhook["sideEffects"] == "None", name
        assert webhook["timeoutSeconds"] <= 5, name
        assert webhook["admissionReviewVersions"] == ["v1"], name
        assert webhook["matchPolicy"] == "Equivalent", name
        assert webhook["matchConditions"], name
        for rule in webhook["rules"]:
            assert rule["scope"] in {"Namespaced", "Cluster"}
            assert not [
                value
                for field in ("apiGroups", "apiVersions", "resources", "operations")
                for value in rule[field]
                if "*" in value or "/" in value
            ], name


@pytest.mark.binaries
def test_the_releases_own_namespace_and_kube_system_are_exempt(manifests: list[Manifest]) -> None:
    for name, webhook in configured(manifests).items():
        if webhook["rules"][0]["scope"] == "Namespaced":
            assert {NAMESPACE, "kube-system"} <= exempt(webhook), name


@pytest.mark.binaries
@pytest.mark.parametrize("mode", ["webhook", "policies"])
def test_a_namespace_is_exempt_once(helm: Run, mode: str) -> None:
    arguments = ("--namespace", "kube-system", "--set", f"admission.mode={mode}")
    made = helm("template", "pumice", str(CHART), *arguments).stdout
    found = 0
    for each in documents(made):
        spec = each.get("spec", {}).get("matchConstraints", {})
        for holder in (spec, *(each.get("webhooks") or ())):
            expressions = holder.get("namespaceSelector", {}).get("matchExpressions", [])
            assert len(expressions) < 2
            found += len(expressions)
    assert found > 3


@pytest.mark.binaries
@pytest.mark.parametrize("setting", ["webhook.enabled=false", "admission.mode=policies"])
def test_without_the_webhook_no_webhook_is_called_and_validation_ends_first(
    render: Render, setting: str
) -> None:
    manifests = render(None, setting)
    kinds = [each["kind"] for each in manifests]
    # Helm changes things in the order in which it renders them.
    first = kinds.index("MutatingWebhookConfigurationList")
    assert "ValidatingWebhookConfiguration" not in kinds[first:]
    (mutating,) = of_kind(manifests, "MutatingWebhookConfigurationList")
    empty = [*mutating["items"], *of_kind(manifests, "ValidatingWebhookConfiguration")]
    assert all(each["webhooks"] == [] for each in empty)
    assert {(each["kind"], each["metadata"]["name"]) for each in empty} == {
        (each["kind"], each["metadata"]["name"])
        for each in render()
        if each["kind"].endswith("WebhookConfiguration")
    }


@pytest.mark.binaries
def test_quotes_of_values_stay_within_their_texts(helm: Run, tmp_path: Path) -> None:
    """The schema refuses them; who passes it over gets what is meant all the same."""
    file = tmp_path / "values.yaml"
    odd = {"key": "namespace", "value": ["a'b", "c\\"]}
    groups = [{"object": odd}, {"object": {"value": [{"d'e": "f"}]}}]
    file.write_text(yaml.safe_dump({"webhook": {"resourceGroups": groups}}))
    arguments = ("template", "pumice", str(CHART), "--values", str(file))
    assert helm(*arguments).returncode == 1
    made = helm(*arguments, "--skip-schema-validation").stdout
    pods = configured(documents(made))
    (condition, *_) = pods["volcano-admission-service-pods-mutate"]["matchConditions"]
    assert r"request.namespace in ['a\'b', 'c\\']" in condition["expression"]
    assert r", 'd\'e']" in condition["expression"]


@pytest.mark.binaries
def test_further_namespaces_can_be_exempt(render: Render) -> None:
    webhooks = configured(render(CHART / "ci/outside-values.yaml"))
    wanted = {"key": "pumice.dev/admission", "operator": "NotIn", "values": ["off"]}
    for name, webhook in webhooks.items():
        if webhook["rules"][0]["scope"] == "Namespaced":
            assert wanted in webhook["namespaceSelector"]["matchExpressions"], name


@pytest.mark.binaries
def test_the_api_server_calls_the_service(render: Render) -> None:
    manifests = render()
    (service,) = of_kind(manifests, "Service")
    webhooks = configured(manifests)
    for each in REGISTRATIONS:
        called = webhooks[each.configuration_name]["clientConfig"]["service"]
        assert called.pop("path").startswith(f"{each.path}/if-this-fails")
        assert called == {
            "name": service["metadata"]["name"],
            "namespace": NAMESPACE,
            "port": service["spec"]["ports"][0]["port"],
        }


@pytest.mark.binaries
def test_the_api_server_calls_an_address_where_one_is_given(render: Render) -> None:
    webhooks = configured(render(CHART / "ci/outside-values.yaml"))
    called = {
        each["clientConfig"]["url"].partition("/if-this-fails")[0] for each in webhooks.values()
    }
    assert called == {f"https://192.0.2.1:8443{each.path}" for each in REGISTRATIONS}


@pytest.mark.binaries
def test_the_address_is_the_command_that_says_what_to_do(manifests: list[Manifest]) -> None:
    (deployment,) = (
        each for each in of_kind(manifests, "Deployment") if component(each) == "webhook"
    )
    name = deployment["metadata"]["name"]
    for webhook in configured(manifests).values():
        config = webhook["clientConfig"]
        words = (config.get("url") or config["service"]["path"]).rpartition("/")[2]
        assert words == f"kubectl describe deployment {name} -n {NAMESPACE}".replace(" ", "-")
    advice = deployment["metadata"]["annotations"]["pumice.dev/when-down"].splitlines()
    assert max(len(line) for line in advice) < 138  # of which kubectl would show no more


@pytest.mark.binaries
def test_the_webhook_judges_the_pods_that_it_is_asked_about(render: Render) -> None:
    manifests = render(CHART / "ci/outside-values.yaml", "webhook.extraSchedulerNames={other}")
    pods = configured(manifests)["volcano-admission-service-pods-validate"]
    expression = pods["matchConditions"][0]["expression"]
    assert "in ['pumice', 'other']" in expression
    assert SCHEDULER_NAMES not in expression
