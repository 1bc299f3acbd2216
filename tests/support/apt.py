"""Programs of Debian that tests need: installed once by apt, with `python -m tests.support.apt PROGRAM PACKAGE`.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence


class AptError(RuntimeError):
    """A package cannot be installed; the message says why."""


def install(package: str) -> None:
    """Install a package of Debian.

    Raises:
        AptError: There is no apt, this is not root, or it failed.
    """
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise AptError(f"{package} is installed by apt-get, as root; elsewhere install it yourself")
    print(f"apt: installing {package}", file=sys.stderr, flush=True)
    run(["update"])
    run(["install", "--yes", "--no-install-recommends", package])


def run(arguments: Sequence[str]) -> None:
    """Run apt-get.

    Raises:
        AptError: It failed.
    """
    ran = subprocess.run(
        ["apt-get", "--quiet", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        last = "\n".join(ran.stdout.splitlines()[-12:])
        raise AptError(f"apt-get {' '.join(arguments)} failed:\n{last}")


if __name__ == "__main__":
    program, package = sys.argv[1:]
    try:
        if shutil.which(program) is None:
            install(package)
    except AptError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(1)
