"""The configuration files in `examples/scheduler` are read without complaint, and Jobs are placed with them."""

import re
from pathlib import Path

import msgspec
import pytest

from pumice.scheduler import load_config
from pumice.scheduler.registry import PLANNED_PLUGINS
from tests.kit.builders import node
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
