"""Pumice forked from a process that has imported it: it is what it would be, and ends as it would end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.waiting import wait_until
from tests.support.controlplane.builder import REPOSITORY
from tests.support.controlplane.processes import PumiceProcess
from tests.support.forked import PROGRAM, Forked, run, write_command

BROKEN = (
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: empty}\nspec: {tasks: []}\n"
)
STARTER = """
import os, sys, time
from pathlib import Path
from tests.support.forked import Forked
waiting = Forked(["lint", "-"], Path("/"), {}, (os.pipe()[0], 1, 2))
print(waiting.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bin") / "pumice"
    write_command(path)
    return path


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["lint", "-"], BROKEN),
        (["lint", "job.yaml", "-o", "json"], ""),
        (["nonsense"], ""),
        (["rules", "JOB-NO-TASKS"], ""),
    ],
    ids=["refused", "a file of its folder", "no such verb", "a page of text"],
)
def test_it_prints_and_ends_as_the_command_does(
    command: Path, tmp_path: Path, arguments: list[str], given: str
) -> None:
    (tmp_path / "job.yaml").write_text(BROKEN)
    environment = {"PATH": os.defpath, "COLUMNS": "70"}
    answers = [
        subprocess.run(
            [program, *arguments],
            cwd=tmp_path, env=environment, input=given, capture_output=True, text=True, check=False,
        )
        for program in (command, PROGRAM)
    ]  # fmt: skip
    forked, started = ((each.returncode, each.stdout, each.stderr) for each in answers)
    assert forked == started


def test_a_signal_reaches_it_and_the_command_ends_as_it_does(command: Path, tmp_path: Path) -> None:
    script = f"{command} lint - < fifo & sleep 0.01; exec 3> fifo; kill -TERM $!; wait $!; echo $?"
    os.mkfifo(tmp_path / "fifo")
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"{128 + signal.SIGTERM}\n"


def test_it_runs_to_its_end_in_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(BROKEN)
    ran = run("lint", "job.yaml")
    assert (ran.returncode, "JOB-NO-TASKS" in ran.stdout, ran.stderr) == (1, True, "")


def test_a_process_has_its_variables_and_log_and_is_gone_when_it_was_ended(tmp_path: Path) -> None:
    process = PumiceProcess("webhook", ["webhook", "--nonsense"], tmp_path)
    wait_until(lambda: not process.running, "the end", 60)
    assert "ended by itself with exit code 2" in process.ending
    assert "--nonsense" in process.tail()
    with os.fdopen(os.pipe()[0], "rb") as reading:
        streams = (reading.fileno(), reading.fileno(), reading.fileno())
        waiting = Forked(["lint", "-"], tmp_path, {}, streams)
    assert waiting.poll() is None
    os.killpg(waiting.pid, signal.SIGKILL)
    assert waiting.wait() == -signal.SIGKILL
    assert ended(waiting.pid)


def test_it_ends_when_who_started_it_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        assert not ended(child)
        starter.kill()
    wait_until(lambda: ended(child), "the child to end", 60)
