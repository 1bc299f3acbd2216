#!/usr/bin/env python3
"""The hook `pumice-lint` of pre-commit: `pumice lint` of this checkout, with the few packages that it imports.

pre-commit itself would install everything that Pumice depends on, most of which is for clusters, and take minutes. This keeps an
environment in the checkout, which is pre-commit's own copy, and makes it in seconds: from wheels alone, by uv where there is one.

    pre_commit.py [--with PACKAGE]… [OPTION OF LINT | FILE]…
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("google-re2", "msgspec", "pydantic", "pyyaml", "typer", "tzdata")
"""What `pumice lint` imports; the versions are those of pyproject.toml."""
LINT = ("lint", "--quiet", "--skip-others")


def requirements(pyproject: str) -> list[str]:
    """The dependencies of lint among those of a pyproject.toml."""
    listed: list[str] = tomllib.loads(pyproject)["project"]["dependencies"]
    named = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0]: each for each in listed}
    return [named[each] for each in NEEDED]


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Packages of `--with`, such as those with job plugins, and the arguments for lint.

    Raises:
        SystemExit: `--with` is the last argument.
    """
    packages, rest = [], []
    given = iter(arguments)
    for each in given:
        if each == "--with":
            package = next(given, None)
            if package is None:
                sys.exit("pumice-lint: --with: expected a package")
            packages.append(package)
        else:
            rest.append(each)
    return packages, rest


def main(arguments: Sequence[str]) -> None:
    """Make the environment if it is not there, and become `pumice lint` in it."""
    packages, rest = split(arguments)
    wanted = [*requirements((ROOT / "pyproject.toml").read_text(encoding="utf-8")), *packages]
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = ROOT / ".pumice" / f"lint-{key}"
    python = folder / "bin" / "python"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two commits at a time make it once
        if not (folder / "ready").exists():
            _make(folder, python, wanted)
            (folder / "ready").touch()
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.execve(
        python,
        [str(python), "-m", "pumice", *LINT, *rest],
        os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
    )


def _make(folder: Path, python: Path, wanted: Sequence[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if uv := shutil.which("uv"):
        first = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        second = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        first = [sys.executable, "-m", "venv", str(folder)]
        second = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    for command in (first, [*second, "--only-binary", ":all:", *wanted]):
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
            sys.exit(f"pumice-lint: {' '.join(command)} failed")


if __name__ == "__main__":
    main(sys.argv[1:])
