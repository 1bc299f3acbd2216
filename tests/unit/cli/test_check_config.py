"""`pumice scheduler --check-config`, and configurations in ConfigMaps."""

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Pumice

GOOD = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n"
BAD = "actions: alocate\ntiers: [{plugins: [{name: gnag}]}]\n"


def config_map(**data: object) -> str:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    return yaml.safe_dump(manifest)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (GOOD, 0, "can be used"),
        (BAD, 1, "cannot be used"),
        (config_map(**{"volcano-scheduler.conf": GOOD, "other": "x"}), 0, "can be used"),
        (config_map(**{"volcano-scheduler.conf": BAD}), 1, 'unknown action "alocate"'),
        (config_map(scheduler=GOOD), 0, "can be used"),
        (config_map(a=GOOD, b=GOOD), 1, "data: must hold the configuration under the key"),
        (config_map(), 1, "found nothing"),
        (config_map(a=config_map(a=GOOD)), 1, "data: must hold the configuration"),
        (
            config_map(**{"volcano-scheduler.conf": 5}),
            1,
            "data.volcano-scheduler.conf: must be a string",
        ),
        ("actions: allocate, gangPreempt\n", 0, "warning: actions: gangPreempt is read"),
    ],
)
def test_a_configuration_is_checked(
    pumice: Pumice, tmp_path: Path, text: str, code: int, says: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    result = pumice("scheduler", "--config", str(file), "--check-config")
    assert result.code == code, result.err
    assert says in result.out
    answer = pumice("scheduler", "--config", str(file), "--check-config", "-o", "json")
    found = json.loads(answer.out)
    assert found["usable"] is (code == 0)
    assert bool(found["errors"]) is (code == 1)


def test_without_a_file_the_default_is_checked(pumice: Pumice) -> None:
    result = pumice("scheduler", "--check-config")
    assert (result.code, result.out) == (0, "the default configuration: can be used\n")


def test_a_file_that_cannot_be_read_is_another_matter(pumice: Pumice, tmp_path: Path) -> None:
    result = pumice("scheduler", "--config", str(tmp_path / "gone"), "--check-config")
    assert result.code == 2
    assert "no such file" in result.err
