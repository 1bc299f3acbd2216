"""Arguments as users write them: several files behind one `--state`."""

import json
from pathlib import Path

import pytest

from pumice.cli.arguments import spread
from tests.kit.builders import node, pod, pod_group
from tests.unit.cli.conftest import Pumice


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("simulate --state a b - -o json", "simulate --state a --state b --state - -o json"),
        ("simulate --state=a b --cycles 2", "simulate --state=a --state b --cycles 2"),
        ("simulate --state a --state b", "simulate --state a --state b"),
        ("webhook --port 0 --state a b", "webhook --port 0 --state a --state b"),
        ("lint job --state a b", "lint job --state a --state b"),
        ("lint - --state a b --set x=y c", "lint - --state a --state b --set x=y c"),
        ("lint --state a job other", "lint --state a job other"),
        ("lint -o json --state a job", "lint -o json --state a job"),
        ("review /jobs/mutate --state a b", "review /jobs/mutate --state a --state b"),
        ("review --state a /jobs/mutate", "review --state a /jobs/mutate"),
        ("render --show-secrets --state a job", "render --show-secrets --state a job"),
        ("explain --state a b", "explain --state a b"),
        ("", ""),
    ],
)
def test_files_that_follow_belong_to_the_option(given: str, wanted: str) -> None:
    assert spread(given.split()) == wanted.split()


def test_the_command_reads_them_all(pumice: Pumice, tmp_path: Path) -> None:
    files = [tmp_path / "node.json", tmp_path / "group.json"]
    for file, each in zip(files, (node("n", "4"), pod_group("pg", 1)), strict=True):
        file.write_text(json.dumps(each))
    waiting = json.dumps(pod("p", group="pg", cpu="1"))
    ran = pumice("simulate", "--state", *files, "-", "-o", "json", stdin=waiting)
    assert ran.json["cycles"][0]["binds"] == {"default/p": "n"}
