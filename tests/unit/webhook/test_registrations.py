import pytest
import yaml

from pumice.webhook.registrations import REGISTRATIONS, configuration, configurations, enabled_paths
from pumice.webhook.settings import AdmissionSettings

SETTINGS = AdmissionSettings(scheduler_names=("volcano", "other"))
BY_PATH = {each.path: each for each in REGISTRATIONS}


def test_paths_and_names_are_volcanos() -> None:
    assert {each.path: (each.name, each.configuration_name) for each in REGISTRATIONS} == {
        f"/{plural}/{verb}": (
            f"{verb}{plural.removesuffix('s')}.volcano.sh",
            f"volcano-admission-service-{plural}-{verb}",
        )
        for plural in ("jobs", "queues", "podgroups", "pods")
        for verb in ("mutate", "validate")
    }


def test_an_outage_stops_only_our_own_kinds() -> None:
    for each in REGISTRATIONS:
        own = each.kind.group.endswith("volcano.sh")
        assert each.failure_policy == ("Fail" if own else "Ignore"), each.path


def test_what_defaults_is_asked_on_updates_too() -> None:
    for path in ("/jobs/mutate", "/queues/mutate", "/podgroups/mutate"):
        assert BY_PATH[path].operations == ("CREATE", "UPDATE")
    assert BY_PATH["/queues/validate"].operations == ("CREATE", "UPDATE", "DELETE")
    assert BY_PATH["/pods/mutate"].operations == ("CREATE",)


def test_a_configuration_is_complete() -> None:
    found = configuration(
        BY_PATH["/jobs/mutate"],
        SETTINGS,
        {"url": "https://127.0.0.1:1/jobs/mutate"},
        exempt_namespaces=("kube-system", "pumice-system"),
    )
    assert found["kind"] == "MutatingWebhookConfiguration"
    assert found["metadata"] == {"name": "volcano-admission-service-jobs-mutate"}
    (webhook,) = found["webhooks"]
    conditions = webhook.pop("matchConditions")
    assert [each["name"] for each in conditions] == [
        "not-being-deleted",
        "spec-or-topology-changes",
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
                    "values": ["kube-system", "pumice-system"],
                }
            ]
        },
    }


def test_cluster_wide_kinds_have_no_namespaces_to_exempt() -> None:
    found = configuration(BY_PATH["/queues/validate"], SETTINGS, {})
    (webhook,) = found["webhooks"]
    assert "namespaceSelector" not in webhook
    assert "reinvocationPolicy" not in webhook
    assert webhook["rules"][0]["scope"] == "Cluster"


@pytest.mark.parametrize("path", ["/pods/mutate", "/pods/validate"])
def test_pods_are_asked_about_by_scheduler(path: str) -> None:
    (webhook,) = configuration(BY_PATH[path], SETTINGS, {})["webhooks"]
    expressions = [each["expression"] for each in webhook["matchConditions"]]
    assert "object.spec.schedulerName in ['volcano', 'other']" in expressions[0]


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
