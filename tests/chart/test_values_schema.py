"""The schema and the table of values follow from `values.yaml`, which must say enough for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pumice.webhook.resource_group_file import LABELS
from pumice.webhook.settings import AdmissionSettings
from tests.chart.manifests import CHART
from tools.values_schema import BEGIN, END, ValuesError, main, read_values, schema, table

TEXT = """
# Size of a thing,
# in metres.
# @schema {minimum: 1}
size: 3
# Another thing.
other:
  # Its labels.
  # @schema {shape: labels}
  labels: {}
  # Its text, a | b.
  text: ""
"""


def test_comments_types_and_annotations_become_the_schema() -> None:
    made = schema(read_values(TEXT))
    assert made["additionalProperties"] is False
    assert made["properties"]["size"] == {
        "description": "Size of a thing, in metres.",
        "type": "integer",
        "minimum": 1,
        "default": 3,
    }
    other = made["properties"]["other"]
    assert other["additionalProperties"] is False
    assert other["properties"]["labels"] == {
        "description": "Its labels.",
        "type": "object",
        **LABELS,
        "default": {},
    }


def test_the_table_has_a_row_for_every_value() -> None:
    lines = table(read_values(TEXT)).splitlines()
    assert "| `size` | `3` | Size of a thing, in metres. |" in lines
    assert "### other: another thing" in lines
    assert "| `other.labels` | `{}` | Its labels. |" in lines
    assert '| `other.text` | `""` | Its text, a \\| b. |' in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size: 3", "line 1: size has no comment above it"),
        ("# A.\na:\n  b: 1", "line 3: a.b has no comment above it"),
        ("# A.\na: {}", "line 2: the default of a does not say what it may hold"),
        ("# A.\na: []", "line 2: the default of a does not say what it may hold"),
        ("# A.\na:", "line 2: the default of a does not say what it may hold"),
        ("# A.\n# @schema {shape: cube}\na: []", "line 3: there is no shape 'cube'"),
    ],
)
def test_values_that_say_too_little_are_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(ValuesError, match=f"^{message}"):
        read_values(text)


def test_the_settings_of_admission_are_those_of_the_code() -> None:
    values = read_values((CHART / "values.yaml").read_text())
    webhook = schema(values)["properties"]["webhook"]["properties"]
    known = {name.replace("_", "-") for name in AdmissionSettings.declared()}
    # The scheduler names come from `schedulerName`.
    assert set(webhook["settings"]["properties"]) == known - {"scheduler-names"}


def test_the_committed_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(CHART)]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("values.yaml", "values.schema.json", "README.md"):
        shutil.copy(CHART / name, tmp_path)
    changed = (CHART / "values.yaml").read_text() + "# New.\nnew: true\n"
    (tmp_path / "values.yaml").write_text(changed)
    before = (tmp_path / "values.schema.json").read_text()
    assert main(["--check", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "values.schema.json" in said
    assert "README.md" in said
    assert (tmp_path / "values.schema.json").read_text() == before
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "values.schema.json").read_text())["properties"]["new"]
    assert "| `new` | `true` | New. |" in (tmp_path / "README.md").read_text()


def test_a_readme_without_a_place_for_the_table_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "values.yaml").write_text("# A.\na: 1\n")
    (tmp_path / "README.md").write_text(f"{END}{BEGIN}")
    assert main([str(tmp_path)]) == 1
    assert "README.md has no place for the table" in capsys.readouterr().err
