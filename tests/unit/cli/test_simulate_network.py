"""`pumice simulate` places gangs in a network of HyperNodes as the scheduler does, and says where they are."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Pumice, texts
from tests.unit.scheduler.network_clusters import CASES, configuration, manifests
from tests.unit.scheduler.scenarios import Raw, case_id


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_placement(pumice: Pumice, tmp_path: Path, case: Raw) -> None:
    (tmp_path / "scheduler.conf").write_text(configuration(case))
    options = ("--config", tmp_path / "scheduler.conf")
    ran = pumice("simulate", "--state", "-", "-o", "json", *options, stdin=texts(*manifests(case)))
    expect, (cycle,) = case["expect"], ran.json["cycles"]
    running = case["gang"].get("running", {})
    if "nodes" in expect:
        binds = {
            f"ns/pg-worker-{index}": node
            for index, node in enumerate(expect["nodes"])
            if node and index not in running
        }
        assert cycle["binds"] == binds
    if "network" in expect:
        assert ran.json["podGroups"]["ns/pg"]["network"] == expect["network"]
    if "reason" in expect:
        assert ran.json["pending"]["ns/pg"]["summary"] == expect["reason"]
