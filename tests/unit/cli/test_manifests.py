"""Manifests come with their places, and mistakes in files are one clear line."""

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

from pumice.cli.exits import UserError
from pumice.cli.files import contents
from pumice.cli.files.manifests import named, read, read_all, read_objects
from tests.unit.cli.conftest import Pumice

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def write(folder: Path, text: str | bytes, name: str = "f.yaml") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_documents_of_several_files_in_order(tmp_path: Path) -> None:
    one = write(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "1.yaml")
    two = write(tmp_path, json.dumps(POD | {"metadata": {"name": "b", "namespace": "x"}}), "2.json")
    found = read([one, two])
    assert [each.identity for each in found] == ["Pod/default/a", "Pod/x/b"]
    assert str(found[0].source) == f"{one}: document 1, line 1"


def test_lists_are_taken_apart(tmp_path: Path) -> None:
    plain = {"apiVersion": "v1", "kind": "List", "items": [POD, POD | {"metadata": {"name": "b"}}]}
    typed = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "c"}}]}
    array = [POD | {"metadata": {"name": "d"}}]
    empty = {"apiVersion": "v1", "kind": "PodList", "items": None}
    files = [
        write(tmp_path, json.dumps(each), f"{number}.json")
        for number, each in enumerate((plain, typed, array, empty))
    ]
    found = read(files)
    assert [each.identity for each in found] == [f"Pod/default/{name}" for name in "abcd"]
    assert str(found[1].source).endswith("document 1, line 1, item 2")


def test_cluster_wide_objects_have_no_namespace(tmp_path: Path) -> None:
    file = write(tmp_path, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    assert read([file])[0].identity == "Node/n"


def test_a_generated_name_stands_in_for_a_name(tmp_path: Path) -> None:
    file = write(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n")
    assert read([file])[0].identity == "Pod/default/p-"


def test_names_are_generated_by_counting(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {%s}\n"
    metadata = ("generateName: p-", "name: p, generateName: q-", f"generateName: {'l' * 70}")
    file = write(tmp_path, "---\n".join(pod % each for each in (*metadata, "generateName: p-")))
    names = [each.object["metadata"]["name"] for each in named(read([file]))]
    assert names == ["p-00001", "p", "l" * 58 + "00002", "p-00003"]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(POD).encode())))
    assert read_objects(["-"]) == [POD]


@pytest.mark.parametrize("text", ["", "---\n", "# none yet\n"])
def test_a_cluster_may_have_nothing(tmp_path: Path, text: str) -> None:
    assert read([write(tmp_path, text)], may_be_empty=True) == []


def test_stdin_can_be_read_once() -> None:
    with pytest.raises(UserError, match="only once"):
        read(["-", "-"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("---\n", "is empty"),
        ("just text", "document 1, line 1: expected an object, found a string"),
        ("a: 1\n---\n- 2\n", "document 1, line 1: apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {}\n", "kind is missing, expected for example Job"),
        ("apiVersion: 1\nkind: Pod\n", "apiVersion is an integer, expected for example batch"),
        (
            "apiVersion: v1\nkind: List\nitems: [3]\n",
            "item 1: expected an object, found an integer",
        ),
        ("apiVersion: v1\nkind: List\nitems: 3\n", "items: expected a list, found an integer"),
        ("a: [1\nb: 2\n", "document 1, line 2:"),
        ('{"apiVersion": "v1",\n}', "document 1, line 1, column 20: found a trailing comma before"),
        (b"\xff\xfe", "must be UTF-8"),
    ],
)
def test_mistakes_are_one_line_with_the_place(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read([file])
    assert str(caught.value).startswith(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read([tmp_path / "missing.yaml"])
    with pytest.raises(UserError, match="holds no manifests"):
        read([tmp_path])
    with pytest.raises(UserError, match="cannot be read"):
        read(["a\0b"])


def test_an_input_without_end_is_not_read_to_the_end(
    pumice: Pumice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST_BYTES", 1 << 21)
    for arguments, shown in (
        (("simulate", "--trace", "/dev/zero"), "/dev/zero"),
        (("lint", "/dev/zero"), "/dev/zero"),
        (("lint", "-"), "stdin"),
        (("review", "/jobs/validate"), "stdin"),
    ):
        ran = pumice(*arguments, stdin="#" * (1 << 21) + "#")
        assert (ran.code, ran.out) == (2, "")
        told = f"{shown}: has more than 2,097,152 bytes, the limit of an input; split it\n"
        assert ran.err == f"pumice {arguments[0]}: {told}"


def test_a_directory_stands_for_its_manifests_in_the_order_of_their_paths(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("b.yaml", "below/a.json", "a.yml", "notes.txt"):
        kind = name.split(".")[0].split("/")[-1]
        text = f'{{"apiVersion": "v1", "kind": "{kind.upper()}", "metadata": {{"name": "x"}}}}'
        (tmp_path / name).write_text(text, encoding="utf-8")

    found = read([tmp_path])

    assert [each.source.file.removeprefix(f"{tmp_path}/") for each in found] == [
        "a.yml",
        "b.yaml",
        "below/a.json",
    ]


def test_lists_in_lists_are_objects(tmp_path: Path) -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [POD]}
    file = write(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [inner]}))
    assert [each.object for each in read([file])] == [inner]


def test_what_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"
    broken = write(tmp_path, "---\n".join([text % "a", "a: [1\n", text % "b", "x: 1\n"]), "1.yaml")
    items = json.dumps([POD | {"metadata": {"name": "c"}}, 3, POD | {"metadata": {"name": "d"}}])
    found = read_all(["", tmp_path / "none.yaml", broken, write(tmp_path, items, "2.json")])
    assert [each.name for each in found.manifests] == ["a", "b", "c", "d"]
    assert found.problems == [
        "a name is empty: expected a file, a directory, or - for stdin",
        f"{tmp_path}/none.yaml: no such file",
        f"{broken}: document 2, line 6: did not find expected ',' or ']'",
        f"{broken}: document 4, line 11: apiVersion is missing, expected for example batch.volcano.sh/v1alpha1",
        f"{tmp_path}/2.json: document 1, line 1, item 2: expected an object, found an integer",
    ]


WORKFLOW = "name: CI\non: [push]\njobs: {test: {runs-on: ubuntu-latest}}\n"
KUSTOMIZATION = "resources: [job.yaml]\nnamespace: research\n"
VALUES = "kind: Deployment\nimage: {tag: '1'}\n"
CHART = "apiVersion: v2\nname: chart\nversion: 0.1.0\n"
TEMPLATE = "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Values.x }}}\n{{- end }}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKFLOW, "document 1, line 1: apiVersion is missing"),
        (KUSTOMIZATION, "apiVersion is missing"),
        (VALUES, "apiVersion is missing"),
        (CHART, "kind is missing"),
        (TEMPLATE, "render it first: helm template . | pumice lint -"),
        ("metadata:\n  name: {{ x }}\napiVersion: v1\nkind: Pod\n", "a key must be a string"),
        ("a: 1\n---\nb: 1\n---\nc: 1\n", "(and 2 more like it)"),
        ("- hosts: all\n- hosts: some\n", "item 1: apiVersion is missing"),
        ('{"compilerOptions": {"strict": true,},}', "trailing comma"),
        ("[1, 2]", "expected an object, found an integer"),
        ("just text", "expected an object, found a string"),
        ("a: [1\n", "expected"),
        (b"\xff", "must be UTF-8"),
        ("", "is empty"),
    ],
)
def test_a_foreign_file_is_skipped_in_a_folder_and_an_error_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, reason: str
) -> None:
    file = write(tmp_path, text)
    pod = write(tmp_path, json.dumps(POD), "pod.json")

    found = read_all([tmp_path])
    assert ([each.name for each in found.manifests], found.problems) == (["a"], [])
    said = capsys.readouterr().err
    assert said.startswith(f"skipped {file}: ")
    assert reason in said
    assert said.count("\n") == 1

    found = read_all([file, pod])
    assert [each.name for each in found.manifests] == ["a"]
    assert found.problems[0].startswith(f"{file}: ")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n\ttasks: []\n",
        '{\n  "apiVersion": "v1",\n  "kind": "Pod",\n}',
        "kind: Job\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: v1\nmetadata: {name: a}\n",
        "apiVersion: 1\nkind: Pod\n",
        "apiVersion: v1\nkind: List\nitems: 3\n",
    ],
)
def test_a_broken_manifest_is_an_error_in_a_folder_too(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    [problem] = read_all([tmp_path]).problems
    assert problem.startswith(f"{file}: document 1, line ")
    with pytest.raises(UserError, match="document 1"):
        read([tmp_path])


def test_hidden_folders_and_templates_of_charts_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (".git/a.yaml", ".github/workflows/ci.yml", "chart/templates/b.yaml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    (tmp_path / "chart/Chart.yaml").write_text(CHART)
    (tmp_path / "templates").mkdir()
    write(tmp_path / "templates", json.dumps(POD | {"metadata": {"name": "b"}}), "pod.yaml")

    assert [each.name for each in read([tmp_path])] == ["b"]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"skipped {tmp_path}/chart/templates: templates of a Helm chart; render it first: helm template {tmp_path}/chart | pumice lint -",
        f"skipped {tmp_path}/chart/Chart.yaml: document 1, line 1: kind is missing, expected for example Job",
    ]
    assert [each.name for each in read([tmp_path / ".github"])] == ["a"]
    assert read([tmp_path / "chart/templates"]) == []


def test_folders_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    write(tmp_path, json.dumps(POD))
    monkeypatch.setattr(os, "scandir", refuse)
    assert read_all([tmp_path]).problems == [f"{tmp_path}: cannot be read: Permission denied"]


def test_paths_do_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a: 1\n", "a\x1b[31m.yaml")
    assert read([tmp_path]) == []
    assert r"a\x1b[31m.yaml" in capsys.readouterr().err
