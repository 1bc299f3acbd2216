"""`pumice lint`: what admission says, offline, of everything in the files."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.builders import job, pod, queue, task
from tests.unit.cli.conftest import Pumice, texts

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_good_job_is_admitted_and_what_would_change_is_reported(pumice: Pumice) -> None:
    ran = pumice("lint", EXAMPLES / "tensorflow.yaml", "-o", "json")
    assert ran.code == 0
    [found] = ran.json
    keys = ["object", "allowed", "errors", "warnings", "patched", "file", "line", "problems"]
    assert list(found) == keys
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
    assert all({"code", "path", "message"} < set(error) for error in found["errors"])
    assert any("publish-not-ready-adresses" in warning for warning in found["warnings"])


def test_text_for_people(pumice: Pumice) -> None:
    ran = pumice("lint", EXAMPLES / "bad-job.yaml", EXAMPLES / "tensorflow.yaml")
    assert ran.code == 1
    assert "Job/default/bad: refused" in ran.out
    place = f"{EXAMPLES / 'bad-job.yaml'}:13: spec.plugins.tensorbaord"
    assert f'  error    {place}: unable to find job plugin "tensorbaord"' in ran.out
    assert "Job/default/train: admitted" in ran.out
    assert "change" not in ran.out
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


def test_where_no_queue_is_given_it_is_unknown_which_exist(pumice: Pumice) -> None:
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
        f'{conf}: line 3: resourceGroups[0].lables: unknown key, ignored (did you mean "labels"?)\n'
    )
    conf.write_text("")
    assert pumice("lint", "-", "--admission-conf", conf, stdin=texts(job())).code == 0


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("resourceGroups: 3", ['line 1: resourceGroups: must be a list, found the string "3"']),
        (
            "other: []",
            ["line 1: other: unknown key, ignored", "line 1: resourceGroups: must be set"],
        ),
        ("[]", ["line 1: must be an object, found a list"]),
        (
            "resourceGroups:\n- {}\n- resourceGroup: g\n  schedulerName: A\n  lables: {}\n",
            [
                "line 5: resourceGroups[1].lables: unknown key, ignored",
                "line 2: resourceGroups[0]: needs a name",
                "line 4: resourceGroups[1].schedulerName: a lowercase RFC 1123 subdomain must consist",
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
        (("completions: 4", "completions: many"), 1, "spec.completions: json: cannot unmarshal"),
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


def test_misspelt_fields_are_reported_with_what_was_meant(pumice: Pumice) -> None:
    misspelt = job("train", [task("worker", 1)])
    misspelt["spec"]["minAvalable"] = 1

    ran = pumice("lint", "-", stdin=texts(misspelt))

    assert ran.code == 0
    assert (
        'spec.minAvalable: is not a field of this kind and is dropped (did you mean "minAvailable"?)'
        in ran.out
    )
    assert ran.out.count("spec.minAvalable") == 1  # and not once more as a change


def test_a_null_that_goes_is_reported_once(pumice: Pumice) -> None:
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
    assert ran.err == f"skipped {shown}/default: v1 is not validated\n"


def test_a_directory_is_linted_file_by_file(pumice: Pumice, tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = texts(job(name, [task("worker", 1)]))
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")

    ran = pumice("lint", tmp_path, "-o", "json")

    assert [each["object"] for each in ran.json] == ["Job/default/one", "Job/default/two"]


def test_foreign_files_of_a_folder_are_skipped(pumice: Pumice, tmp_path: Path) -> None:
    for name, text in {
        ".github/workflows/ci.yaml": "on: [push]\n",
        "ci/pipeline.yaml": "stages: [test]\n",
        "bad.yaml": texts(job("bad", minAvailable=9)),
        "good.yaml": texts(job("good", [task("worker", 1)])),
        "values.yaml": "replicas: 3\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    ran = pumice("lint", tmp_path, "-o", "json")

    assert ran.code == 1
    assert [each["object"] for each in ran.json] == ["Job/default/bad", "Job/default/good"]
    said = [line.partition(":")[0] for line in ran.err.splitlines()]
    assert said == [f"skipped {tmp_path}/ci/pipeline.yaml", f"skipped {tmp_path}/values.yaml"]
    (tmp_path / "bad.yaml").unlink()
    assert pumice("lint", tmp_path).code == 0


@pytest.mark.parametrize("output", ["json", "text"])
def test_what_cannot_be_read_is_reported_after_the_results(
    pumice: Pumice, tmp_path: Path, output: str
) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f"{texts(job('bad', minAvailable=9))}\n---\na: [1\n---\n{texts(job('good'))}\n")
    ran = pumice("lint", file, tmp_path / "none.yaml", "-o", output)

    assert ran.code == 2
    if output == "json":
        assert [each["allowed"] for each in ran.json] == [False, True]
    else:
        assert ran.out.endswith("2 objects: 1 admitted, 1 refused\n")
    assert ran.err.splitlines() == [
        f"pumice lint: {file}: document 2, line 4: did not find expected ',' or ']'",
        f"pumice lint: {tmp_path}/none.yaml: no such file",
    ]


def test_json_with_a_trailing_comma_is_refused(pumice: Pumice) -> None:
    ran = pumice("lint", "-", stdin=texts(job())[:-1] + ",}")
    assert (ran.code, ran.out) == (2, "")
    assert "pumice lint: stdin: document 1, line 1, column" in ran.err
    assert "trailing comma" in ran.err


@pytest.mark.parametrize("linted", [[job()], [job(), queue("q")]], ids=["unused", "updated"])
def test_a_state_that_cannot_be_used_leaves_no_half_of_a_result(
    pumice: Pumice, tmp_path: Path, linted: list[dict[str, Any]]
) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(texts(queue("q") | {"spec": 7}))
    ran = pumice("lint", "-", "--state", state, "-o", "json", stdin=texts(*linted))
    assert (ran.code, ran.out) == (2, "")
    assert "--state: Expected `object`, got `int`" in ran.err
