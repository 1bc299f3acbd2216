"""`pumice simulate --trace` with two runs, thresholds and files, as a user calls it."""

import csv
import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import EXAMPLES, Pumice

CI = EXAMPLES / "scheduler-ci"
TRACE = ("simulate", "--trace", CI / "trace.csv", "--nodes", "2x8cpu")
CONFIG = ("--config", CI / "volcano-scheduler.conf")


def numbers(value: object) -> list[object]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    return [value]


def test_two_equal_configurations_compare_to_zero(pumice: Pumice) -> None:
    same = ("--compare", CI / "volcano-scheduler.conf", "--fail-if", "makespan > +0%")
    ran = pumice(*TRACE, *CONFIG, *same, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert [*found] == ["base", "other", "differences"]
    for run in (found["base"], found["other"]):
        del run["summary"]["cost"]
    assert found["base"] == found["other"]
    assert {*numbers(found["differences"]["summary"])} == {0}
    assert found["differences"]["gained"] == found["differences"]["lost"] == []


def test_fewer_nodes_make_jobs_wait(pumice: Pumice, tmp_path: Path) -> None:
    files = ("--jobs", tmp_path / "jobs.csv", "--report", tmp_path / "report.html")
    bounds = ("--fail-if", "wait.max > +10%", "--fail-if", "jobs.completed < -1%")
    ran = pumice(*TRACE, *CONFIG, "--compare-nodes", "1x8cpu", *bounds, *files)
    assert ran.code == 1
    assert ran.err == ("--fail-if wait.max > +10%: wait.max is 3660.0, and 0.0 in the base\n")
    assert "default/train-1  default  10m   71m    +61m" in ran.out
    rows = [*csv.DictReader((tmp_path / "jobs.other.csv").read_text().splitlines())]
    assert [row["allocated_resources"] for row in rows if row["jobID"] == "train-3"] == ["0-1"]
    assert "1x8cpu on the right" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--fail-if", "wait.p95 > 10%"],
            "--fail-if: invalid threshold 'wait.p95 > 10%': expected",
        ),
        (["--fail-if", "wait.p95 > +10%"], "needs --compare or --compare-nodes"),
        (["--fail-if", "wiat.p95 > 10"], "no number 'wiat.p95'; it has, for example, wait.p95"),
        (["--fail-if", "utilization.gpu > 1"], "no number 'utilization.gpu'"),
        (["--report", "/nowhere/report.html"], "/nowhere/report.html: cannot be written"),
        (["--compare", "/nowhere.conf"], "/nowhere.conf: "),
        (["--compare-nodes", "many"], "--compare-nodes 'many': "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    pumice: Pumice, arguments: list[str], message: str
) -> None:
    ran = pumice(*TRACE, *arguments, "-o", "json")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_options_of_traces_need_a_trace(pumice: Pumice) -> None:
    ran = pumice("simulate", "--state", os.devnull, "--fail-if", "jain < 1")
    assert (ran.code, ran.err) == (
        2,
        "pumice simulate: --fail-if is for traces: name one with --trace FILE\n",
    )
