"""Inputs in which something once went wrong: `pumice simulate` decides rightly, and each input is used by a test."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.tables import CASES, table
from tests.unit.cli.conftest import Pumice

FOLDER = CASES / "reported"
REPOSITORY = Path(__file__).parents[3]
ROWS = table("reported")
NOTHING: dict[str, Any] = {"binds": {}, "pipelined": {}, "evicted": []}


@pytest.mark.parametrize("row", ROWS["simulate"], ids=lambda row: row["state"])
def test_a_simulation_decides_rightly(pumice: Pumice, row: dict[str, Any]) -> None:
    options = ["--config", FOLDER / row["config"]] if "config" in row else []
    cycles = len(row["cycles"])
    state = ["--state", FOLDER / row["state"], "--cycles", cycles]
    ran = pumice("simulate", *state, *options, "-o", "json")
    assert ran.json["cycles"] == [NOTHING | each for each in row["cycles"]]
    jobs = {key: each.get("job", key) for key, each in ran.json["podGroups"].items()}
    waits = {jobs[key]: each["message"] for key, each in ran.json["pending"].items()}
    assert waits.keys() == row.get("waits", {}).keys()
    for gang, part in row.get("waits", {}).items():
        assert part in waits[gang]
    assert ran.code == bool(waits)


def test_each_input_is_used() -> None:
    used = {row[field] for row in ROWS["simulate"] for field in ("state", "config") if field in row}
    assert {each.name for each in FOLDER.iterdir()} == used | ROWS["played"].keys()
    for name, test in ROWS["played"].items():
        assert f'"{name}"' in (REPOSITORY / test).read_text(encoding="utf-8")
    for test in ROWS["made"].values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8")
