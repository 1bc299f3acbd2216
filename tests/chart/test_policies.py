"""Admission by policies: what the chart installs in that mode, and which values it refuses then."""

from __future__ import annotations

import pytest

from pumice.api import keys
from pumice.webhook.registrations import EXEMPT_NAMESPACES
from tests.chart.manifests import (
    CHART,
    NAMESPACE,
    RELEASE,
    Manifest,
    Render,
    Run,
    arguments_of,
    of_kind,
)
from tests.support.policies import CODE

MODE = "admission.mode=policies"
GATES = "webhook.settings.scheduling-gates-queue-admission=true"
VALIDATING = {"hypernodes", "jobflows", "jobs", "podgroups", "pods", "queues", "queues-deletion"}
MUTATING = {"jobs", "podgroups", "queues"}

CHARGES = f"{RELEASE}-scheduler-charges"
"""The policy about the queue of pods, which is there in any mode."""

pytestmark = pytest.mark.binaries


def names(manifests: list[Manifest], kind: str) -> set[str]:
    """Names of the policies of a kind that replace the webhook, or of their bindings."""
    return {each["metadata"]["name"] for each in of_kind(manifests, kind)} - {CHARGES}


def policies(manifests: list[Manifest]) -> list[Manifest]:
    found = of_kind(manifests, "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
    return [each for each in found if each["metadata"]["name"] != CHARGES]


def test_there_is_a_policy_for_each_kind_and_a_binding_for_each_policy(render: Render) -> None:
    found = render(None, MODE)
    assert names(found, "ValidatingAdmissionPolicy") == {f"pumice-{each}" for each in VALIDATING}
    assert names(found, "MutatingAdmissionPolicy") == {
        f"pumice-{each}-defaults" for each in MUTATING
    }
    for sort in ("Validating", "Mutating"):
        bindings = [
            each
            for each in of_kind(found, f"{sort}AdmissionPolicyBinding")
            if each["metadata"]["name"] != CHARGES
        ]
        assert {each["spec"]["policyName"] for each in bindings} == names(
            found, f"{sort}AdmissionPolicy"
        )
        for each in bindings:
            assert each["metadata"]["name"] == each["spec"]["policyName"]
            assert each["spec"].get("validationActions") == (
                ["Deny"] if sort == "Validating" else None
            )


def test_what_is_owned_as_a_whole_has_the_defaults_of_the_api_server(render: Render) -> None:
    """Otherwise a second tool that applies the same manifest, server-side, is in conflict with the first."""
    found = render(None, MODE, GATES)
    for policy in of_kind(found, "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"):
        constraints = policy["spec"]["matchConstraints"]
        assert constraints["matchPolicy"] == "Equivalent", policy["metadata"]["name"]
        assert {"namespaceSelector", "objectSelector"} <= set(constraints)
        assert {rule["scope"] for rule in constraints["resourceRules"]} == {"*"}


def test_pods_get_a_gate_where_the_setting_says_so(render: Render) -> None:
    gated = names(render(None, MODE, GATES), "MutatingAdmissionPolicy")
    assert gated - names(render(None, MODE), "MutatingAdmissionPolicy") == {"pumice-pods-defaults"}


def test_every_message_names_the_code_of_its_rule(render: Render) -> None:
    for policy in policies(render(None, MODE)):
        if policy["kind"] != "ValidatingAdmissionPolicy":
            continue
        for validation in policy["spec"]["validations"]:
            message = validation.get("message") or validation["messageExpression"]
            assert len(CODE.findall(message)) == 1, validation
            assert message.rstrip("'\"").endswith("]"), validation


def test_names_come_from_the_values(render: Render) -> None:
    settings = ("schedulerName=pumice", "webhook.extraSchedulerNames={volcano}")
    found = render(None, MODE, *settings, "admission.jobPlugins={wandb}")
    text = {(each["kind"], each["metadata"]["name"]): str(each) for each in policies(found)}
    assert "orValue('pumice')" in text["MutatingAdmissionPolicy", "pumice-jobs-defaults"]
    assert "in ['pumice', 'volcano']" in text["ValidatingAdmissionPolicy", "pumice-pods"]
    assert "'tensorflow', 'wandb']" in text["ValidatingAdmissionPolicy", "pumice-jobs"]


def test_namespaces_are_exempt_as_for_webhooks(render: Render) -> None:
    team = "webhook.namespaceSelectorExpressions[0]"
    for policy in policies(render(None, MODE, f"{team}.key=team", f"{team}.operator=Exists")):
        constraints = policy["spec"]["matchConstraints"]
        if {"queues", "hypernodes"} & set(constraints["resourceRules"][0]["resources"]):
            assert constraints["namespaceSelector"] == {}
            continue
        kept, own, further = constraints["namespaceSelector"]["matchExpressions"]
        assert kept["values"] == list(EXEMPT_NAMESPACES)
        assert (own["operator"], own["values"]) == ("NotIn", [NAMESPACE])
        assert further == {"key": "team", "operator": "Exists"}


def test_pods_that_the_controller_labels_as_of_no_concern_are_left_out(render: Render) -> None:
    selected = {
        policy["metadata"]["name"]: policy["spec"]["matchConstraints"]["objectSelector"]
        for policy in policies(render(None, MODE, GATES))
        if policy["spec"]["matchConstraints"]["objectSelector"]
    }
    needed = {"key": keys.ADMISSION, "operator": "NotIn", "values": [keys.ADMISSION_UNNEEDED]}
    wanted = {"matchExpressions": [needed]}
    assert selected == {"pumice-pods": wanted, "pumice-pods-defaults": wanted}


def test_nothing_is_called_and_nothing_runs_for_it(render: Render) -> None:
    found = render(None, MODE, "networkPolicy.enabled=true")
    for each in found:
        if "WebhookConfiguration" in each["kind"]:
            continue  # empty, as tests/chart/test_webhooks.py has it
        labels = each["metadata"].get("labels", {})
        assert labels.get("app.kubernetes.io/component") != "webhook", each["metadata"]["name"]
    assert {each["metadata"]["name"] for each in of_kind(found, "Deployment")} == {
        f"{RELEASE}-controller",
        f"{RELEASE}-scheduler",
    }


@pytest.mark.parametrize("settings", [(), (MODE, "webhook.enabled=false")])
def test_there_are_no_policies_unless_they_are_asked_for(
    render: Render, settings: tuple[str, ...]
) -> None:
    found = render(None, *settings)
    left = {
        each["metadata"]["name"]
        for each in found
        if each["kind"].endswith(("AdmissionPolicy", "AdmissionPolicyBinding"))
    }
    assert left == {CHARGES}


@pytest.mark.parametrize("settings", [(), (MODE,), ("webhook.enabled=false",)])
@pytest.mark.parametrize("name", [RELEASE, "batch"])
def test_the_scheduler_alone_says_to_which_queue_pods_are_charged(
    render: Render, settings: tuple[str, ...], name: str
) -> None:
    """However admission is done, and whatever the release is called; a release without a scheduler has no policy."""
    settings = (*settings, f"fullnameOverride={name}")
    found = render(None, *settings)
    charges = f"{name}-scheduler-charges"
    [policy] = [
        each
        for each in of_kind(found, "ValidatingAdmissionPolicy")
        if each["metadata"]["name"] == charges
    ]
    account = f"system:serviceaccount:{NAMESPACE}:{name}-scheduler"
    conditions = [each["expression"] for each in policy["spec"]["matchConditions"]]
    assert keys.QUEUE in conditions[0]
    assert conditions[1] == f"request.userInfo.username != '{account}'"
    [validation] = policy["spec"]["validations"]
    assert "subresource('binding')" in validation["expression"]
    accounts = {each["metadata"]["name"] for each in of_kind(found, "ServiceAccount")}
    assert f"{name}-scheduler" in accounts
    without = render(None, *settings, "scheduler.enabled=false")
    left = of_kind(without, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert charges not in {each["metadata"]["name"] for each in left}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("webhook.settings.max-queue-depth=3", "webhook.settings.max-queue-depth has no effect"),
        ("webhook.settings.rules.JOB-PODNAME=warn", "webhook.settings.rules has no effect"),
        ("webhook.resourceGroups[0].resourceGroup=gpu", "webhook.resourceGroups has no effect"),
    ],
)
def test_values_that_have_no_effect_on_rules_are_refused(
    helm: Run, value: str, message: str
) -> None:
    arguments = ("template", RELEASE, str(CHART), "--set", value)
    assert helm(*arguments).returncode == 0
    answer = helm(*arguments, "--set", MODE)
    assert answer.returncode != 0
    assert message in answer.stderr


def test_an_older_api_server_is_refused(helm: Run) -> None:
    arguments = ("template", RELEASE, str(CHART), "--kube-version", "1.35.2")
    assert helm(*arguments).returncode == 0
    answer = helm(*arguments, "--set", MODE)
    assert answer.returncode != 0
    assert "admission.mode policies needs Kubernetes 1.36, found v1.35.2" in answer.stderr


@pytest.mark.parametrize(("mode", "checks"), [("policies", True), ("webhook", False)])
def test_the_controller_checks_jobs_where_no_webhook_does(
    render: Render, mode: str, checks: bool
) -> None:
    deployments = of_kind(render(None, f"admission.mode={mode}"), "Deployment")
    (controller,) = (
        each for each in deployments if each["metadata"]["name"].endswith("controller")
    )
    assert ("--check-jobs" in arguments_of(controller)) is checks
