"""A manifest judged at a desk."""

import copy
import datetime
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import ManifestResult, judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, pod, queue
from tests.unit.webhook.reviewing import merged

Raw = dict[str, Any]


def judged(manifest: Raw, operation: str = "CREATE", old: Raw | None = None) -> ManifestResult:
    admission = Admission(AdmissionSettings(), Snapshot.of([queue("default")]), builtin())
    return judge(admission, manifest, operation, old)


def codes(found: ManifestResult) -> list[str]:
    return [error.code for error in found.errors]


def test_a_good_job_comes_out_as_it_would_be_stored() -> None:
    manifest = job(tasks=[{"replicas": 2, "template": {"spec": {"containers": [MAIN]}}}])
    found = judged(manifest)
    assert found.allowed
    assert found.warnings == ()
    spec = found.patched["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["minAvailable"]) == ("default", 3, 2)
    assert spec["tasks"][0]["name"] == "default0"
    assert "queue" not in manifest["spec"]


MAIN = {"name": "main", "image": "busybox"}


def test_schema_and_rules_are_reported_together_once_a_field() -> None:
    found = judged(
        job(
            tasks=[{"name": "a", "replicas": -1, "template": {"spec": {"containers": [MAIN]}}}],
            minAvailable=3,
            priorityClassName="Not A Name",
            policies=[{"event": "PodFaild", "action": "RestartJob"}],
            plugins={"nope": []},
        )
    )
    assert not found.allowed
    paths = [error.path for error in found.errors]
    assert len(paths) == len(set(paths))
    assert dict(zip(paths, codes(found), strict=True)) == {
        "spec.priorityClassName": "SCHEMA-PATTERN",
        "spec.tasks[0].replicas": "JOB-NEGATIVE",
        "spec.minAvailable": "JOB-MINAVAIL-TOTAL",
        "spec.policies[0].event": "POL-BAD-EVENT",
        "spec.plugins.nope": "JOB-PLUGIN",
    }


@pytest.mark.parametrize(
    ("mode", "hint"), [("Hard", ' (did you mean "hard"?)'), ("everywhere", "")]
)
def test_a_word_out_of_a_few_is_reported_with_the_others(mode: str, hint: str) -> None:
    found = judged(job(networkTopology={"mode": mode}))
    (error,) = found.errors
    assert (error.code, error.path) == ("SCHEMA-ENUM", "spec.networkTopology.mode")
    assert error.message == f'must be hard or soft, found "{mode}"{hint}'


def test_wrong_types_do_not_hide_the_rules() -> None:
    found = judged(job(maxRetry="3", plugins={"nope": []}, queue="gone"))
    assert sorted(codes(found)) == ["JOB-PLUGIN", "JOB-QUEUE-MISSING", "SCHEMA-TYPE"]


def test_a_number_with_quotes_is_reported_and_not_compared_with() -> None:
    """`minAvailable: 9` is not compared with the replicas of tasks, of which one cannot be read."""
    task = {"name": "worker", "replicas": "4", "template": {"spec": {"containers": [MAIN]}}}
    found = judged(job(tasks=[task], minAvailable=9))
    assert {each.path: each.message for each in found.errors} == {
        "spec.tasks[0].replicas": 'json: cannot unmarshal the string "4" into an integer; leave out the quotes',
    }


def test_an_annotation_without_quotes_that_a_plugin_would_write_is_reported() -> None:
    key = "volcano.sh/task-topology-affinity"
    manifest = job(plugins={"task-topology": ["--affinity=[[worker]]"]})
    found = judged(merged(manifest, {"metadata": {"annotations": {key: 5}}}))
    assert [each.path for each in found.errors] == [f"metadata.annotations[{key}]"]


def test_what_is_filled_in_is_filled_in_beside_a_field_that_cannot_be_read() -> None:
    found = judged(merged(queue("team"), {"spec": {"weight": 0, "reclaimable": "yes"}}))
    assert codes(found) == ["SCHEMA-TYPE"]
    assert [(each.path, each.code) for each in found.warnings] == [("spec.weight", "Q-ZERO")]


def test_beside_a_field_that_cannot_be_read_nothing_is_wrong_that_would_be_filled_in() -> None:
    unnamed = {"replicas": 1, "template": {"spec": {"containers": [MAIN]}}}
    found = judged(job(tasks=[unnamed], maxRetry="3"))
    assert [(each.path, each.code) for each in found.errors] == [("spec.maxRetry", "SCHEMA-TYPE")]


@pytest.mark.parametrize(
    "spec",
    [
        {"policies": [{"exitCode": "3", "action": "AbortJob"}]},
        {"volumes": [{"mountPath": "/data", "volumeClaim": "scratch"}]},
    ],
)
def test_a_field_that_cannot_be_read_is_not_said_to_be_missing(spec: Raw) -> None:
    assert codes(judged(job(**spec))) == ["SCHEMA-TYPE"]


def test_names_that_are_there_twice_are_reported_beside_a_field_that_cannot_be_read() -> None:
    tasks = [{"name": "worker", "replicas": 1, "template": {"spec": {"containers": [MAIN]}}}] * 2
    found = judged(job(tasks=tasks, maxRetry="3"))
    assert sorted(codes(found)) == ["JOB-DUP-TASK", "SCHEMA-TYPE"]


def test_annotations_without_quotes_are_reported_of_pods_too() -> None:
    budget = {"volcano.sh/jdb-min-available": 1}
    found = judged(merged(pod(), {"metadata": {"annotations": budget}})).errors
    assert [(each.path, each.code) for each in found] == [
        ("metadata.annotations[volcano.sh/jdb-min-available]", "SCHEMA-TYPE")
    ]


def test_an_annotation_without_quotes_is_not_said_to_be_missing() -> None:
    steps = {"volcano.sh/hierarchy": "root", "volcano.sh/hierarchy-weights": 1}
    found = judged(merged(queue("team"), {"metadata": {"annotations": steps}}))
    assert codes(found) == ["SCHEMA-TYPE"]


def test_a_queue_whose_name_is_still_to_be_generated_is_not_its_own_parent() -> None:
    unnamed = {**queue("team"), "metadata": {"generateName": "team-"}}
    assert judged(unnamed).allowed


def test_labels_and_annotations_are_judged_as_the_api_server_does() -> None:
    """What has no quotes is no text; it hides nothing else."""
    meta = {
        "labels": {"team": 5, "app": "a b", "gone": None},
        "annotations": {"volcano.sh/preemptable": True, "my note": "x", "list": []},
    }
    found = judged(merged(job(plugins={"nope": []}), {"metadata": meta}))
    told = {each.path: each.message for each in found.errors}
    odd = "must consist of alphanumeric characters"
    assert f"a valid label {odd.replace('must', 'must be an empty string or')}" in told.pop(
        "metadata.labels[app]"
    )
    assert f"invalid key: name part {odd}" in told.pop("metadata.annotations[my note]")
    assert told.pop("spec.plugins.nope")
    assert told == {
        "metadata.labels[team]": "json: cannot unmarshal the integer 5 into a string; put it in quotes",
        "metadata.annotations[volcano.sh/preemptable]": "json: cannot unmarshal the boolean true into a string; put it in quotes",
        "metadata.annotations[list]": "json: cannot unmarshal a list into a string",
    }
    assert found.patched["metadata"]["labels"]["team"] == 5


def test_a_field_that_does_not_exist_is_warned_about_and_dropped() -> None:
    found = judged(merged(job(), {"spec": {"replicas": 3}}))
    assert found.allowed
    assert [(each.path, each.code) for each in found.warnings] == [
        ("spec.replicas", "SCHEMA-UNKNOWN")
    ]
    assert "replicas" not in found.patched["spec"]


@pytest.mark.parametrize(
    ("manifest", "path", "hint"),
    [
        (job(plugins={"svc": []}), "spec.plugins.pytorch", "; write []"),
        (queue("q"), "spec.capability.cpu", "were not there"),
    ],
    ids=["plugin", "capability"],
)
def test_an_entry_that_is_null_is_warned_about_as_it_goes(
    manifest: Raw, path: str, hint: str
) -> None:
    section, field = path.split(".")[1], path.rpartition(".")[2]
    manifest = copy.deepcopy(manifest)
    manifest["spec"].setdefault(section, {})[field] = None
    found = judged(manifest)
    assert found.allowed
    [warning] = found.warnings
    assert (warning.path, warning.code) == (path, "SCHEMA-NULL")
    assert warning.message.endswith(hint)
    assert field not in found.patched["spec"].get(section, {})


def test_a_field_that_is_null_is_as_good_as_left_out() -> None:
    assert judged(job(queue=None, volumes=None)).warnings == ()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "Upper"}, ["SCHEMA-NAME"]),
        ({"name": ""}, ["JOB-NAME"]),
        ({"name": None}, ["JOB-NAME"]),
        ({"name": None, "generateName": "train-"}, []),
        ({"name": "a" * 70}, ["JOB-NAME"]),
        ({"namespace": "Team_A"}, ["SCHEMA-NAME"]),
        ({"name": None, "generateName": "Train-"}, ["SCHEMA-NAME"]),
        ({"name": None, "generateName": "a.-"}, []),
    ],
)
def test_the_name_is_judged_as_the_api_server_does(metadata: Raw, expected: list[str]) -> None:
    assert codes(judged(merged(job(), {"metadata": metadata}))) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"plugins": ["svc", "env"]},
            'json: cannot unmarshal a list into an object; write "svc: []"',
        ),
        (
            {"tasks": {"worker": {"replicas": 1}}},
            'json: cannot unmarshal an object into a list; begin each item with "-"',
        ),
    ],
)
def test_a_list_and_a_map_that_change_places_are_reported_once(spec: Raw, message: str) -> None:
    found = judged(merged(job(), {"spec": spec}))
    assert [each.message for each in found.errors] == [message]
    assert found.warnings == ()


def test_the_namespace_of_what_is_in_none_is_not_looked_at() -> None:
    assert judged(merged(queue("q"), {"metadata": {"namespace": "Team_A"}})).allowed


@pytest.mark.parametrize(("field", "name"), [("name", "My_Job"), ("generateName", "My_Job-")])
def test_names_made_of_an_impossible_one_are_not_told_besides(field: str, name: str) -> None:
    metadata = {"name": None, field: name}
    manifest = merged(job(plugins={"ssh": [], "tensorflow": []}), {"metadata": metadata})
    [error] = judged(manifest).errors
    assert (error.path, error.code) == (f"metadata.{field}", "SCHEMA-NAME")
    assert error.message.endswith(f'found "{name}"')


def test_a_name_that_is_missing_is_not_called_badly_spelt() -> None:
    [error] = judged(merged(job(), {"metadata": {"name": None}})).errors
    assert error.message == 'create job with name "" validate failed: must be set, or generateName'


def test_a_container_that_is_there_twice_is_reported_once() -> None:
    containers = [MAIN, MAIN, {"image": "busybox"}, {"image": "busybox"}]
    task = {"name": "a", "replicas": 1, "template": {"spec": {"containers": containers}}}
    found = judged(job(tasks=[task])).errors
    where = "spec.tasks[0].template.spec.containers"
    assert [(each.path, each.code) for each in found] == [
        (f"{where}[1].name", "TPL-CONTAINER-DUP"),
        (f"{where}[2].name", "TPL-CONTAINER-NAME"),
        (f"{where}[3].name", "TPL-CONTAINER-NAME"),
    ]


def test_a_queue_is_defaulted_and_judged() -> None:
    bare = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"deserved": {"cpu": 3}, "capability": {"cpu": 2}},
    }
    found = judged(bare)
    assert codes(found) == ["Q-DES-GT-CAP"]
    assert found.patched["spec"]["reclaimable"] is True
    assert found.patched["spec"]["weight"] == 1


def test_what_rules_add_has_its_defaults() -> None:
    bare = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
    }
    empty = judged(bare | {"spec": {}}).patched["spec"]
    assert judged(bare).patched["spec"] == empty
    assert empty["dequeueStrategy"] == "traverse"


def test_an_update_is_judged_as_one() -> None:
    stored = judged(job()).patched
    assert judged(job(), "UPDATE", stored).patched == stored
    assert codes(judged(job(queue="gone"), "UPDATE", stored)) == ["JOB-IMMUTABLE"]


def test_a_pod_is_judged_without_a_schema() -> None:
    found = judged(pod(annotations={"volcano.sh/jdb-min-available": "none"}))
    assert codes(found) == ["POD-JDB-PARSE"]
    assert judged(pod()).allowed


def test_an_unknown_kind_is_admitted_as_it_is() -> None:
    manifest = {"apiVersion": "v2", "kind": "Thing", "spec": 5}
    assert judged(manifest) == ManifestResult((), (), manifest)
    assert judged({}).allowed


def test_what_yaml_knows_and_json_does_not() -> None:
    dated = merged(job(), {"metadata": {"annotations": {"day": datetime.date(2026, 1, 2)}}})
    assert judged(dated).patched["metadata"]["annotations"] == {"day": "2026-01-02"}
    assert codes(judged(merged(job(), {"spec": {"plugins": object()}}))) == ["SCHEMA-TYPE"]


def test_nesting_without_end_is_refused() -> None:
    deep: Raw = {}
    for _ in range(800):
        deep = {"a": deep}
    found = judged(job(tasks=[{"name": "a", "replicas": 1, "template": {"spec": deep}}]))
    assert codes(found) in (["SCHEMA-TYPE"], ["TPL-CONTAINERS"])


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        (
            "batch.volcano.sh/v1alpha1",
            "CronJob",
            {"schedule": "@dayly", "timeZone": "", "jobTemplate": {"spec": {"tasks": []}}},
            {
                "spec.jobTemplate.spec.tasks": "JOB-NO-TASKS",
                "spec.schedule": "CRON-SCHEDULE",
                "spec.timeZone": "CRON-ZONE",
            },
        ),
        (
            "flow.volcano.sh/v1alpha1",
            "JobFlow",
            {
                "flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}],
                "jobRetainPolicy": "keep",
            },
            {
                "spec.flows[0].dependsOn.targets[0]": "FLOW-UNDEFINED",
                "spec.jobRetainPolicy": "SCHEMA-ENUM",
            },
        ),
        (
            "flow.volcano.sh/v1alpha1",
            "JobTemplate",
            {"queue": "root", "plugins": {"nope": []}, "maxRetry": "3"},
            {
                "spec.tasks": "JOB-NO-TASKS",
                "spec.maxRetry": "SCHEMA-TYPE",
                "spec.plugins.nope": "JOB-PLUGIN",
                "spec.queue": "JOB-QUEUE-ROOT",
            },
        ),
        (
            "topology.volcano.sh/v1alpha1",
            "HyperNode",
            {"members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]},
            {
                "spec.members[0].selector.regexMatch.pattern": "HN-REGEX",
                "spec.tier": "SCHEMA-REQUIRED",
            },
        ),
    ],
)
def test_kinds_whose_controllers_come_later_are_judged(
    api_version: str, kind: str, spec: Raw, expected: dict[str, str]
) -> None:
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}
    assert {error.path: error.code for error in judged(manifest).errors} == expected


def test_a_cronjob_is_stored_without_what_only_its_jobs_are_given() -> None:
    template = {"tasks": [{"replicas": 2, "template": {"spec": {"containers": [MAIN]}}}]}
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "it"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": template}},
    }
    found = judged(manifest)
    assert found.allowed
    stored = found.patched["spec"]["jobTemplate"]["spec"]
    assert stored == template | {"queue": "default", "maxRetry": 3}
