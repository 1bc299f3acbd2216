from typing import Any

import pytest
import yaml

from pumice.api import keys
from pumice.webhook.registrations import REGISTRATIONS, configuration, configurations, enabled_paths
from pumice.webhook.rules.resource_groups import ResourceGroup, ResourceGroups
from pumice.webhook.settings import AdmissionSettings

SETTINGS = AdmissionSettings(scheduler_names=("volcano", "other"))
BY_PATH = {each.path: each for each in REGISTRATIONS}
VERBS = dict.fromkeys(("jobs", "queues", "podgroups", "pods"), ("mutate", "validate")) | (
    dict.fromkeys(("cronjobs", "jobflows", "hypernodes", "jobtemplates"), ("validate",))
)
"""Volcano's endpoints, and our own one for JobTemplates."""


def test_paths_and_names_are_volcanos() -> None:
    assert {each.path: (each.name, each.configuration_name) for each in REGISTRATIONS} == {
        f"/{plural}/{verb}": (
            f"{verb}{plural.removesuffix('s')}.volcano.sh",
            f"volcano-admission-service-{plural}-{verb}",
        )
        for plural, verbs in VERBS.items()
        for verb in verbs
    }


def test_an_outage_stops_only_our_own_kinds() -> None:
    for each in REGISTRATIONS:
        own = each.kind.group.endswith("volcano.sh")
        assert each.failure_policy == ("Fail" if own else "Ignore"), each.path


def test_whatever_waits_for_an_answer_does_not_wait_for_nodes_and_housekeeping() -> None:
    for each in REGISTRATIONS:
        found = conditions(each.path)
        assert "'system:nodes' in request.userInfo.groups" in found["not-by-a-node"], each.path
        if each.failure_policy == "Fail":
            assert "namespace-controller" in found["not-by-housekeeping"], each.path


def test_what_defaults_is_asked_on_updates_too() -> None:
    for path in ("/jobs/mutate", "/queues/mutate", "/podgroups/mutate"):
        assert BY_PATH[path].operations == ("CREATE", "UPDATE")
    assert BY_PATH["/queues/validate"].operations == ("CREATE", "UPDATE", "DELETE")
    assert BY_PATH["/pods/mutate"].operations == ("CREATE",)


def test_kinds_without_defaults_are_checked_when_their_spec_or_options_change() -> None:
    options = {"jobflows": "spec-or-failure-option-changes"}
    for plural in ("cronjobs", "jobflows", "jobtemplates", "hypernodes"):
        each = BY_PATH[f"/{plural}/validate"]
        assert each.operations == ("CREATE", "UPDATE")
        (webhook,) = configuration(each, SETTINGS, {})["webhooks"]
        names = [condition["name"] for condition in webhook["matchConditions"]]
        assert names == [
            "not-being-deleted",
            options.get(plural, "spec-changes"),
            "not-by-a-node",
            "not-by-housekeeping",
        ]


def test_only_hypernodes_let_other_operations_pass() -> None:
    assert [each.path for each in REGISTRATIONS if each.lenient] == ["/hypernodes/validate"]


def test_entry_names_are_unique() -> None:
    for mutating in (True, False):
        names = [each.name for each in REGISTRATIONS if each.mutating is mutating]
        assert len(names) == len(set(names))


def test_a_configuration_is_complete() -> None:
    found = configuration(
        BY_PATH["/jobs/mutate"], SETTINGS, {"url": "https://127.0.0.1:1/jobs/mutate"}
    )
    assert found["kind"] == "MutatingWebhookConfiguration"
    assert found["metadata"] == {"name": "volcano-admission-service-jobs-mutate"}
    (webhook,) = found["webhooks"]
    conditions = webhook.pop("matchConditions")
    assert [each["name"] for each in conditions] == [
        "not-being-deleted",
        "spec-or-topology-changes",
        "not-by-a-node",
        "not-by-housekeeping",
    ]
    assert webhook == {
        "name": "mutatejob.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/jobs/mutate"},
        "rules": [
            {
                "apiGroups": ["batch.volcano.sh"],
                "apiVersions": ["v1alpha1"],
                "resources": ["jobs"],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system"],
                }
            ]
        },
    }


def test_no_review_has_side_effects() -> None:
    for each in configurations(SETTINGS, lambda path: {"url": f"https://127.0.0.1{path}"}):
        assert [webhook["sideEffects"] for webhook in each["webhooks"]] == ["None"]


def test_cluster_wide_kinds_have_no_namespaces_to_exempt() -> None:
    found = configuration(BY_PATH["/queues/validate"], SETTINGS, {})
    (webhook,) = found["webhooks"]
    assert "namespaceSelector" not in webhook
    assert "reinvocationPolicy" not in webhook
    assert webhook["rules"][0]["scope"] == "Cluster"


def conditions(path: str, **options: Any) -> dict[str, str]:
    (webhook,) = configuration(BY_PATH[path], SETTINGS, {}, **options)["webhooks"]
    return {each["name"]: each["expression"] for each in webhook["matchConditions"]}


def test_pods_are_judged_by_scheduler_and_only_where_there_is_something_to_judge() -> None:
    found = conditions("/pods/validate")
    assert list(found) == ["ours", "concerned", "not-by-a-node"]
    assert "object.spec.schedulerName in ['volcano', 'other']" in found["ours"]
    for key in (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE, keys.COOLDOWN_TIME):
        assert f"'{key}'" in found["concerned"]
    assert f"'{keys.COOLDOWN_TIME}' in object.metadata.labels" in found["concerned"]
    assert (
        f"['{keys.DURATION}'].exists(key, key in object.metadata.annotations)) && "
        "!has(object.metadata.ownerReferences)" in found["concerned"]
    )
    assert "size(object.metadata.labels) > 320" in found["concerned"]
    assert "size(object.metadata.annotations) > 1088" in found["concerned"]
    assert found["concerned"].endswith(" || has(object.spec.resourceClaims)")  # NOT-HERE-YET


def test_no_pod_is_asked_about_for_its_namespace_without_resource_groups() -> None:
    found = conditions("/pods/mutate")
    assert list(found) == ["concerned", "not-by-a-node"]
    assert found["concerned"].endswith("|| request.namespace in []")
    for key in (keys.PLUGINS, keys.RESOURCE_GROUP, keys.QUEUE_ALLOCATION_GATE):
        assert f"'{key}'" in found["concerned"]


def test_every_pod_that_a_resource_group_could_claim_is_asked_about() -> None:
    groups = ResourceGroups(
        [
            ResourceGroup(namespaces=("b", "a")),
            ResourceGroup(annotations=(("team", "x"), ("team", "y"), ("area", "z"))),
            ResourceGroup(annotations=((keys.RESOURCE_GROUP, "gpu"),), namespaces=("a",)),
        ]
    )
    found = conditions("/pods/mutate", groups=groups)["concerned"]
    assert "request.namespace in ['a', 'b']" in found
    assert f"'{keys.QUEUE_ALLOCATION_GATE}', 'area', 'team'].exists(" in found
    assert conditions("/pods/validate", groups=groups) == conditions("/pods/validate")


NEEDED = {
    "matchExpressions": [{"key": keys.ADMISSION, "operator": "NotIn", "values": ["unneeded"]}]
}


def selectors(**options: Any) -> dict[str, Any]:
    made = configurations(SETTINGS, lambda path: {"url": path}, **options)
    webhooks = [webhook for each in made for webhook in each["webhooks"]]
    return {
        each["clientConfig"]["url"]: each["objectSelector"]
        for each in webhooks
        if "objectSelector" in each
    }


def test_pods_that_the_controller_knows_to_be_of_no_concern_are_left_out_without_conditions() -> (
    None
):
    assert selectors() == {"/pods/mutate": NEEDED, "/pods/validate": NEEDED}


def test_resource_groups_decide_about_all_pods() -> None:
    for group in (
        ResourceGroup(namespaces=("a",)),
        ResourceGroup(annotations=((keys.QUEUE_NAME, "gpu"),)),  # which the controller writes
    ):
        assert selectors(groups=ResourceGroups([group])) == {"/pods/validate": NEEDED}


def test_all_configurations_reach_their_own_path() -> None:
    found = configurations(SETTINGS, lambda path: {"url": f"https://h{path}"})
    assert [each["webhooks"][0]["clientConfig"]["url"] for each in found] == [
        f"https://h{each.path}" for each in REGISTRATIONS
    ]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", ()),
        ("  ", ()),
        (" /jobs/validate, ", ("/jobs/validate",)),
        ("/jobs/validate,,/jobs/mutate,/jobs/validate", ("/jobs/validate", "/jobs/mutate")),
    ],
)
def test_a_list_of_endpoints_is_read_leniently(text: str, paths: tuple[str, ...]) -> None:
    assert enabled_paths(text) == paths


def test_an_endpoint_that_does_not_exist_is_said_at_once() -> None:
    with pytest.raises(
        ValueError, match=r'no endpoint /job/validate \(did you mean "/jobs/validate"'
    ):
        enabled_paths("/job/validate")


def test_configurations_are_plain_data() -> None:
    """The chart writes them as YAML and reads them back."""
    made = configurations(SETTINGS, lambda path: {"url": path})
    assert yaml.safe_load(yaml.safe_dump(made)) == made
