"""An MPI from its wheel: a folder to lay over an image, with all of it in `/usr/local`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["WheelError", "install"]


class WheelError(RuntimeError):
    """The wheel could not be installed; the message ends with what the installer said."""


def install(pin: tuple[str, ...], layer: Path, scratch: Path, environ: Mapping[str, str]) -> None:
    """Install one wheel with uv or pip.

    Args:
        pin: The requirement, and the hashes of its wheels.
        layer: The folder to fill.
        scratch: A folder for a file.
        environ: The environment; its PATH is searched.

    Raises:
        WheelError: There is neither uv nor pip, or it failed.
    """
    requirement, *hashes = pin
    requirements = scratch / f"{layer.name}.txt"
    pins = " ".join(f"--hash=sha256:{value}" for value in hashes)
    requirements.write_text(f"{requirement} {pins}\n")
    place = layer / "usr" / "local"
    options = ["--quiet", "--prefix", str(place), "--no-deps", "--require-hashes"]
    uv = environ.get("UV") or shutil.which("uv", path=environ.get("PATH"))
    if uv:
        command = [uv, "pip", "install", "--python", sys.executable, *options]
    elif importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", *options]
    else:
        raise WheelError(f"neither uv nor pip is there to install {requirement}")
    answer = subprocess.run(
        [*command, "-r", str(requirements)],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise WheelError(f"installing {requirement} failed:\n{answer.stderr.strip()}")
