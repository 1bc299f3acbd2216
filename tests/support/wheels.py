"""Wheels, installed apart from any environment, by uv or by pip, whichever is there."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path


class WheelError(RuntimeError):
    """A wheel could not be installed; the message ends with what the installer said."""


def install(
    requirement: str, hashes: Iterable[str], where: tuple[str, Path], environ: Mapping[str, str]
) -> None:
    """Install one wheel, and nothing that it depends on.

    Args:
        requirement: The package and its version, `NAME==VERSION`.
        hashes: Of its wheels, `sha256:…`.
        where: `--target` or `--prefix`, and the folder.
        environ: The environment; its PATH is searched.

    Raises:
        WheelError: There is neither uv nor pip, or it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(
            " ".join([requirement, *(f"--hash={each}" for each in hashes)]) + "\n"
        )
        options = (where[0], str(where[1]))
        _install(requirements, options, requirement.partition("==")[0], environ)


def install_locked(lock: Path, python: str, target: Path, environ: Mapping[str, str]) -> None:
    """Install the wheels that a file names with their hashes, for a Python that need not be there.

    Args:
        lock: The file of requirements.
        python: Version of the Python, such as `3.11`.
        target: The folder for the packages; programs come into `bin` in it.
        environ: The environment; its PATH is searched.

    Raises:
        WheelError: There is neither uv nor pip, or it failed.
    """
    options = ("--target", str(target), "--python-version", python, "--only-binary", ":all:")
    _install(lock, options, lock.stem, environ)


def _install(
    requirements: Path, options: Iterable[str], name: str, environ: Mapping[str, str]
) -> None:
    uv = environ.get("UV") or shutil.which("uv", path=environ.get("PATH", os.defpath))
    if uv:
        command = [uv, "pip", "install", "--python", sys.executable]
    elif importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install"]
    else:
        raise WheelError(f"neither uv nor pip is there to install the {name} wheel")
    answer = subprocess.run(
        [*command, "--quiet", "--no-deps", "--require-hashes", *options, "-r", str(requirements)],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise WheelError(f"installing the {name} wheel failed:\n{answer.stderr.strip()}")
