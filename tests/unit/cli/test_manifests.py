"""Manifests come with their places, and mistakes in files are one clear line."""

import io
import json
import sys
from pathlib import Path

import pytest

from pumice.cli.exits import UserError
from pumice.cli.manifests import named, read, read_objects

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
        ("just text", "document 1, line 1: expected an object, found a text"),
        ("a: 1\n---\n- 2\n", "document 1, line 1: apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {}\n", "kind is missing, expected for example Job"),
        ("apiVersion: 1\nkind: Pod\n", "apiVersion is a number, expected for example batch"),
        ("apiVersion: v1\nkind: List\nitems: [3]\n", "item 1: expected an object, found a number"),
        ("apiVersion: v1\nkind: List\nitems: 3\n", "items: expected a list, found a number"),
        ("a: [1\nb: 2\n", "document 1, line 2:"),
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
