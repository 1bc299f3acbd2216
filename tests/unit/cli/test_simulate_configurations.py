"""Configurations of the scheduler: those in `examples/scheduler` place Jobs, and plugins see what the state holds."""

import re
from pathlib import Path

import msgspec
import pytest

from pumice.scheduler import load_config
from pumice.scheduler.registry import PLANNED_PLUGINS
from tests.kit.builders import node, pod_group, queue
from tests.unit.cli.conftest import EXAMPLES, Pumice

FILES = sorted((EXAMPLES / "scheduler").glob("*.conf"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_read(file: Path) -> None:
    """What is missing is what this version says that it lacks."""
    config = load_config(file.read_text())
    missing = set(re.findall(r"name: (\S+)", file.read_text())) & PLANNED_PLUGINS
    assert set(config.missing) == {f"plugin {name}" for name in missing}
    assert len(config.warnings) == len(missing)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_job_is_placed(pumice: Pumice, file: Path) -> None:
    nodes = msgspec.json.encode([node(f"n{number}", "8", "64Gi") for number in range(2)])
    job = EXAMPLES / "tensorflow.yaml"
    ran = pumice("simulate", "--state", "-", job, "--config", file, "-o", "json", stdin=nodes)
    assert (ran.code, ran.json["pending"]) == (0, {})
    assert len(ran.json["cycles"][0]["binds"]) == 6


def test_files_were_found() -> None:
    assert len(FILES) == 2


def test_quotas_of_the_state_count(pumice: Pumice, tmp_path: Path) -> None:
    config = tmp_path / "quota.conf"
    config.write_text('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: resourcequota}]}]')
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "status": {"hard": {"pods": "3"}, "used": {"pods": "2"}},
    }
    state = msgspec.json.encode([node(), queue(), pod_group("train", 2, minResources={}), quota])
    ran = pumice("simulate", "--state", "-", "--config", config, "-o", "json", stdin=state)
    assert (ran.code, ran.json["podGroups"]["default/train"]["phase"]) == (0, "Inqueue")
    state = state.replace(b'"minResources":{}', b'"minResources":{"cpu":"1"}')
    ran = pumice("simulate", "--state", "-", "--config", config, "-o", "json", stdin=state)
    assert ran.json["pending"]["default/train"]["message"] == (
        "resource quota insufficient: pods; quota small: 2 of 3 pods used, 1 more allowed, needs 2"
    )
