"""The policies: which rules stand in which, for which objects they are asked, and that they hang together."""

import json
import re
from typing import Any

import pytest

from pumice.api import kinds
from pumice.webhook.groups.model import NO_GROUPS
from pumice.webhook.policies.drafts import drafts
from pumice.webhook.policies.manifests import policies, scope
from pumice.webhook.policies.mutations import mutations
from pumice.webhook.policies.ratchet import keys_of, rest_of
from pumice.webhook.policies.rooms import UPDATE_ROOMS
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings

Raw = dict[str, Any]


def made(*assignments: str, **named: Any) -> dict[tuple[str, str], Raw]:
    """All manifests under kind and name, with settings as a command line gives them."""
    settings = AdmissionSettings.from_assignments(assignments)
    found = (*policies(settings, **named), *mutations(settings))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def policy(name: str, *assignments: str, **named: Any) -> Raw:
    """The spec of one policy that validates."""
    found: Raw = made(*assignments, **named)["ValidatingAdmissionPolicy", name]["spec"]
    return found


def judged(spec: Raw) -> set[str]:
    """Codes of the rules in a policy, with the condition under which each counts."""
    told = {each["name"]: each["expression"] for each in spec["variables"]}
    return {name.removesuffix("_told").replace("_", "-") for name in told if name.endswith("_told")}


def told(spec: Raw, code: str) -> str:
    """What a policy says of a rule."""
    name = f"{code.replace('-', '_')}_told"
    (found,) = (each["expression"] for each in spec["variables"] if each["name"] == name)
    return str(found)


def test_every_policy_has_a_binding_of_its_name_and_every_binding_a_policy() -> None:
    found = made()
    for (kind, name), manifest in found.items():
        if kind.endswith("Binding"):
            assert manifest["spec"]["policyName"] == name
            assert (kind.removesuffix("Binding"), name) in found
        else:
            assert (f"{kind}Binding", name) in found


def test_rules_that_warn_stand_apart() -> None:
    found = made()
    actions = {
        name: each["spec"]["validationActions"]
        for (kind, name), each in found.items()
        if kind == "ValidatingAdmissionPolicyBinding"
    }
    assert actions["pumice-jobs"] == ["Deny"]
    assert actions["pumice-jobs-warn"] == ["Warn", "Audit"]
    assert "JOB-NO-TASKS" in judged(policy("pumice-jobs"))
    assert "JOB-MINAVAIL-SUM" in judged(policy("pumice-jobs-warn"))
    assert not judged(policy("pumice-jobs")) & judged(policy("pumice-jobs-warn"))


@pytest.mark.parametrize(
    ("assignments", "refusing", "warning"),
    [
        ([], True, False),
        (["rule.JOB-NO-TASKS=warn"], False, True),
        (["rule.JOB-NO-TASKS=off"], False, False),
    ],
)
def test_a_rule_stands_where_its_level_says(
    assignments: list[str], refusing: bool, warning: bool
) -> None:
    assert ("JOB-NO-TASKS" in judged(policy("pumice-jobs", *assignments))) is refusing
    assert ("JOB-NO-TASKS" in judged(policy("pumice-jobs-warn", *assignments))) is warning


def test_strict_upstream_warns_of_what_volcano_admits() -> None:
    strict = "strict-upstream=true"
    assert "VOL-CLAIM" in judged(policy("pumice-jobs"))
    assert "VOL-CLAIM" in judged(policy("pumice-jobs-warn", strict))
    assert "VOL-DUP" in judged(policy("pumice-jobs", strict))
    assert "VOL-DUP" in judged(policy("pumice-cronjobs-warn", strict))  # Volcano looks at none
    assert ("ValidatingAdmissionPolicy", "pumice-jobtemplates") not in made(strict)
    assert "PG-TOPO-BOTH" in judged(policy("pumice-podgroups", strict))
    assert "PG-TOPO-BOTH" in judged(policy("pumice-podgroups-updates"))
    assert "PG-TOPO-BOTH" in judged(policy("pumice-podgroups-updates-warn", strict))
    own = made(strict, "rule.VOL-CLAIM=enforce")["ValidatingAdmissionPolicy", "pumice-jobs"]
    assert "VOL-CLAIM" in judged(own["spec"])


def test_a_namespace_may_have_a_level_of_its_own() -> None:
    dev = "namespace.dev.rule.VOL-DUP=warn"
    refusing = told(policy("pumice-jobs", dev), "VOL-DUP")
    warning = told(policy("pumice-jobs-warn", dev), "VOL-DUP")
    assert refusing.startswith("!(request.namespace in ['dev']) ? ")
    assert warning.startswith("request.namespace in ['dev'] ? ")
    off = told(policy("pumice-jobs", "namespace.dev.rule.VOL-DUP=off"), "VOL-DUP")
    assert off == refusing


def test_what_must_not_change_covers_the_rest_only_where_it_refuses() -> None:
    def covered(*assignments: str) -> str:
        spec = policy("pumice-jobs", *assignments)
        (found,) = (each["expression"] for each in spec["variables"] if each["name"] == "covered")
        return str(found)

    assert "variables.JOB_IMMUTABLE.map(p, p[0])" in covered()
    assert "JOB_IMMUTABLE" not in covered("rule.JOB-IMMUTABLE=warn")
    assert covered("rule.JOB-IMMUTABLE=off", "rule.JOB-TASK-COUNT=off") == "[]"


def test_settings_decide_which_rules_there_are() -> None:
    assert "Q-ROOT-FROZEN" in judged(policy("pumice-queues"))
    unprotected = policy("pumice-queues", "enable-root-queue-protection=false")
    assert "Q-ROOT-FROZEN" not in judged(unprotected)
    assert "Q-DEL-RUNNING" in judged(policy("pumice-queues-deletion-warn"))
    checked = "enable-queue-allocated-pods-check=true"
    assert "Q-DEL-PODS" in judged(policy("pumice-queues-deletion", checked))
    assert ("ValidatingAdmissionPolicy", "pumice-queues-deletion-warn") not in made(checked)


def test_a_rule_that_errs_is_a_validation_of_its_own() -> None:
    last = policy("pumice-hypernodes")["validations"][-1]
    assert "messageExpression" not in last
    assert "'[HN-REGEX]'" in last["expression"]
    warned = policy("pumice-hypernodes-warn", "rule.HN-REGEX=warn")["validations"][-1]
    assert warned == last
    assert len(policy("pumice-hypernodes", "rule.HN-REGEX=off")["validations"]) == 1


def test_policies_are_asked_what_the_webhooks_are_asked() -> None:
    settings = AdmissionSettings(scheduler_names=("first", "second"))
    found = {
        (each["kind"], each["metadata"]["name"]): each["spec"]
        for each in (*policies(settings), *mutations(settings))
    }
    for registration in REGISTRATIONS:
        sort = "Mutating" if registration.mutating else "Validating"
        name = f"pumice-{registration.kind.plural}" + ("-defaults" if registration.mutating else "")
        if registration.mutating and registration.kind == kinds.POD:
            continue  # which is the webhook's
        spec = found[f"{sort}AdmissionPolicy", name]
        (rule,) = spec["matchConstraints"]["resourceRules"]
        assert (rule["apiGroups"], rule["resources"]) == (
            [registration.kind.group],
            [registration.kind.plural],
        )
        operations = [*rule["operations"]]
        if not registration.mutating and registration.kind in UPDATE_ROOMS:
            apart = found[f"{sort}AdmissionPolicy", f"{name}-updates"]
            assert {**apart["matchConstraints"], "resourceRules": []} == {
                **spec["matchConstraints"],
                "resourceRules": [],
            }
            operations += apart["matchConstraints"]["resourceRules"][0]["operations"]
        assert operations == [each for each in registration.operations if each != "DELETE"]
        assert spec["failurePolicy"] == registration.failure_policy
        assert [each["expression"] for each in spec["matchConditions"]] == [
            each.expression for each in registration.conditions(settings, NO_GROUPS)
        ]
    deletion = found["ValidatingAdmissionPolicy", "pumice-queues-deletion"]
    assert deletion["matchConstraints"]["resourceRules"][0]["operations"] == ["DELETE"]


def test_exempt_namespaces_are_left_alone() -> None:
    constraints = policy("pumice-jobs", exempt_namespaces=("kube-system", "mine"))[
        "matchConstraints"
    ]
    (selector,) = constraints["namespaceSelector"]["matchExpressions"]
    assert (selector["operator"], selector["values"]) == ("NotIn", ["kube-system", "mine"])
    assert "namespaceSelector" not in policy("pumice-queues")["matchConstraints"]


def test_plugins_of_others_can_be_made_known() -> None:
    assert "$jobPlugins" not in json.dumps(list(made().values()))
    text = json.dumps(policy("pumice-jobs", job_plugins=("wandb",)))
    assert "'tensorflow', 'wandb']" in text


def test_the_first_scheduler_is_that_of_jobs_that_name_none() -> None:
    found = made("scheduler-name=mine", "scheduler-name=other")
    spec = found["MutatingAdmissionPolicy", "pumice-jobs-defaults"]["spec"]
    (mutation,) = spec["mutations"]
    assert "'mine')" in mutation["jsonPatch"]["expression"]
    assert spec["reinvocationPolicy"] == "IfNeeded"


@pytest.mark.parametrize("assignments", [[], ["strict-upstream=true"]], ids=["default", "strict"])
def test_variables_are_made_before_they_are_used(assignments: list[str]) -> None:
    for manifest in made(*assignments).values():
        spec: Raw = manifest["spec"]
        known: set[str] = set()
        for variable in spec.get("variables", ()):
            assert used(variable["expression"]) <= known, variable["name"]
            assert variable["name"] not in known
            known.add(variable["name"])
        for each in spec.get("validations", ()):
            assert used(each["expression"] + each.get("messageExpression", "")) <= known


def used(expression: str) -> set[str]:
    """Variables that an expression names."""
    return set(re.findall(r"\bvariables\.(\w+)", expression))


def test_policies_are_the_same_each_time_and_fit_into_the_store() -> None:
    first, second = (json.dumps(list(made().values())) for _ in range(2))
    assert first == second
    for manifest in made().values():
        assert len(json.dumps(manifest)) < 250_000, manifest["metadata"]["name"]


def test_what_was_wrong_before_is_told_from_what_is_new() -> None:
    new = rest_of("X-Y", ("A-B", "C"), covered=True)
    found = "variables.X_Y_new"
    assert new.startswith(f"request.operation != 'UPDATE' || {found}.size() == 0 ? {found} : ")
    assert "variables.A_B_old.exists" in new
    assert "variables.C_old.exists" in new
    assert "variables.covered.exists" in new
    assert "keys" not in new
    assert "covered" not in rest_of("X-Y", ("A-B",))


def test_items_of_lists_are_known_again_but_for_tasks_whose_place_is_their_name() -> None:
    assert "variables.X_Y_old_keys" in rest_of("X-Y", ("X-Y",), keyed=True)
    assert keys_of("X_Y_new").startswith("variables.X_Y_new.map(p, ")
    made_of = {each["name"] for each in policy("pumice-hypernodes")["variables"]}
    assert {"HN_SELF_keys", "HN_SELF_old_keys"} <= made_of
    tasks = policy("pumice-jobs")["variables"]
    assert not [each["name"] for each in tasks if each["name"].endswith("_keys")]
    (found,) = (each["expression"] for each in tasks if each["name"] == "JOB_TASK_MINAVAIL")
    assert "c == 'spec.tasks' ? variables.shiftedTasks.exists" in found


def test_a_draft_leaves_open_what_settings_say() -> None:
    (jobs,) = (each for each in drafts(AdmissionSettings()) if each.name == "pumice-jobs")
    (form,) = (each for each in jobs.forms if each.code == "JOB-PLUGIN-NAME")
    assert (form.level, form.stricter) == ("enforce", True)
    assert scope(form, "enforce", AdmissionSettings()) == "true"
    assert scope(form, "warn", AdmissionSettings()) == ""
    assert scope(form, "warn", AdmissionSettings(strict_upstream=True)) == "true"
