"""Cgroups of version 2: in a hierarchy of this machine with a controller that it has there, and which files the limits of a container are written to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.embedded.node.limits import Cgroups

UNIFIED = next(
    (
        Path(line.split(" ")[4])
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if " - cgroup2 " in line
    ),
    None,
)
HANDED_ON = ("memory", "hugetlb", "io")
"""Controllers that a cgroup with processes in it cannot hand on."""
FREE = [
    each
    for each in HANDED_ON
    if UNIFIED
    and os.geteuid() == 0
    and each in (UNIFIED / "cgroup.controllers").read_text().split()
][:1]
ALONE = """
import os, subprocess, sys, time
from pathlib import Path
from pumice.embedded.node.limits import Cgroups
scope, controller = Path(sys.argv[1]), sys.argv[2]

def cgroup(pid):
    found = [line for line in open(f"/proc/{pid}/cgroup").read().splitlines() if line.startswith("0::")]
    return found[0].removeprefix("0::")

(scope / "cgroup.procs").write_text("0")
beside = subprocess.Popen(["sleep", "100"])
print(Cgroups.below(scope, "run", [controller]))
beside.kill()
beside.wait()
print(sorted(each.name for each in scope.iterdir() if each.is_dir()))
made = Cgroups.below(scope, "run", [controller])
print([each.removeprefix(f"{scope}/") for each in made.made])
(scope / "run/container").mkdir()
(file,) = made.files("container")
script = f"echo 0 >{file} && exec sleep 100"
with subprocess.Popen(["sh", "-c", script]) as process:
    while not cgroup(process.pid).endswith("/run/container"):
        time.sleep(0.01)
    process.kill()
made.remove("container")
print(cgroup(os.getpid()).removeprefix(f"/{scope.name}"))
made.close()
print(sorted(each.name for each in scope.iterdir() if each.is_dir()))
print(cgroup(os.getpid()).removeprefix(f"/{scope.name}") or "back")
"""


@pytest.mark.parametrize("controller", FREE)
def test_a_process_alone_in_its_cgroup_moves_below_and_back(controller: str) -> None:
    assert UNIFIED is not None
    control = UNIFIED / "cgroup.subtree_control"
    was_on = controller in control.read_text().split()
    scope = UNIFIED / f"pumice-test-{os.getpid()}"
    scope.mkdir()
    try:
        control.write_text(f"+{controller}")
        ran = subprocess.run(
            [sys.executable, "-c", ALONE, str(scope), controller],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        scope.rmdir()
        if not was_on:
            control.write_text(f"-{controller}")
    assert ran.stdout.splitlines() == [
        "None",  # another process is in the cgroup
        "[]",
        "['run', 'run-own']",
        "/run-own",
        "[]",
        "back",
    ], ran.stderr


def test_limits_are_written_where_version_2_has_them(tmp_path: Path) -> None:
    files = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")
    (tmp_path / "c").mkdir()
    for file in (*files, "memory.events"):
        (tmp_path / "c" / file).touch()
    cgroups = Cgroups(dict.fromkeys(("cpu", "memory", "pids"), tmp_path), is_unified=True)
    cgroups.add("c", None, None)
    assert [(tmp_path / "c" / file).read_text() for file in files] == ["", "", "", "4096\n", ""]
    cgroups.add("c", 2**25, 500)
    assert [(tmp_path / "c" / file).read_text() for file in files] == [
        *("33554432\n", "0\n", "1\n", "4096\n"),
        "50000 100000\n",
    ]
    assert cgroups.files("c") == [tmp_path / "c" / "cgroup.procs"]
    assert not cgroups.has_killed("c")
    (tmp_path / "c/memory.events").write_text("oom 1\noom_kill 1\n")
    assert cgroups.has_killed("c")
