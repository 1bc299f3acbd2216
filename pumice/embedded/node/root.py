"""The file system of a container, built in a mount namespace of its own.

Without an image it is the machine's. A mount namespace below a user namespace may not take apart what it was given: an overlay
of `/` as a whole is refused where other file systems are mounted below it. So each folder of `/` gets an overlay of its own, or its
folders do where that is refused, too. What a container writes goes into one tmpfs with a limit. A process that listens at a
socket is not reached through an overlay, and no device of it can be opened: so other file systems of the machine are shown by overlays,
too. Where that cannot be they are empty folders, but for those that hold no sockets.

Folders of other users than the node's cannot be copied into an overlay. So the folders on the way to each mount are made in
the upper layer before.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Sequence
from typing import Any

from pumice.embedded.node import syscalls
from pumice.embedded.node.pod_files import FILES

_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_OWN = ("dev", "proc", "run", "sys", "tmp")
"""Folders of `/` that are not the machine's."""
_WRITTEN = ("/etc", "/root", "/var/cache", "/var/lib", "/var/log", "/var/tmp")
"""Folders in which programs expect to write."""
_UNKNOWN = 65534
"""Users whom a user namespace does not have appear to be this one."""
_ONLY_READ = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Parts of `/proc` by which the machine is changed."""
_HIDDEN = (
    "proc/acpi", "proc/asound", "proc/kcore", "proc/keys", "proc/latency_stats", "proc/sched_debug",
    "proc/scsi", "proc/timer_list", "proc/timer_stats", "sys/firmware",
)  # fmt: skip
"""What tells too much about the machine, as other container runtimes hide it."""
_WITHOUT_SOCKETS = ("exfat", "iso9660", "msdos", "vfat")
"""File systems that can hold no socket."""
_PATH = os.O_PATH | os.O_DIRECTORY
_MOST_LINKS = 40
"""Links that are followed one after the other, as in Linux."""


class Root:
    """The root of one container, until it is entered.

    Args:
        scratch: An empty folder.
        layers: Folders from the bottom up; none means the machine's root.
        size: Bytes that the container may write.
    """

    def __init__(self, scratch: str, layers: Sequence[str], size: int) -> None:
        self.path = f"{scratch}/root"
        self._scratch = scratch
        self._layers = layers
        with open("/proc/self/mountinfo") as mounts:
            self._mounted = dict(map(_place_and_kind, mounts))
        syscalls.mount("tmpfs", scratch, f"mode=755,size={size},nr_inodes={FILES}")
        for name in ("root", "upper", "workdir"):
            os.mkdir(f"{scratch}/{name}")

    def build(self, mounts: Sequence[dict[str, Any]], folder: str, *, is_read_only: bool) -> None:
        """Mount everything but volumes.

        Args:
            mounts: Where volumes will be mounted.
            folder: The working folder.
            is_read_only: Whether nothing but volumes may be written.

        Raises:
            OSError: A folder cannot be made.
        """
        parents = [os.path.dirname(each["target"].rstrip("/")) for each in mounts]
        folders = [each["target"] for each in mounts if each["is_folder"]]
        wanted = [*_WRITTEN, *parents, *folders, folder]
        if self._layers:
            self._overlay("", self._layers, wanted)
        else:
            syscalls.bind(self.path, self.path)
            self._show_machine(wanted)
        for name in _OWN:
            os.makedirs(f"{self.path}/{name}", exist_ok=True)
        for each in mounts:
            self._make(f"mountPath {each['target']}", each["target"], is_folder=each["is_folder"])
        self._make(f"workingDir {folder}", folder, is_folder=True)
        if is_read_only:
            syscalls.read_only(self.path)
        self._mount_own()

    def _make(self, what: str, path: str, *, is_folder: bool) -> None:
        try:
            os.close(place_of(self.path, path, is_folder=is_folder))
        except OSError as error:
            raise OSError(error.errno, f"{what} cannot be made: {error.strerror}") from None

    def _show_machine(self, wanted: Sequence[str]) -> None:
        for entry in os.scandir("/"):
            if entry.name not in _OWN and (entry.is_symlink() or entry.is_dir()):
                self._show_entry(entry, entry.name, wanted)
        os.mkdir(f"{self.path}/tmp")
        os.chmod(f"{self.path}/tmp", 0o1777)

    def _show_folder(self, name: str, wanted: Sequence[str]) -> None:
        """Show a folder of the machine with a layer for writing; entry by entry if a file system is mounted below it."""
        place, at = f"{self.path}/{name}", self._mount_of(f"/{name}")
        try:
            self._overlay(name, [f"/{name}"], wanted)
        except OSError as error:
            if error.errno == errno.EINVAL and self._has_mounts(f"/{name}"):
                for entry in os.scandir(f"/{name}"):
                    self._show_entry(entry, f"{name}/{entry.name}", wanted)
                return
            if at == "/":
                raise
            if self._mounted[at] not in _WITHOUT_SOCKETS:
                return
            syscalls.bind(f"/{name}", place)
            syscalls.read_only(place)
        if at != "/":
            syscalls.forbid_devices(place)

    def _mount_of(self, path: str) -> str:
        """Where the file system of a folder of the machine is mounted."""
        while path not in self._mounted and path != "/":
            path = os.path.dirname(path)
        return path

    def _has_mounts(self, path: str) -> bool:
        return any(each.startswith(f"{path}/") for each in self._mounted)

    def _show_entry(self, entry: os.DirEntry[str], name: str, wanted: Sequence[str]) -> None:
        place = f"{self.path}/{name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.is_file():
            with open(place, "x"):
                syscalls.bind(entry.path, place)
            syscalls.read_only(place)
            syscalls.forbid_devices(place)
        elif entry.is_dir():
            os.mkdir(place)
            if not os.access(entry.path, os.R_OK | os.X_OK):
                os.chmod(place, 0o700)  # as /root of another user
            else:
                self._show_folder(name, wanted)

    def _overlay(self, name: str, layers: Sequence[str], wanted: Sequence[str]) -> None:
        """Lay a layer for writing over others.

        Args:
            name: The folder of the root; empty for the root.
            layers: Folders from the bottom up.
            wanted: Paths of folders that the upper layer is to have.
        """
        upper, work = (f"{self._scratch}/{each}/{name or '.'}" for each in ("upper", "workdir"))
        if name:
            os.makedirs(upper, exist_ok=True)
            os.makedirs(work, exist_ok=True)
        _take_after(upper, os.stat(layers[-1]))
        prefix = f"/{name}/" if name else "/"
        for path in wanted:
            if f"{path}/".startswith(prefix):
                _make_above(upper, layers, path.removeprefix(prefix.rstrip("/")))
        lower = ":".join(map(_escaped, reversed(layers)))
        options = f"lowerdir={lower},upperdir={_escaped(upper)},workdir={_escaped(work)}"
        syscalls.mount("overlay", f"{self.path}/{name}", options)

    def _mount_own(self) -> None:
        syscalls.mount("proc", f"{self.path}/proc")
        for name in _ONLY_READ:
            part = f"{self.path}/proc/{name}"
            if os.path.exists(part):
                syscalls.bind(part, part)
                syscalls.read_only(part)
        try:
            syscalls.mount("sysfs", f"{self.path}/sys")  # which shows the interfaces of the pod
        except OSError:
            syscalls.bind("/sys", f"{self.path}/sys", recursive=True)
        syscalls.read_only(f"{self.path}/sys")
        self._hide()
        dev = f"{self.path}/dev"
        syscalls.mount("tmpfs", dev, "mode=755,size=1m,nr_inodes=1000")
        for name in _DEVICES:
            with open(f"{dev}/{name}", "x"):
                syscalls.bind(f"/dev/{name}", f"{dev}/{name}")
        os.mkdir(f"{dev}/pts")
        syscalls.mount("devpts", f"{dev}/pts", "newinstance,ptmxmode=0666,mode=620")
        os.mkdir(f"{dev}/shm")
        syscalls.mount("tmpfs", f"{dev}/shm", f"mode=1777,size=64m,nr_inodes={FILES}")
        for name, target in _LINKS.items():
            os.symlink(target, f"{dev}/{name}")

    def _hide(self) -> None:
        for name in _HIDDEN:
            hidden = f"{self.path}/{name}"
            if os.path.isdir(hidden):
                syscalls.mount("tmpfs", hidden, "mode=555,size=4k,nr_inodes=1")
                syscalls.read_only(hidden)
            elif os.path.exists(hidden):
                syscalls.bind("/dev/null", hidden)

    def show(self, source: str, target: str, *, is_read_only: bool, is_own: bool) -> None:
        """Mount a file or a folder at a path of the container, over whatever is there.

        Raises:
            OSError: There is no such source, or the target cannot be made.
        """
        try:
            place = place_of(self.path, target, is_folder=os.path.isdir(source))
            syscalls.bind(source, f"/proc/self/fd/{place}", recursive=True)
            # The former descriptor is of what lies under the mount.
            mounted = place_of(self.path, target, is_folder=os.path.isdir(source))
            if is_read_only:
                syscalls.read_only(f"/proc/self/fd/{mounted}")
            if not is_own:
                syscalls.forbid_devices(f"/proc/self/fd/{mounted}")
        except OSError as error:
            what = f"mountPath {target} cannot be mounted: {error.strerror}"
            raise OSError(error.errno, what) from None

    def hide(self, hidden: str, source: str, target: str) -> None:
        """Leave a mount out of a folder that was shown: it is an empty folder there.

        Raises:
            OSError: The folder lies in it.
        """
        if f"{source}/".startswith(f"{hidden}/"):
            raise OSError(errno.EACCES, f"{source} is the node's own")
        if hidden.startswith(f"{source.rstrip('/')}/"):
            place = place_of(
                self.path, f"{target}/{os.path.relpath(hidden, source)}", is_folder=True
            )
            syscalls.unmount(f"/proc/self/fd/{place}")


def place_of(root: str, path: str, *, is_folder: bool, links: int = 0) -> int:
    """A descriptor of a path inside a root, which is made if it is not there.

    Args:
        root: Path of the root.
        path: The path in it.
        is_folder: Whether a folder is made.
        links: How many links to what is not there were followed.
    """
    top = os.open(root, _PATH)
    try:
        parts = [part for part in path.split("/") if part]
        for number, part in enumerate(parts):
            before, after = "/".join(parts[:number]), parts[number + 1 :]
            try:
                found = syscalls.open_inside(top, f"{before}/{part}", os.O_PATH, as_root=True)
            except FileNotFoundError:
                folder = syscalls.open_inside(top, before, _PATH, as_root=True)
                try:
                    link = _link(part, folder)
                    if link is not None and links < _MOST_LINKS:
                        target = os.path.normpath(os.path.join("/", before, link, *after))
                        return place_of(root, target, is_folder=is_folder, links=links + 1)
                    _make(part, folder, is_folder=is_folder or bool(after))
                finally:
                    os.close(folder)
            else:
                os.close(found)
        return syscalls.open_inside(top, path, os.O_PATH, as_root=True)
    finally:
        os.close(top)


def _link(name: str, folder: int) -> str | None:
    """Where a link leads; None if there is none of this name."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _make(name: str, folder: int, *, is_folder: bool) -> None:
    if is_folder:
        os.mkdir(name, 0o755, dir_fd=folder)
    else:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder))


def source_of(mount: dict[str, Any]) -> int:
    """A descriptor of what a mount shows; no link of a volume leads out of it."""
    folder = os.open(mount["base"], os.O_PATH)
    try:
        if not mount["path"]:
            return os.dup(folder)
        try:
            return syscalls.open_inside(folder, mount["path"], os.O_PATH, as_root=False)
        except FileNotFoundError:
            if not mount["makes"]:
                raise
        os.close(place_of(mount["base"], mount["path"], is_folder=mount["makes"] == "folder"))
        return syscalls.open_inside(folder, mount["path"], os.O_PATH, as_root=False)
    finally:
        os.close(folder)


def _make_above(upper: str, layers: Sequence[str], path: str) -> None:
    """Make a folder in the upper layer, with owners and modes that its parents have below, as far as no link is on the way."""
    here = ""
    for part in filter(None, path.split("/")):
        if part in (".", ".."):
            return
        here += f"/{part}"
        below = None
        for layer in reversed(layers):
            with contextlib.suppress(OSError):
                below = os.lstat(f"{layer}{here}")
                break
        if below is not None and not stat.S_ISDIR(below.st_mode):
            return
        try:
            os.mkdir(f"{upper}{here}")
        except FileExistsError:
            continue
        os.chmod(f"{upper}{here}", 0o755)
        if below is not None:
            _take_after(f"{upper}{here}", below)


def _take_after(folder: str, below: os.stat_result) -> None:
    """Give a folder of the upper layer the owner and the mode of the one that it covers."""
    if _UNKNOWN not in (below.st_uid, below.st_gid):
        with contextlib.suppress(OSError):
            os.chown(folder, below.st_uid, below.st_gid)
    os.chmod(folder, stat.S_IMODE(below.st_mode))


def _escaped(path: str) -> str:
    """A path in the options of an overlay."""
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _place_and_kind(mount: str) -> tuple[str, str]:
    """Where a line of mountinfo says that a file system is mounted, and its kind."""
    before, _, after = mount.partition(" - ")
    place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), before.split(" ")[4])
    return place, after.split(" ")[0]
