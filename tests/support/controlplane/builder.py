"""The binaries of the real control plane: found, or built once and kept for all checkouts.

`tests/controlplane/go.mod` pins them as Go tools. They are looked for where KUBEBUILDER_ASSETS
points, then in `$XDG_CACHE_HOME/pumice/controlplane/<hash of go.sum>/bin`; what neither has is built
into the latter. A set counts as finished once its stamp names it; the stamp is written last, so that
a build that was cut off leaves nothing that would be taken for a finished one. Standard library only:
this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.controlplane.leash import leashed
from tests.support.controlplane.toolchain import Go, find_go

REPOSITORY = Path(__file__).resolve().parents[3]
MODULE = REPOSITORY / "tests" / "controlplane"

TOOLS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "helm": "helm.sh/helm/v4/cmd/helm",
}
NAMED_BY_GO = {"etcd": "server"}  # Go names a program after its folder

STILL_BUILDING = 30.0  # seconds between two signs of life


class BuildError(RuntimeError):
    """The compiler failed; the message ends with its last lines."""


def say(line: str) -> None:
    """Progress goes to stderr, a line at a time."""
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


class Builder:
    """Finds the binaries and builds those that are missing.

    Args:
        module: The folder with `go.mod` and `go.sum`.
        environ: The environment to work in; this process's own unless given.
    """

    def __init__(self, module: Path = MODULE, environ: Mapping[str, str] | None = None) -> None:
        self.module = module
        self.environ = dict(os.environ if environ is None else environ)
        cache = self.environ.get("XDG_CACHE_HOME", "")
        base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
        self.store = base / "pumice" / "controlplane"
        self.key = hashlib.sha256((module / "go.sum").read_bytes()).hexdigest()[:16]
        self.home = self.store / self.key
        self.bin = self.home / "bin"
        self.stamp = self.home / "stamp.json"

    def found(self) -> dict[str, Path]:
        """The binaries that are ready to use, by name."""
        ready = {}
        assets = self.environ.get("KUBEBUILDER_ASSETS")
        finished = self._finished()
        for tool in TOOLS:
            if assets and os.access(Path(assets, tool), os.X_OK):
                ready[tool] = Path(assets, tool)
            elif tool in finished:
                ready[tool] = self.bin / tool
        return ready

    def missing(self) -> list[str]:
        """The names of the binaries that have to be built."""
        found = self.found()
        return [tool for tool in TOOLS if tool not in found]

    def ensure(self) -> dict[str, Path]:
        """All binaries by name, after building what is missing.

        Raises:
            BuildError: The compiler failed.
            ToolchainError: There is no compiler.
        """
        if self.missing():
            with self._alone():
                missing = self.missing()  # another build may have just finished
                if missing:
                    self._build(missing)
        return self.found()

    def version(self) -> str:
        """The Kubernetes version that go.mod pins, such as `v1.36.3`."""
        return self._pinned(r"^\s*k8s\.io/kubernetes (v\S+)")

    def _pinned(self, pattern: str) -> str:
        found = re.search(pattern, (self.module / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise BuildError(f"{self.module / 'go.mod'} has no line like {pattern}")
        return found[1]

    def _finished(self) -> dict[str, int]:
        """Sizes of the binaries of the finished set, by name."""
        try:
            tools: dict[str, int] = json.loads(self.stamp.read_text())["tools"]
        except FileNotFoundError:
            return {}
        return {name: size for name, size in tools.items() if (self.bin / name).is_file()}

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One build of this set at a time; the kernel lets go of the lock when a build dies."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another build…")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build(self, tools: list[str]) -> None:
        for left_over in self.home.glob(".building-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        least = tuple(int(part) for part in self._pinned(r"^go (\d+\.\d+)").split("."))
        go = find_go((least[0], least[1]), REPOSITORY / "uv.lock", self.store, self.environ, say)
        say(f"building {', '.join(tools)} with {go.version} (minutes when nothing is cached)")
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.home, prefix=".building-") as scratch:
            made = Path(scratch, "bin")
            made.mkdir()
            self._compile(go, tools, Path(scratch), made)
            self._install(go, tools, made)
        total = sum(self._finished().values()) / 1e6
        say(f"{self.bin}: {total:.0f} MB, after {time.monotonic() - begun:.0f} s")

    def _compile(self, go: Go, tools: list[str], scratch: Path, made: Path) -> None:
        version = self.version()
        major, minor = version.removeprefix("v").split(".")[:2]
        stamped = "k8s.io/component-base/version"
        flags = f"-s -w -X {stamped}.gitVersion={version}"
        flags += f" -X {stamped}.gitMajor={major} -X {stamped}.gitMinor={minor}"
        command = [str(go.binary), "build", "-mod=readonly", "-trimpath", "-ldflags", flags]
        command += ["-o", f"{made}{os.sep}", *(TOOLS[tool] for tool in tools)]
        environ = go.environment({**self.environ, "CGO_ENABLED": "0", "GOTMPDIR": str(scratch)})
        output = scratch / "go.log"
        with output.open("wb") as log:
            process = subprocess.Popen(
                leashed(command),
                cwd=self.module,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                _follow(process, {NAMED_BY_GO.get(tool, tool): tool for tool in tools}, made)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if process.returncode:
            last = "\n".join(output.read_text(errors="replace").splitlines()[-40:])
            raise BuildError(f"`{' '.join(command)}` in {self.module} failed:\n{last}")

    def _install(self, go: Go, tools: list[str], made: Path) -> None:
        """Move what was made into place, each file in one step, and the stamp last."""
        self.bin.mkdir(exist_ok=True)
        sizes = self._finished()
        for tool in tools:
            fresh = made / NAMED_BY_GO.get(tool, tool)
            sizes[tool] = fresh.stat().st_size
            fresh.replace(self.bin / tool)
        record = {"kubernetes": self.version(), "go": go.version, "tools": sizes}
        draft = made / "stamp.json"
        draft.write_text(json.dumps(record, indent=2) + "\n")
        draft.replace(self.stamp)


def _follow(process: subprocess.Popen[bytes], waited_for: dict[str, str], made: Path) -> None:
    """Wait for the compiler, a line for each program that is there and one now and then between."""
    begun = spoken = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.25)
        now = time.monotonic()
        for name in [name for name in waited_for if (made / name).exists()]:
            say(f"  {waited_for.pop(name):<24}{now - begun:5.0f} s")
            spoken = now
        if process.returncode is not None:
            return
        if now - spoken >= STILL_BUILDING:
            say(f"  … still building         {now - begun:5.0f} s")
            spoken = now
