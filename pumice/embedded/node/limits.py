"""Limits of containers by cgroups, where this process may make some.

Version 1 has a tree a controller. Version 2 has one tree, in which a cgroup that hands controllers on to those below it must hold no process itself.
So this process, if it is alone in its cgroup, as in one of `systemd-run --user --scope -p Delegate=yes`, moves into one below. Where no cgroup can be
made, as in most containers and for most users, the kernel limits the number of processes of a user instead, and everything that is
written lies in file systems with a size.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_PROCESSES = 4096
"""Processes that a container may have at any moment; the node ends a pod that has half of them for long."""

_PERIOD = 100_000
"""Microseconds in which a container may use its processors."""
_CONTROLLERS = ("cpu", "memory", "pids")


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Folders in which cgroups of containers are made, by controller; all the same one in version 2.

    Attributes:
        folders: The folders.
        is_unified: Whether they are of version 2.
        own: The cgroup of version 2 into which this process has moved from the one above it; None if it stays where it is.
    """

    folders: Mapping[str, Path]
    is_unified: bool
    own: Path | None = None

    @classmethod
    def make(cls, name: str) -> "Cgroups | None":
        """Make the folders; None if that is not allowed here, or a controller is missing."""
        mounts, own = _mounts(), _own()
        if "" in mounts:
            for base in (mounts[""] / own.get("", "").lstrip("/"), mounts[""]):
                if found := cls.below(base, name):
                    return found
        folders: dict[str, Path] = {}
        try:
            for each in _CONTROLLERS:
                folder = mounts[each] / own.get(each, "").lstrip("/") / name
                folder.mkdir()
                folders[each] = folder
        except (KeyError, OSError):
            for folder in folders.values():
                folder.rmdir()
            return None
        return cls(folders, is_unified=False)

    @classmethod
    def below(
        cls, base: Path, name: str, controllers: Sequence[str] = _CONTROLLERS
    ) -> "Cgroups | None":
        """Make a cgroup of version 2 below another; None if that is not allowed, or a controller is missing."""
        own, folder = base / f"{name}-own", base / name
        has_moved = False
        try:
            folder.mkdir()
            if (base / "cgroup.procs").read_text().split() == [str(os.getpid())]:
                own.mkdir()
                _move(own)
                has_moved = True
            _delegate(base, controllers)
            _delegate(folder, controllers)
        except OSError:
            if has_moved:
                _move(base)
            remove_left_over([str(folder), str(own)])
            return None
        folders = dict.fromkeys(controllers, folder)
        return cls(folders, is_unified=True, own=own if has_moved else None)

    def add(self, name: str, memory: int | None, cpu: int | None) -> None:
        """Make the cgroup of a container.

        Args:
            name: Its name.
            memory: Bytes; None for no limit.
            cpu: Thousandths of a processor; None for no limit.
        """
        for folder in {*self.folders.values()}:
            (folder / name).mkdir(exist_ok=True)
        quota = max(1000, cpu * _PERIOD // 1000) if cpu is not None else None
        if self.is_unified:
            values = {
                ("pids", "pids.max"): MOST_PROCESSES,
                ("memory", "memory.max"): memory,
                ("memory", "memory.swap.max"): 0 if memory is not None else None,
                ("memory", "memory.oom.group"): 1 if memory is not None else None,
                ("cpu", "cpu.max"): f"{quota} {_PERIOD}" if quota is not None else None,
            }
        else:
            values = {
                ("pids", "pids.max"): MOST_PROCESSES,
                ("memory", "memory.limit_in_bytes"): memory,
                ("memory", "memory.memsw.limit_in_bytes"): memory,
                ("cpu", "cpu.cfs_period_us"): _PERIOD if quota is not None else None,
                ("cpu", "cpu.cfs_quota_us"): quota,
            }
        for (controller, file), value in values.items():
            path = self.folders[controller] / name / file
            if value is not None and path.exists():  # accounting of swap may be off
                path.write_text(f"{value}\n")

    def files(self, name: str) -> list[Path]:
        """The files into which a process writes `0` to enter the cgroup of a container."""
        return [folder / name / "cgroup.procs" for folder in sorted({*self.folders.values()})]

    def has_killed(self, name: str) -> bool:
        """Whether the kernel has killed a process of a container for its memory."""
        file = "memory.events" if self.is_unified else "memory.oom_control"
        with suppress(OSError):
            for line in (self.folders["memory"] / name / file).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value) > 0
        return False

    def remove(self, name: str) -> None:
        """Remove the cgroup of a container that has ended."""
        for folder in {*self.folders.values()}:
            with suppress(OSError):
                (folder / name).rmdir()

    def close(self) -> None:
        """Remove all that was made."""
        remove_left_over([str(each) for each in {*self.folders.values()}])
        if self.own is not None:
            base = self.own.parent
            with suppress(OSError):
                has = (base / "cgroup.subtree_control").read_text().split()
                (base / "cgroup.subtree_control").write_text(" ".join(f"-{each}" for each in has))
                _move(base)
            remove_left_over([str(self.own)])

    @property
    def made(self) -> list[str]:
        """All folders that were made, for a later start that removes them."""
        return sorted({str(each) for each in (*self.folders.values(), self.own) if each})


def remove_left_over(folders: list[str]) -> None:
    """Remove folders of cgroups without processes, and those in them."""
    for folder in folders:
        with suppress(OSError):
            for each in os.scandir(folder):
                if each.is_dir():
                    Path(each).rmdir()
        with suppress(OSError):
            Path(folder).rmdir()


def _move(folder: Path) -> None:
    (folder / "cgroup.procs").write_text("0")


def _delegate(folder: Path, controllers: Sequence[str]) -> None:
    """Let folders below one have controllers.

    Raises:
        OSError: That is not allowed, or one is missing.
    """
    has = (folder / "cgroup.subtree_control").read_text().split()
    missing = [f"+{each}" for each in controllers if each not in has]
    if missing:
        (folder / "cgroup.subtree_control").write_text(" ".join(missing))


def _mounts() -> dict[str, Path]:
    """Where cgroups are mounted, by controller; version 2 by an empty name."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        place = Path(before.split(" ")[4])
        if kind == "cgroup2":
            found[""] = place
        elif kind == "cgroup":
            found |= {each: place for each in options.split(",") if each in _CONTROLLERS}
    return found


def _own() -> dict[str, str]:
    """This process's cgroups by controller."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), path)
    return found
