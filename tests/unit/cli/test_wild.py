"""Manifests in the shapes that people really use are linted without a false refusal or a vain word.

`tests/cases/wild` has a folder a framework; `state.yaml` there holds the queues that they name, `warnings.yaml`
what is said about them. `tests/integration/webhook/test_wild_controlplane.py` shows them to a real API server.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pumice.api.documents import parse
from tests.kit import tables
from tests.unit.cli.conftest import Pumice

WILD = tables.CASES / "wild"
FILES = [path.relative_to(WILD).as_posix() for path in sorted(WILD.glob("*/*.yaml"))]
WARNINGS: dict[str, list[str]] = tables.table("wild/warnings")


def linted(pumice: Pumice, file: Path | str, stdin: str = "") -> Any:
    ran = pumice("lint", file, "--state", WILD / "state.yaml", "-o", "json", stdin=stdin)
    assert ran.code == 0, ran.out + ran.err
    return ran


def warnings_of(found: list[dict[str, Any]]) -> list[str]:
    """`path CODE` of each warning."""
    texts = [text for each in found for text in each["warnings"]]
    places = [re.fullmatch(r"(.*?): .* \[([A-Z0-9-]+)\]", text, re.DOTALL) for text in texts]
    assert all(places), texts
    return [f"{place[1]} {place[2]}" for place in places if place]


@pytest.mark.parametrize("file", FILES)
def test_a_manifest_of_the_wild_is_admitted(pumice: Pumice, file: str) -> None:
    ran = linted(pumice, WILD / file)
    documents = [value for _, _, value in parse((WILD / file).read_bytes())]
    count = sum(len(each["items"]) if each["kind"] == "List" else 1 for each in documents)
    assert len(ran.json) + ran.err.count("skipped ") == count
    assert [each["errors"] for each in ran.json] == [[] for _ in ran.json]
    assert warnings_of(ran.json) == WARNINGS.get(file, [])


def test_what_is_admitted_stays_as_it_is(pumice: Pumice) -> None:
    for file in FILES:
        objects = [each["patched"] for each in linted(pumice, WILD / file).json]
        if objects:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            again = [each["patched"] for each in linted(pumice, "-", text).json]
            assert again == objects, file


def test_the_collection_is_wide() -> None:
    assert len(FILES) >= 40
    assert set(WARNINGS) <= set(FILES)
    frameworks = {file.partition("/")[0] for file in FILES}
    assert frameworks >= {"tensorflow", "pytorch", "mpi", "ray", "spark", "argo", "mindspore"}
