"""Child processes of the control plane: leash, waiting, and what is left of a failed start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.kit.waiting import NotReadyError, wait_until
from tests.support.controlplane.builder import REPOSITORY, TOOLS
from tests.support.controlplane.processes import Process
from tests.support.controlplane.start import started

STARTER = """
import sys, time
from pathlib import Path
from tests.support.controlplane.processes import Process
print(Process("child", [sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1])).pid)
sys.stdout.flush()
time.sleep(600)
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def ended(pid: int) -> bool:
    """Whether the process is gone, or only waits to be reaped by whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_a_child_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        assert not ended(child)
        starter.kill()
    wait_until(lambda: ended(child), "the child to end", 60)


def test_ending_a_process_ends_its_children_too(tmp_path: Path) -> None:
    process = Process("parent", ["/bin/sh", "-c", "sleep 600 & echo $!; wait"], tmp_path)
    wait_until(lambda: process.tail() != "", "the child's number", 60, [process])
    child = int(process.tail())
    process.end()
    assert not process.running
    wait_until(lambda: ended(child), "the child to end", 60)


def test_ending_what_has_ended_is_fine(tmp_path: Path) -> None:
    process = Process("short", python("pass"), tmp_path)
    wait_until(lambda: not process.running, "the end", 60)
    process.end()


def test_a_child_does_not_inherit_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    process = Process("env", ["/usr/bin/env"], tmp_path)
    wait_until(lambda: not process.running, "the end", 60)
    assert f"HOME={tmp_path}" in process.tail()
    assert "proxy" not in process.tail().lower()


def test_waiting_ends_with_the_log_of_a_process_that_ended(tmp_path: Path) -> None:
    process = Process("part", python("print('port taken'); raise SystemExit(1)"), tmp_path)
    with pytest.raises(NotReadyError, match=r"part ended while waiting for godot:\nport taken"):
        wait_until(lambda: False, "godot", 60, [process])


def test_waiting_too_long_shows_the_logs(tmp_path: Path) -> None:
    process = Process("part", ["/bin/sh", "-c", "echo still here; sleep 600"], tmp_path)
    wait_until(lambda: process.tail() != "", "a word", 60)
    with pytest.raises(NotReadyError, match=r"godot: not after 0 s\n--- part\nstill here"):
        wait_until(lambda: False, "godot", 0.1, [process])
    process.end()


FAILING = """#!/bin/sh
echo no luck today
exit 1
"""
LASTING = """#!/bin/sh
exec sleep 600
"""


def pretending(folder: Path, **texts: str) -> dict[str, Path]:
    """Binaries that only last, but those in `texts`."""
    made = {}
    for tool in TOOLS:
        made[tool] = folder / tool
        made[tool].write_text(texts.get(tool, LASTING))
        made[tool].chmod(0o755)
    return made


def test_a_start_that_fails_shows_the_log_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with (
        pytest.raises(NotReadyError, match=r"etcd ended .*\nno luck today"),
        started(pretending(tmp_path, etcd=FAILING)),
    ):
        pass
    assert list(temporary.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from tests.support.controlplane.start import started
with started({path.name: path for path in Path(sys.argv[1]).iterdir()}):
    pass
"""


def test_what_a_killed_run_left_goes_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries, temporary = tmp_path / "binaries", tmp_path / "temporary"
    binaries.mkdir()
    temporary.mkdir()
    pretending(binaries)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(binaries)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as run:
        wait_until(lambda: bool(list(temporary.glob("*/kube-apiserver.log"))), "the start", 60)
        with pytest.raises(NotReadyError), started(pretending(tmp_path, etcd=FAILING)):
            pass
        assert len(list(temporary.iterdir())) == 1, "a run that goes on keeps its folder"
        run.kill()
    with pytest.raises(NotReadyError), started(pretending(tmp_path, etcd=FAILING)):
        pass
    assert list(temporary.iterdir()) == []
