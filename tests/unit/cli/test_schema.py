"""`pumice schema`; what the schemas say, tests/chart/test_kind_schemas.py asks a library."""

import json
from pathlib import Path

import pytest

from pumice.api.kinds import VOLCANO
from tests.unit.cli.conftest import Pumice


@pytest.mark.parametrize("name", ["job", "jobs", "vcjob", "vj", "Job", "jobs.batch.volcano.sh"])
def test_a_kind_is_named_as_for_kubectl(pumice: Pumice, name: str) -> None:
    ran = pumice("schema", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["title"] == "Job of batch.volcano.sh/v1alpha1"
    assert "x-kubernetes" not in ran.out


def test_all_kinds_are_listed_and_written(pumice: Pumice, tmp_path: Path) -> None:
    listed = [line.split()[0] for line in pumice("schema").out.splitlines()[1:]]
    assert listed == [kind.kind.lower() for kind in VOLCANO]
    ran = pumice("schema", "--directory", tmp_path / "new" / "folder")
    assert (ran.code, ran.out) == (0, "")
    written = {
        file.name: json.loads(file.read_text())
        for file in (tmp_path / "new").rglob("*")
        if file.is_file()
    }
    assert sorted(written) == sorted(f"{name}.json" for name in listed)
    assert written["queue.json"] == pumice("schema", "q").json
    pumice("schema", "pg", "hn", "-d", tmp_path / "two")
    assert sorted(file.name for file in (tmp_path / "two").iterdir()) == [
        "hypernode.json",
        "podgroup.json",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["jbo"], "there is no schema of a kind 'jbo' (did you mean \"job\"?)"),
        (
            ["deployments"],
            "there is no schema of a kind 'deployments'; `pumice schema` lists the kinds",
        ),
        (["job", "queue"], "several kinds need --directory DIR"),
        (["-d", "LICENSE"], "LICENSE: is a file, expected a directory"),
        (["-d", "/dev/null/x"], "/dev/null/x: cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(pumice: Pumice, arguments: list[str], said: str) -> None:
    ran = pumice("schema", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
