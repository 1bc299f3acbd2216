"""Files of volumes in the node's namespaces, and how full they are; with the standard library only, as `init` imports it."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from pumice.embedded.node import syscalls

Raw = dict[str, Any]
FILES = 200_000
"""Files that a tmpfs may hold."""
MOST_PROCESSES = 2048
"""Processes that a container may run."""


def write_files(volume: str, request: Raw) -> None:
    """Replace the files of a volume: all at once, by one symbolic link, as kubelet does."""
    os.makedirs(volume, exist_ok=True)
    fresh = f"..{request['version']}"
    os.mkdir(f"{volume}/{fresh}", 0o755)
    for path, (content, mode) in request["files"].items():
        if ".." in path.split("/"):
            raise OSError(0, f"{path}: leads out of the volume")
        file = f"{volume}/{fresh}/{path}"
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as stream:
            stream.write(content.encode("latin-1"))
        if request["group"] is not None:
            os.chown(file, -1, request["group"])
        os.chmod(file, mode)
    old = os.readlink(f"{volume}/..data") if os.path.lexists(f"{volume}/..data") else None
    os.symlink(fresh, f"{volume}/..data_tmp")
    os.rename(f"{volume}/..data_tmp", f"{volume}/..data")
    names = set(os.listdir(f"{volume}/{fresh}"))
    for name in set(os.listdir(volume)) - names:
        if not name.startswith(".."):
            os.unlink(f"{volume}/{name}")
    for name in names:
        if not os.path.lexists(f"{volume}/{name}"):
            os.symlink(f"..data/{name}", f"{volume}/{name}")
    if old is not None:
        shutil.rmtree(f"{volume}/{old}")


def make_empty(volume: str, size: int, group: int | None) -> None:
    """Make a volume that is empty, with a limit of bytes; with a group it is the group's."""
    os.makedirs(volume)
    syscalls.mount("tmpfs", volume, f"mode=777,size={size},nr_inodes={FILES}")
    if group is not None:
        os.chown(volume, -1, group)
        os.chmod(volume, 0o2777)


def rewrite(path: str, text: str) -> None:
    """Write a file in place, because containers have mounted this very file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    content = text.encode()
    try:
        os.pwrite(file, content, 0)
        os.ftruncate(file, len(content))
    finally:
        os.close(file)


def _usage(folder: str) -> tuple[int, bool]:
    """Bytes that a file system holds, and whether it takes no more bytes or files."""
    found = os.statvfs(folder)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return used, not found.f_bavail or not found.f_favail


def _processes_by_namespace() -> dict[int, int]:
    """How many processes run, by PID namespace."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                number = os.stat(f"/proc/{name}/ns/pid").st_ino
                found[number] = found.get(number, 0) + 1
    return found


def too_much(
    volumes: Mapping[str, Mapping[str, str]],
    containers: Mapping[int, str],
    most: Mapping[str, int],
    together: int,
) -> Iterator[tuple[str, str]]:
    """Pods that have filled a file system, hold more than they may, or run too many processes, with what to say.

    Args:
        volumes: File systems of each pod, with what to say when one is full.
        containers: Pods by the first processes of their containers.
        most: Bytes that each pod may hold.
        together: Bytes that all may hold.
    """
    used = dict.fromkeys(volumes, 0)
    for pod, own in volumes.items():
        for volume, message in own.items():
            held, is_full = _usage(volume)
            used[pod] += held
            if is_full:
                yield pod, message
    counts = _processes_by_namespace() if len(os.listdir("/proc")) > MOST_PROCESSES else {}
    for pid, pod in containers.items():
        with contextlib.suppress(OSError):  # of a process that has just ended
            number = counts.get(os.stat(f"/proc/{pid}/ns/pid").st_ino, 0) if counts else 0
            held, is_full = _usage(f"/proc/{pid}/root")
            used[pod] = used.get(pod, 0) + held + _usage(f"/proc/{pid}/root/dev/shm")[0]
            if number > MOST_PROCESSES:
                yield pod, f"{number} processes run in it, at most {MOST_PROCESSES} may"
            elif is_full:
                yield pod, "its containers have written all that they may outside of volumes"
    for pod, limit in most.items():
        if used.get(pod, 0) > limit:
            text = f"its volumes and containers hold more than the {limit >> 20} MiB that a pod may"
            yield pod, text
    if used and sum(used.values()) > together:
        largest = max(used, key=lambda each: (used[each], each))
        allowed = f"{together >> 20} MiB"
        text = f"pods hold more than the {allowed} that they may together, and this one most"
        yield largest, text
