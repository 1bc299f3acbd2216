"""Become a container: a file system of its own, the pod's volumes in it, exactly its environment, its user.

Run as `python container.py SPEC.json` in fresh mount and PID namespaces, and in the pod's others. Standard
library only, and no import of ours: it ends by becoming the container's command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

DEVICES = ("full", "null", "random", "tty", "urandom", "zero")


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def file_system(layers: list[str], scratch: Path) -> Path:
    """The image with a layer on top that takes what the container writes."""
    mount("-t", "tmpfs", "-o", "size=256m", "pod", scratch)
    upper, work, root = scratch / "upper", scratch / "work", scratch / "root"
    for folder in (upper, work, root):
        folder.mkdir()
    lower = ":".join(reversed(layers))
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", options, root)
    return root


def devices(root: Path) -> None:
    dev = root / "dev"
    mount("-t", "tmpfs", "-o", "mode=755,size=1m", "dev", dev)
    for name in DEVICES:
        (dev / name).touch()
        mount("--bind", f"/dev/{name}", dev / name)
    for name in ("pts", "shm"):
        (dev / name).mkdir()
    mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", dev / "pts")
    mount("-t", "tmpfs", "-o", "mode=1777,size=64m", "shm", dev / "shm")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd")):
        (dev / name).symlink_to(target)
    mount("-t", "proc", "proc", root / "proc")
    mount("--rbind", "/sys", root / "sys")


def bind(root: Path, source: Path, target: str, *, read_only: bool) -> None:
    """Mount a file or a folder where the container wants it, over whatever is there."""
    place = root / target.lstrip("/")
    if source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount("--bind", source, place)
    if read_only:
        mount("-o", "remount,bind,ro", place)


def become(spec: dict[str, Any]) -> None:
    # This is still the node's /proc, in which we have the number that the node knows.
    number = Path("/proc/self").readlink().name
    told = os.open(spec["told"], os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
    root = file_system(spec["layers"], Path(spec["scratch"]))
    devices(root)
    bind(root, Path(spec["hosts"]), "/etc/hosts", read_only=False)
    for each in spec["mounts"]:
        bind(root, Path(each["source"]), each["target"], read_only=each["read_only"])
    os.chroot(root)
    os.chdir(spec["folder"])
    os.setgroups(spec["groups"])
    os.setgid(spec["group"])
    os.setuid(spec["user"])
    os.umask(0o022)
    os.write(told, number.encode())
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


if __name__ == "__main__":
    become(json.loads(Path(sys.argv[1]).read_text()))
