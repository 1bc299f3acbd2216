"""The JSON Schemas of `pumice schema`, asked through Helm, which has a library for them and reads charts' values by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.api.crds.json_schema import json_schema
from pumice.api.kinds import VOLCANO, of_object
from pumice.cli.files.manifests import read_objects
from tests.chart.manifests import Run
from tests.kit import tables
from tests.kit.builders import job, queue, task
from tests.unit.webhook.reviewing import merged

pytestmark = pytest.mark.binaries

EXAMPLES = Path(__file__).parents[2] / "examples"
MEANT_TO_BE_REFUSED = {EXAMPLES / file for file in tables.table("examples")["refused"]}

WILD = EXAMPLES.parent / "tests" / "cases" / "wild"
BASE = job("train", [task("w", 1)])
MISTAKES = {
    "/spec': additional properties 'minAvalable' not allowed": {"spec": {"minAvalable": 1}},
    "/spec/tasks/0': additional properties 'replica' not allowed": {
        "spec": {"tasks": [{"name": "w", "replica": 1}]}
    },
    "/spec/queue'": {"spec": {"queue": ["a"]}},
    "/spec/tasks/0/template/spec/containers/0/ports/0/hostPort'": {
        "spec": {
            "tasks": [
                {
                    "template": {
                        "spec": {"containers": [{"name": "a", "ports": [{"hostPort": "a"}]}]}
                    }
                }
            ]
        }
    },
    "/apiVersion'": {"apiVersion": "batch/v1"},
}
"""What is said about a Job that these fields are merged onto."""


@pytest.fixture
def validated(helm: Run, tmp_path: Path) -> Any:
    """What Helm finds in manifests, by the schemas of their kinds."""
    schemas = {kind.kind.lower(): json_schema(kind) for kind in VOLCANO}
    definitions = [each.pop("definitions", {}) for each in schemas.values()]
    whole = {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": {key: each[key] for key in each if key != "$schema"}}
            for name, each in schemas.items()
        },
        "definitions": {name: each for one in definitions for name, each in one.items()},
    }
    chart = tmp_path / "chart"
    chart.mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: kinds\nversion: 0.1.0\n")
    (chart / "values.schema.json").write_text(json.dumps(whole))

    def found(*manifests: dict[str, Any]) -> str:
        values: dict[str, list[dict[str, Any]]] = {}
        for each in manifests:
            values.setdefault(each["kind"].lower(), []).append(each)
        (tmp_path / "values.json").write_text(json.dumps(values))
        return helm("template", str(chart), "--values", str(tmp_path / "values.json")).stderr

    return found


def test_examples_are_valid(validated: Any) -> None:
    files = [file for file in EXAMPLES.rglob("*.yaml") if file not in MEANT_TO_BE_REFUSED]
    warned = tables.table("wild/warnings")
    files += [file for file in WILD.rglob("*.yaml") if str(file.relative_to(WILD)) not in warned]
    files.remove(WILD / "warnings.yaml")
    objects = [each for file in files for each in read_objects([file], may_be_empty=True)]
    ours = [each for each in objects if of_object(each) in VOLCANO]
    assert {each["kind"] for each in ours} == {kind.kind for kind in VOLCANO}
    assert validated(*ours) == ""


def test_what_an_editor_is_to_mark_is_found(validated: Any) -> None:
    mistaken = [merged(BASE, each) for each in MISTAKES.values()]
    bad_queue = queue("q") | {"spec": {"capability": {"cpu": True}}}
    text = validated(*mistaken, BASE, bad_queue)
    for index, said in enumerate(MISTAKES):
        assert f"'/job/{index}{said}" in text, text
    assert f"'/job/{len(MISTAKES)}" not in text
    assert "/queue/0/spec/capability/cpu'" in text
