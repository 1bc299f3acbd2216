"""`pumice lint`: what admission says, offline, of everything in the files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import job, pod, queue, task
from tests.unit.cli.conftest import Pumice

EXAMPLES = Path(__file__).parents[3] / "examples"


def texts(*objects: dict[str, Any]) -> str:
    return "\n".join(json.dumps(each) for each in objects)


def test_a_good_job_is_admitted_and_what_would_change_is_told(pumice: Pumice) -> None:
    ran = pumice("lint", EXAMPLES / "tensorflow.yaml", "-o", "json")
    assert ran.code == 0
    [found] = ran.json
    assert list(found) == ["object", "allowed", "errors", "warnings", "patched"]
    assert found["object"] == "Job/default/train"
    assert found["allowed"] is True
    assert found["errors"] == []
    assert found["patched"]["spec"]["plugins"]["svc"] == []
    assert found["patched"]["metadata"]["namespace"] == "default"


def test_a_bad_job_is_refused_for_all_its_mistakes(pumice: Pumice) -> None:
    ran = pumice("lint", EXAMPLES / "bad-job.yaml", "-o", "json")
    assert ran.code == 1
    [found] = ran.json
    assert found["allowed"] is False
    assert {"JOB-DUP-TASK", "JOB-PLUGIN", "POL-BAD-ACTION", "VOL-DUP"} <= {
        error["code"] for error in found["errors"]
    }
    assert all(set(error) == {"code", "path", "message"} for error in found["errors"])
    assert any("publish-not-ready-adresses" in warning for warning in found["warnings"])


def test_text_for_people(pumice: Pumice) -> None:
    ran = pumice("lint", EXAMPLES / "bad-job.yaml", EXAMPLES / "tensorflow.yaml")
    assert ran.code == 1
    assert "Job/default/bad: refused" in ran.out
    assert '  error    spec.plugins.tensorbaord: unknown plugin "tensorbaord"' in ran.out
    assert "Job/default/train: admitted" in ran.out
    assert "  change   spec.plugins.svc: [] added" in ran.out
    assert ran.out.endswith("2 objects: 1 admitted, 1 refused\n")
    assert "\x1b" not in ran.out


def test_the_schema_counts_too(pumice: Pumice) -> None:
    broken = job(maxRetry=-1, minAvailable="two", nonsense=1)
    ran = pumice("lint", "-", "-o", "json", stdin=texts(broken))
    assert ran.code == 1
    [found] = ran.json
    assert {"spec.maxRetry", "spec.minAvailable"} <= {error["path"] for error in found["errors"]}
    assert any("spec.nonsense" in warning for warning in found["warnings"])
    assert "nonsense" not in found["patched"]["spec"]


def test_objects_in_the_files_are_state_for_each_other(pumice: Pumice) -> None:
    text = texts(job(queue="research"), queue("research"))
    ran = pumice("lint", "-", "-o", "json", stdin=text)
    assert [each["object"] for each in ran.json] == ["Job/default/train", "Queue/research"]
    assert ran.code == 0
    elsewhere = pumice("lint", "-", stdin=texts(job(queue="elsewhere"), queue("research")))
    assert elsewhere.code == 1


def test_where_no_queue_is_given_nobody_can_tell_which_exist(pumice: Pumice) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=texts(job(queue="research")))
    assert ran.code == 0
    assert any("JOB-QUEUE-UNKNOWN" in warning for warning in ran.json[0]["warnings"])


def test_state_is_known_but_not_judged(pumice: Pumice, tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(texts(queue("research"), queue("closed", state="Closed")))
    good = pumice("lint", "-", "--state", state, "-o", "json", stdin=texts(job(queue="research")))
    assert (good.code, len(good.json)) == (0, 1)
    closed = pumice("lint", "-", "--state", state, "-o", "json", stdin=texts(job(queue="closed")))
    assert closed.code == 1


def test_what_the_state_holds_is_judged_as_an_update(pumice: Pumice, tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(texts(job(queue="default")))
    same = pumice("lint", "-", "--state", state, "-o", "json", stdin=texts(job(queue="default")))
    assert same.code == 0
    other = pumice(
        "lint",
        "-",
        "--state",
        state,
        "-o",
        "json",
        stdin=texts(job(tasks=[task("a")], queue="other")),
    )
    assert other.code == 1


def test_a_queue_is_not_its_own_sibling(pumice: Pumice) -> None:
    parent = queue("parent", deserved={"cpu": "4"}, capability={"cpu": "4"})
    child = queue("child", parent="parent", deserved={"cpu": "3"}, capability={"cpu": "4"})
    ran = pumice("lint", "-", "-o", "json", stdin=texts(parent, child))
    assert [found["errors"] for found in ran.json] == [[], []]


def test_other_kinds_are_skipped_with_a_word(pumice: Pumice) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(deployment, job()))
    assert ran.code == 0
    assert [each["object"] for each in ran.json] == ["Job/default/train"]
    assert "skipped Deployment/default/web" in ran.err


def test_pods_are_judged(pumice: Pumice) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=texts(pod("p", group="pg")))
    assert [each["object"] for each in ran.json] == ["Pod/default/p"]


def test_settings_change_the_verdict(pumice: Pumice) -> None:
    other = job(schedulerName="mine")
    strict = pumice("lint", "-", "-o", "json", "--set", "scheduler-name=mine", stdin=texts(other))
    assert strict.code == 0
    deep = [queue("q1")] + [queue(f"q{n}", parent=f"q{n - 1}") for n in range(2, 5)]
    assert pumice("lint", "-", stdin=texts(*deep)).code == 0
    assert pumice("lint", "-", "--set", "max-queue-depth=2", stdin=texts(*deep)).code == 1


def test_resource_groups_are_applied(pumice: Pumice, tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("resourceGroups:\n- resourceGroup: gpu\n  lables: {}\n  labels: {class: gpu}\n")
    member = pod("p", annotations={"volcano.sh/resource-group": "gpu"})
    ran = pumice("lint", "-", "-o", "json", "--admission-conf", conf, stdin=texts(member, pod("q")))
    assert ran.code == 0
    assert [each["patched"]["spec"].get("nodeSelector") for each in ran.json] == [
        {"class": "gpu"},
        None,
    ]
    assert ran.err == (
        f"{conf}: line 3: resourceGroups[0].lables: is no field and has no effect "
        '(did you mean "labels"?)\n'
    )
    conf.write_text("")
    assert pumice("lint", "-", "--admission-conf", conf, stdin=texts(job())).code == 0


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("resourceGroups: 3", ['line 1: resourceGroups: must be a list, found "3"']),
        (
            "other: []",
            ["line 1: other: is no field", "line 1: must hold a list resourceGroups"],
        ),
        ("[]", ["line 1: must be a mapping, found a list"]),
        (
            "resourceGroups:\n- {}\n- resourceGroup: g\n  schedulerName: A\n  lables: {}\n",
            [
                "line 5: resourceGroups[1].lables: is no field and has no effect",
                "line 2: resourceGroups[0]: needs a name",
                "line 4: resourceGroups[1].schedulerName: must consist",
                "2 problems, the first in line 2: resourceGroups[0]: needs a name",
            ],
        ),
    ],
)
def test_resource_groups_that_cannot_be_used(
    pumice: Pumice, tmp_path: Path, text: str, lines: list[str]
) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(text)
    ran = pumice("lint", "-", "--admission-conf", conf, stdin=texts(job()))
    assert ran.code == 2
    said = ran.err.splitlines()
    assert len(said) == len(lines)
    for found, wanted in zip(said, lines, strict=True):
        assert f"{conf}: {wanted}" in found


@pytest.mark.parametrize("spec", [None, [], "x"])
def test_a_spec_of_the_wrong_type_is_refused_and_not_a_crash(pumice: Pumice, spec: Any) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=texts(job() | {"spec": spec}))
    assert ran.code == 1
    assert ran.json[0]["errors"]


@pytest.mark.parametrize("metadata", [None, [], {}, {"name": 3}, {"name": "A"}])
def test_metadata_of_any_shape_is_refused_and_not_a_crash(pumice: Pumice, metadata: Any) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=texts(job() | {"metadata": metadata}))
    assert ran.code == 1
    assert ran.json[0]["errors"]


@pytest.mark.parametrize("kind", ["Queue", "PriorityClass", "HyperNode", "PodGroup"])
def test_an_object_that_does_not_decode_stops_no_other(pumice: Pumice, kind: str) -> None:
    groups = {"Queue": "scheduling.volcano.sh/v1beta1", "PodGroup": "scheduling.volcano.sh/v1beta1"}
    groups |= {"PriorityClass": "scheduling.k8s.io/v1", "HyperNode": "topology.volcano.sh/v1alpha1"}
    spec = {"weight": "3", "queue": 3, "members": 3, "tier": "low"}
    bad = {"kind": kind, "apiVersion": groups[kind], "metadata": {"name": "team"}, "spec": spec}
    good = job(queue="team" if kind == "Queue" else "default")
    ran = pumice("lint", "-", "-o", "json", stdin=texts(bad | {"value": "high"}, good))
    assert "--state" not in ran.err
    found = {each["object"].partition("/")[0]: each for each in ran.json}
    assert found["Job"]["allowed"] is True
    assert kind not in found or found[kind]["allowed"] is False


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        (("Indexed", "NonIndexed"), 1, "POD-PLUGINS-FORM"),
        (("parallelism: 4", "parallelism: 2"), 0, "POD-PLUGINS-DOUBT"),
        (
            ("pumice.dev/plugins: ", "pumice.dev/wired: svc\n        pumice.dev/plugins: "),
            0,
            "POD-PLUGINS-DOUBT",
        ),
        (("completions: 4", "completions: many"), 1, "spec.completions: must be a whole number"),
        (("pumice.dev/plugins", "example.com/plugins"), 0, "skipped Job/default/resnet"),
    ],
)
def test_plugins_of_an_indexed_job_are_judged(
    pumice: Pumice, change: tuple[str, str], code: int, word: str
) -> None:
    example = Path(__file__).parents[3] / "examples/indexed-job-pytorch.yaml"
    ran = pumice("lint", "-", stdin=example.read_text().replace(*change))
    assert ran.code == code
    assert word in ran.out + ran.err


def test_misspelt_fields_are_told_with_what_was_meant(pumice: Pumice) -> None:
    misspelt = job("train", [task("worker", 1)])
    misspelt["spec"]["minAvalable"] = 1

    ran = pumice("lint", "-", stdin=texts(misspelt))

    assert ran.code == 0
    assert (
        'spec.minAvalable: is not a field of this kind and is dropped (did you mean "minAvailable"?)'
        in ran.out
    )
    assert ran.out.count("spec.minAvalable") == 1  # and not once more as a change


@pytest.mark.parametrize(
    ("version", "kind", "path", "meant"),
    [
        ("batch.volcano.sh/v1alpha1", "job", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Jobb", "kind", "Job"),
        ("batch.volcano.sh/v1alpha1", "VolcanoJob", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Queue", "kind", "scheduling.volcano.sh/v1beta1 Queue"),
        ("batch.volcano.sh/v1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1beta1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh/v1alpha1", "Jobs", "kind", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.sh", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.io/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.volcano.io/v1alpha1", "Thing", "apiVersion", "batch.volcano.sh/v1alpha1"),
        ("bacth.volcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("batch.vulcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("Batch.Volcano.sh/v1alpha1", "Job", "apiVersion", "batch.volcano.sh/v1alpha1 Job"),
        ("volcano.sh/v1beta1", "Queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("queues.volcano.sh/v1", "queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("scheduling.volcano.sh/v1", "Queue", "apiVersion", "scheduling.volcano.sh/v1beta1 Queue"),
        ("v1", "PodGroup", "kind", "scheduling.volcano.sh/v1beta1 PodGroup"),
        ("v1alpha1", "PodGroup", "apiVersion", "scheduling.volcano.sh/v1beta1 PodGroup"),
        ("batch/v1alpha1", "Job", "apiVersion", "batch/v1 Job"),
        ("batch/v1", "Jobs", "kind", "batch/v1 Job"),
        ("v1", "pod", "kind", "v1 Pod"),
        ("core/v1", "Pod", "apiVersion", "v1 Pod"),
        ("V1", "Pod", "apiVersion", "v1 Pod"),
        (
            "scheduling.volcano.sh/v1alpha2",
            "PodGroup",
            "apiVersion",
            "scheduling.volcano.sh/v1beta1 PodGroup",
        ),
    ],
)
def test_a_kind_that_no_api_server_has_is_refused(
    pumice: Pumice, version: str, kind: str, path: str, meant: str
) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(manifest, job()))
    assert (ran.code, ran.err) == (1, "")
    message = f'there is no kind "{version} {kind}" (did you mean "{meant}"?)'
    refused, good = ran.json
    assert refused == {
        "object": f"{kind}/default/a",
        "allowed": False,
        "errors": [{"code": "SCHEMA-KIND", "path": path, "message": message}],
        "warnings": [],
        "patched": manifest,
    }
    assert good["allowed"] is True


def test_a_job_with_tasks_is_volcanos(pumice: Pumice) -> None:
    ran = pumice("lint", "-", stdin=texts({**job(), "apiVersion": "batch/v1alpha1"}))
    assert ran.code == 1
    assert '(did you mean "batch.volcano.sh/v1alpha1 Job"?) [SCHEMA-KIND]' in ran.out


@pytest.mark.parametrize(
    "spelt",
    [
        "kubeflow.org/v1 PyTorchJob",
        "kubeflow.org/v1 Job",
        "argoproj.io/v1alpha1 Workflow",
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        "scheduling.incubator.k8s.io/v1alpha1 PodGroup",
        "scheduling.run.ai/v2 Queue",
        "batch.tutorial.kubebuilder.io/v1 CronJob",
        "nodeinfo.volcano.sh/v1alpha1 Numatopology",
        "shard.volcano.sh/v1alpha1 NodeShard",
        "workload.serving.volcano.sh/v1alpha1 ModelServing",
        "jobset.x-k8s.io/v1 JobSet",
        "batch/v1 CronJob",
        "batch/v1 Job",
        "apps/v1 Deployment",
        "v1 Config",
        "v2 Chart",
    ],
)
def test_a_kind_of_another_project_is_skipped(pumice: Pumice, spelt: str) -> None:
    version, kind = spelt.split()
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    ran = pumice("lint", "-", "-o", "json", stdin=texts(manifest, job()))
    assert (ran.code, len(ran.json)) == (0, 1)
    assert ran.err == f"skipped {kind}/default/a: {version} is not judged\n"


def test_a_job_of_kubernetes_with_tasks_is_skipped_with_a_hint(pumice: Pumice) -> None:
    ran = pumice("lint", "-", stdin=texts({**job(), "apiVersion": "batch/v1"}))
    assert ran.code == 0
    hint = '(did you mean "batch.volcano.sh/v1alpha1"?)'
    assert ran.err == f"skipped Job/default/train: batch/v1 is not judged {hint}\n"


def test_a_null_that_goes_is_told_once(pumice: Pumice) -> None:
    manifest = job()
    manifest["spec"]["plugins"] = {"svc": None}
    ran = pumice("lint", "-", stdin=texts(manifest))
    assert ran.code == 0
    assert ran.out.count("spec.plugins.svc") == 1


def test_names_do_nothing_to_a_terminal(pumice: Pumice) -> None:
    hostile = "a\x1b[31m\nJob/default/b: admitted"
    texts_of_both = texts(job(hostile, [task("w", 1)]), {"apiVersion": "v1", "kind": hostile})
    ran = pumice("lint", "-", stdin=texts_of_both)
    shown = r"a\x1b[31m\nJob/default/b: admitted"
    assert ran.out.startswith(f"Job/default/{shown}: refused  (stdin")
    assert ran.err == f"skipped {shown}/default: v1 is not judged\n"


def test_a_directory_is_linted_file_by_file(pumice: Pumice, tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = texts(job(name, [task("worker", 1)]))
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")

    ran = pumice("lint", tmp_path, "-o", "json")

    assert [each["object"] for each in ran.json] == ["Job/default/one", "Job/default/two"]


def test_a_kind_that_resembles_none_is_refused_without_a_guess(pumice: Pumice) -> None:
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Notebook",
        "metadata": {"name": "a"},
    }
    ran = pumice("lint", "-", stdin=texts(manifest))
    assert 'there is no kind "batch.volcano.sh/v1alpha1 Notebook" [SCHEMA-KIND]' in ran.out
