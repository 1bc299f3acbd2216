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

__all__ = ["WheelError", "install"]


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
    name = requirement.partition("==")[0]
    options = ["--quiet", where[0], str(where[1]), "--no-deps", "--require-hashes"]
    uv = environ.get("UV") or shutil.which("uv", path=environ.get("PATH", os.defpath))
    if uv:
        command = [uv, "pip", "install", "--python", sys.executable, *options]
    elif importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", *options]
    else:
        raise WheelError(f"neither uv nor pip is there to install the {name} wheel")
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(
            " ".join([requirement, *(f"--hash={each}" for each in hashes)]) + "\n"
        )
        answer = subprocess.run(
            [*command, "-r", str(requirements)],
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
        )
    if answer.returncode:
        raise WheelError(f"installing the {name} wheel failed:\n{answer.stderr.strip()}")
