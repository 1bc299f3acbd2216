"""Debian packages with all that they depend on, unpacked into a folder: no root, no change to the system.

apt works in a state folder of its own in which nothing is installed, so that it names every package of
the closure; it checks signatures with the key ring of the system.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support import apt
from tests.support.images.recipe import KEYRING, MIRROR, SUITE

__all__ = ["DebianError", "unpack"]

MERGED = ("bin", "sbin", "lib", "lib64")
USELESS = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man")


class DebianError(RuntimeError):
    """The packages could not be had; the message ends with what apt said."""


def unpack(
    packages: Sequence[str], root: Path, scratch: Path, environ: Mapping[str, str]
) -> list[str]:
    """Unpack packages and what they depend on.

    Args:
        packages: Their names.
        root: An empty folder that becomes the root of a file system.
        scratch: A folder for apt's state, and for the packages meanwhile.
        environ: Where `PUMICE_DEBIAN_MIRROR` names a mirror that is nearer.

    Returns:
        The files' names, which tell the versions.

    Raises:
        DebianError: There is no apt, or it failed.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and Path(KEYRING).is_file()):
        raise DebianError(f"this is no Debian: apt-get, dpkg-deb or {KEYRING} is missing")
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    found = _downloaded(packages, scratch, environ.get("PUMICE_DEBIAN_MIRROR") or MIRROR)
    with ThreadPoolExecutor(4) as pool:
        for problem in pool.map(lambda file: _extracted(file, root), found):
            if problem:
                raise DebianError(problem)
    return [file.name for file in found]


def _downloaded(packages: Sequence[str], scratch: Path, mirror: str) -> list[Path]:
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    settings = {
        "Acquire::Languages": "none",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Dir::Cache": scratch / "cache",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": scratch,
        "Dir::State::status": scratch / "status",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    try:
        apt.run([*options, "update"])
        apt.run([*options, "--yes", "--download-only", "install", *packages])
    except apt.AptError as error:
        raise DebianError(str(error)) from None
    return sorted((scratch / "cache" / "archives").glob("*.deb"))


def _extracted(file: Path, root: Path) -> str:
    """Unpack one package; what went wrong, empty when nothing did."""
    left_out = [f"--exclude=./{folder}" for folder in USELESS]
    package = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE)
    tar = subprocess.run(
        ["tar", "-x", "-C", root, "--keep-directory-symlink", *left_out, "-f", "-"],
        stdin=package.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert package.stdout is not None
    package.stdout.close()
    failed = package.wait() or tar.returncode
    return f"unpacking {file.name} failed: {tar.stderr}" if failed else ""
