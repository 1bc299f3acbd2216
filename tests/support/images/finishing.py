"""What the packages' own scripts would do on installation, as far as our pods need it.

Host keys are made here, for all pods of an image the same, as in images that `apt-get install
openssh-server` was run for. OpenSSH stays as Debian configures it, but for PAM, which an image sets up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.images.recipe import PYTHON

__all__ = ["finish", "finish_wheels", "packages_of"]

FILES = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
        "user:x:1000:1000::/home/user:/bin/bash\n"
    ),
    "etc/shadow": "root:*:19000::::::\nsshd:!:19000::::::\nuser:*:19000::::::\n",
    "etc/group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\nuser:x:1000:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    "etc/hosts": "",
    "etc/resolv.conf": "",
    "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
}
FOLDERS = ("dev", "etc", "home/user", "proc", "root", "run", "sys", "tmp", "usr/local", "var/tmp")
PACKAGES = Path("usr/local/lib", f"python{PYTHON}", "dist-packages")
LINKS = {"usr/bin/sh": "dash", "var/run": "/run", "var/lock": "/run/lock"}


def finish(root: Path) -> None:
    """Make an image of unpacked packages.

    Raises:
        CalledProcessError: A program of the image failed.
    """
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    for name, target in LINKS.items():
        place = root / name
        if place.is_symlink():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)
        place.symlink_to(target)
    (root / "tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    if os.geteuid() == 0:
        os.chown(root / "home/user", 1000, 1000)
    libraries = root / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    alternatives = "".join(
        f"/{(libraries / name).relative_to(root)}\n" for name in ("blas", "lapack")
    )
    (root / "etc/ld.so.conf.d/alternatives.conf").write_text(alternatives)
    shipped = (root / "usr/share/openssh/sshd_config").read_text()
    (root / "etc/ssh/sshd_config").write_text(shipped.replace("UsePAM yes", "UsePAM no"))
    _mend(root)
    nothing = root / "dev/null"  # the device is mounted over it in a pod
    nothing.touch()
    _run(root, "/sbin/ldconfig")
    _run(root, "/usr/bin/ssh-keygen", "-q", "-A")
    _run(root, "/usr/bin/python3", "-m", "compileall", "-q", *_imported(root))


def packages_of(layer: Path) -> Path:
    """Where Debian's Python looks for packages that Debian did not bring."""
    return layer / PACKAGES


def finish_wheels(base: Path, layer: Path) -> None:
    """Let installed wheels find Debian's Python, and compile them for it.

    Raises:
        CalledProcessError: A program of the image failed.
    """
    programs = layer / "usr/local/bin"
    programs.mkdir()
    installed = packages_of(layer) / "bin"
    for script in installed.iterdir():
        _, _, text = script.read_text().partition("\n")
        program = programs / script.name
        program.write_text(f"#!/usr/bin/python3\n{text}")
        program.chmod(0o755)
    shutil.rmtree(installed)
    mounted = 'mount --bind "$1/usr/local" "$0/usr/local" && exec chroot "$0" python3 -m compileall -q "/$2"'
    _unshared("--mount", "sh", "-c", mounted, base, layer, PACKAGES)


def _mend(root: Path) -> None:
    """Let torchrun start under Python 3.11, as PyTorch itself does from 2.0 on.

    Debian's 1.13 looks for `Std.NONE` by iterating over a Flag, which since 3.11 leaves zero out.
    """
    file = root / "usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py"
    file.write_text(file.read_text().replace("for s in Std:", "for s in (Std.NONE, *Std):"))


def _imported(root: Path) -> list[str]:
    """Packages that are compiled beforehand, so that no pod pays for it again."""
    packages = root / "usr/lib/python3/dist-packages"
    found = [packages / name for name in ("torch", "numpy") if (packages / name).exists()]
    library = next((root / "usr/lib").glob("python3.*"))
    return [f"/{each.relative_to(root)}" for each in (library, *found)]


def _run(root: Path, *command: str) -> None:
    """Run a program of the image, with the image for its whole file system."""
    _unshared(f"--root={root}", *command)


def _unshared(*words: str | Path) -> None:
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    subprocess.run(
        ["unshare", *own, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
