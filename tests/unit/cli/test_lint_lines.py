"""The line of each problem, in every form of the result, and what `pumice lint` leaves out or adds on request."""

import os
import threading
from pathlib import Path

import pytest

from pumice.cli.files import contents
from pumice.cli.files.manifests import Source
from pumice.cli.files.positions import Positions
from tests.kit.builders import job, task
from tests.unit.cli.conftest import Pumice, texts

MANY = """\
# Two Jobs and a List.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: first}
spec:
  plugins:
    svvc: []
  tasks:
  - name: worker
    replicas: 1
    template: &template
      spec:
        containers:
        - name: main
          resources:
            limits:
              nvidia.com/gpu: half
              cpu: 500M
  - replicas: 2
    name: worker
    minAvailable: 3
    template: *template
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: good}, spec: {containers: [{name: a, image: b}]}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: bad
    labels:
      app.kubernetes.io/name: "a b"
  spec:
    containers:
    - name: main
--- {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
  "metadata": {"name": "third"},
  "spec": {"tasks": [
    {"name": "Worker", "replicas": 1,
     "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
  ]}}
"""
LINES = {
    ("Job/default/first", "spec.plugins.svvc"): 7,
    ("Job/default/first", "spec.tasks[1].name"): 20,
    ("Job/default/first", "spec.tasks[1].minAvailable"): 21,
    ("Job/default/first", "spec.tasks[0].template.spec.containers[0].image"): 14,  # absent
    ("Job/default/first", "spec.tasks[0].template.spec.containers[0].resources.limits.cpu"): 18,
    (
        "Job/default/first",
        "spec.tasks[0].template.spec.containers[0].resources.limits.nvidia.com/gpu",
    ): 17,
    ("Job/default/first", "spec.tasks[1].template.spec.containers[0].image"): 14,  # of the alias
    ("Pod/default/bad", "metadata.labels[app.kubernetes.io/name]"): 33,
    ("Pod/default/bad", "spec.containers[0].image"): 36,
    ("Job/default/third", "spec.tasks[0].name"): 40,
}


@pytest.mark.parametrize("stdin", [False, True])
def test_each_problem_has_the_line_of_its_field_or_of_the_nearest_parent(
    pumice: Pumice, tmp_path: Path, stdin: bool
) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(MANY)
    ran = pumice("lint", "-" if stdin else file, "-o", "json", stdin=MANY)
    shown = "-" if stdin else str(file)
    found = {
        (each["object"], problem["path"]): problem["line"]
        for each in ran.json
        for problem in each["problems"]
    }
    assert LINES.items() <= found.items(), found
    assert {each["file"] for each in ran.json} == {shown}
    assert [each["line"] for each in ran.json] == [2, 24, 24, 37]
    for each in ran.json:
        assert each["errors"] == [at for at in each["problems"] if at["level"] == "error"]
        assert {at["file"] for at in each["problems"]} <= {shown}

    ran = pumice("lint", "-" if stdin else file, stdin=MANY)
    assert f"  error    {shown}:40: spec.tasks[0].name: " in ran.out
    lines = [int(line.split(":")[1]) for line in ran.out.splitlines() if "  error " in line]
    assert lines[:5] == sorted(lines[:5])


def test_a_file_is_read_for_lines_up_to_the_limit_of_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have grown since its objects were read."""
    file = tmp_path / "many.yaml"
    file.write_text(MANY)
    source = Source(str(file), line=2)
    assert Positions({}).line(source, "spec.plugins") == 6
    monkeypatch.setattr(contents, "MOST_BYTES", len(MANY) - 1)
    assert Positions({}).line(source, "spec.plugins") == 2


A_LIST = """
{"kind": "List",
 "metadata": {"items": [1]}, "items": [%s
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
  "spec": {"containers": [{"name": "a", "image": "a"}]}},
 {"apiVersion": "v1",
  "kind": "Pod",
  "spec": {"containers": [{"name": "a", "image": "a"}]},
  "metadata": {
    "name": "A"}}],
 "apiVersion": "v1"}
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (texts(job("a"), job("b", [task("w")], queue="Q_")), 2),
        ('[\n{"apiVersion": "v1",\n "kind": "Pod",\n "metadata": {\n  "name": "A"}}]', 5),
        (A_LIST % "", 10),
        (A_LIST % " # which JSON does not have", 10),
        ("\ufeffapiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: A\r\n", 4),
        ("apiVersion: v1\nkind: Pod\nx: &m\n  name: A\nmetadata:\n  <<: *m\n", 6),
        ("---\n---\nkind: Pod\napiVersion: v1\n", 3),
        ('{"apiVersion": "v1",\n\t"kind": "Pod", "metadata":\n{"name": "\\u0007"}}', 3),
    ],
    ids=["stream", "array", "list", "flow-mapping", "mark-and-crlf", "merge", "root", "tabs"],
)
def test_lines_in_every_notation(pumice: Pumice, text: str, line: int) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=text.encode())
    assert line in [problem["line"] for each in ran.json for problem in each["problems"]]


def test_a_pipe_is_read_once(pumice: Pumice, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(MANY,))
    writer.start()
    ran = pumice("lint", pipe, "--quiet")
    writer.join()
    assert f"{pipe}:40: spec.tasks[0].name: " in ran.out


def test_github_shows_problems_at_their_lines(pumice: Pumice, tmp_path: Path) -> None:
    folder = tmp_path / "a,b:c%"
    folder.mkdir()
    (folder / "job.yaml").write_text(texts(job("train", [task("w%\nx")], minAvalable=1)))
    (folder / "broken.yaml").write_text("apiVersion: v1\nkind: ]\n")
    ran = pumice("lint", folder, "-o", "github")
    shown = f"{tmp_path}/a%2Cb%3Ac%25"
    error, warning, unread = ran.out.splitlines()
    begin = f"::error file={shown}/job.yaml,line=1,title=JOB-TASK-NAME::spec.tasks[0].name: "
    assert error.startswith(begin)
    assert 'found "w%25%0Ax"' in error
    assert warning.startswith(
        f"::warning file={shown}/job.yaml,line=1,title=SCHEMA-UNKNOWN::spec.minAvalable: "
    )
    assert unread.startswith(f"::error file={shown}/broken.yaml,line=2,title=unreadable::")
    assert ran.code == 2


def test_quiet_prints_problems_alone(pumice: Pumice, tmp_path: Path) -> None:
    text = texts(job("good"), job("odd", minAvalable=1), {"apiVersion": "v1", "kind": "Service"})
    ran = pumice("lint", "-", "--quiet", stdin=text)
    assert (ran.code, ran.err) == (0, "")
    [line] = ran.out.splitlines()
    assert line.startswith("warning  -:2: spec.minAvalable: is not a field")
    ran = pumice("lint", "-", "--quiet", "-o", "json", stdin=text)
    assert [each["object"] for each in ran.json] == ["Job/default/odd"]
    assert pumice("lint", "-", "-q", stdin=texts(job("good"))).out == ""


def test_strict_fails_for_warnings(pumice: Pumice) -> None:
    text = texts(job("odd", minAvalable=1))
    assert pumice("lint", "-", stdin=text).code == 0
    ran = pumice("lint", "-", "--strict", stdin=text)
    assert ran.code == 1
    assert ran.out.endswith("1 object: 1 admitted, 0 refused; failed for 1 warning (--strict)\n")
    assert pumice("lint", "-", "--strict", stdin=texts(job("good"))).code == 0


def test_changes_are_shown_on_request(pumice: Pumice) -> None:
    text = texts(job("train", [task("w", 1)], plugins={"tensorflow": []}))
    assert "added" not in pumice("lint", "-", stdin=text).out
    assert "changes" not in pumice("lint", "-", "-o", "json", stdin=text).json[0]
    assert (
        "  change   spec.plugins.svc: [] added\n"
        in pumice("lint", "-", "--changes", stdin=text).out
    )
    [found] = pumice("lint", "-", "--changes", "-o", "json", stdin=text).json
    assert {"path": "spec.plugins.svc", "after": []} in found["changes"]


def test_the_same_object_twice_is_a_warning_with_both_places(
    pumice: Pumice, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(texts({"apiVersion": "v1", "kind": "Secret"}, job("train")))
    generated = job("x") | {"metadata": {"generateName": "x-"}}
    two.write_text(
        texts(job("train"), job("other"), generated, generated)
        + '\n{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",\n'
        '"metadata": {"namespace": "lab", "name": "train"}}'
    )
    ran = pumice("lint", one, two, one, "--quiet")
    [line] = [each for each in ran.out.splitlines() if "SCHEMA-TWICE" in each]
    assert line == (
        f"warning  {two}:1: metadata.name: Job/default/train is also at {one}:2; if both are applied, "
        "the last one stays [SCHEMA-TWICE]"
    )


TEMPLATE = "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n{{- end }}\n"
QUOTED = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: '{{ .Release.Name }}'\n"
RENDER = "render it first: helm template"


def test_a_template_of_a_chart_is_to_be_rendered_first(pumice: Pumice, tmp_path: Path) -> None:
    templates = tmp_path / "my chart" / "templates" / "jobs"
    templates.mkdir(parents=True)
    (tmp_path / "my chart" / "Chart.yaml").write_text("name: chart\n")
    for text, line in ((TEMPLATE, 1), (QUOTED, 4)):
        (templates / "job.yaml").write_text(text)
        ran = pumice("lint", templates / "job.yaml")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"pumice lint: {templates}/job.yaml: line {line}: is a template with {{{{ … }}}} actions; "
            f"{RENDER} '{tmp_path}/my chart' | pumice lint -\n"
        )
    chart = f"templates of a Helm chart; {RENDER} '{tmp_path}/my chart' | pumice lint -"
    for options in ((), ("--quiet",), ("-o", "json")):
        ran = pumice("lint", tmp_path / "my chart", *options)
        assert (ran.code, ran.out) == (2, "")
        told = f"pumice lint: no object was validated: {tmp_path}/my chart/templates: {chart}"
        assert ran.err.splitlines()[-1] == told
    assert pumice("lint", tmp_path / "my chart", "--skip-others").code == 0
    (tmp_path / "my chart" / "crd.yaml").write_text(texts(job("good")))
    ran = pumice("lint", tmp_path / "my chart")
    assert (ran.code, ran.err.count(RENDER)) == (0, 1)
    ran = pumice("lint", templates / "job.yaml", "-o", "github")
    assert f"line=4,title=unreadable::is a template with {{{{ … }}}} actions; {RENDER}" in ran.out


def test_a_kustomization_is_to_be_built_first(pumice: Pumice, tmp_path: Path) -> None:
    overlay = tmp_path / "over lay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n"
    )
    build = f"build it first: kubectl kustomize '{overlay}' | pumice lint -"
    for path in (overlay, overlay / "kustomization.yaml"):
        ran = pumice("lint", path)
        assert (ran.code, ran.out) == (2, "")
        told = f"pumice lint: no object was validated: {overlay}/kustomization.yaml: a Kustomization; {build}"
        assert ran.err.splitlines()[-1] == told
    (overlay / "job.yaml").write_text(texts(job("good")))
    ran = pumice("lint", overlay)
    assert (ran.code, ran.err) == (
        0,
        f"skipped {overlay}/kustomization.yaml: a Kustomization; {build}\n",
    )


def test_a_kustomization_of_a_folder_that_cannot_be_parsed_is_a_problem(
    pumice: Pumice, tmp_path: Path
) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml\n")
    ran = pumice("lint", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"pumice lint: {tmp_path}/kustomization.yaml: document 1, line 2: ")


def test_a_text_with_actions_that_cannot_be_parsed_is_a_template(pumice: Pumice) -> None:
    text = texts(job("good")) + f"\n---\n{TEMPLATE}---\n{TEMPLATE}"
    ran = pumice("lint", "-", stdin=text)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert f"stdin: line 3: is a template with {{{{ … }}}} actions; {RENDER} . | pumice" in ran.err
    # A text in quotes is no mistake of YAML, braces of other tools are no actions, and another document may be broken.
    assert RENDER not in pumice("lint", "-", stdin=QUOTED).err
    assert RENDER not in pumice("lint", "-", stdin="a: {{workflow.name}}\n").err
    assert RENDER not in pumice("lint", "-", stdin=f"{QUOTED}---\na: [\n").err


def test_named_files_without_manifests_are_skipped_on_request(
    pumice: Pumice, tmp_path: Path
) -> None:
    files = {"values.yaml": "a: 1\n", "job.yaml": texts(job("good")), "template.yaml": TEMPLATE}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in files]
    assert pumice("lint", *paths).code == 2
    ran = pumice("lint", *paths, "--skip-others")
    assert ran.code == 0
    assert ran.out.endswith("1 object: 1 admitted, 0 refused\n")
    assert ran.err.count("skipped ") == 2
    assert pumice("lint", *paths, "--skip-others", "--quiet").err == ""
