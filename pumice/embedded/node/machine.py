"""This machine as a node: its scratch folder, its namespaces and its cgroups, made together and gone together.

The kernel ends the processes, mounts and interfaces of a node whose process was killed. What is left of one on disk, its logs and
perhaps empty cgroups, the next start removes: each folder has a lock, which the kernel lets go.
"""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pumice.embedded.node.limits import Cgroups, remove_left_over
from pumice.embedded.node.namespaces import Mode, Namespaces, NodeError, mode_here

_MOST_SIZE = 2**30
_LOCK, _CGROUPS = "lock", "cgroups"


def capacity() -> tuple[str, str]:
    """Processors and memory of this machine, as quantities."""
    processors = len(os.sched_getaffinity(0))
    return str(processors), f"{_memory() // 2**20}Mi"


@dataclass(frozen=True, slots=True)
class Machine:
    """What pods run on.

    Attributes:
        namespaces: Their namespaces.
        mode: The users that they may have.
        folder: Where logs lie.
        images: Folders of images by name, from the bottom up; an image that is not among them is the machine's root.
        allowed: Folders of the machine in which a `hostPath` may lie.
        path: `PATH` of containers in the machine's root.
        working: Their working folder.
        cgroups: Limits; None where there are none.
        size: Bytes that a pod may hold in its volumes and containers, and each of these.
        together: Bytes that all pods may hold.
    """

    namespaces: Namespaces
    mode: Mode
    folder: Path
    images: Mapping[str, tuple[str, ...]]
    allowed: tuple[Path, ...]
    path: str
    working: str
    cgroups: Cgroups | None
    size: int
    together: int


@asynccontextmanager
async def local_machine(
    images: Mapping[str, Sequence[Path]], allowed: Sequence[Path]
) -> AsyncIterator[Machine]:
    """Make namespaces for pods, which end with the block.

    Raises:
        NodeError: They cannot be made here; the message says what to do.
    """
    mode = mode_here()
    with _scratch() as folder:
        root = folder / "root"
        root.mkdir()
        cgroups = Cgroups.make(folder.name)
        if cgroups is not None:
            (folder / _CGROUPS).write_text(json.dumps(cgroups.made))
        namespaces = None
        try:
            namespaces = await Namespaces.start(mode, root)
            yield Machine(
                namespaces=namespaces,
                mode=mode,
                folder=folder / "logs",
                images={name: tuple(map(str, each)) for name, each in images.items()},
                allowed=tuple(allowed),
                path=os.environ.get("PATH") or os.defpath,
                working=str(Path.cwd()),
                cgroups=cgroups,
                size=min(_MOST_SIZE, _memory() // 4),
                together=_memory() // 2,
            )
        finally:
            if namespaces is not None:
                await namespaces.end()
            if cgroups is not None:
                cgroups.close()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder of this process alone; those of processes that are gone are removed.

    Raises:
        NodeError: It cannot be made.
    """
    try:
        base = _base()
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (base / ".lock").open("w") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            _remove_left_over(base)
            folder = Path(tempfile.mkdtemp(prefix="pumice-", dir=base))
            lock = (folder / _LOCK).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise NodeError(f"{error.filename or base}: {error.strerror}") from None
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _base() -> Path:
    """Where the folders lie, by the rules of XDG."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "pumice" / "run"


def _remove_left_over(base: Path) -> None:
    for folder in base.glob("pumice-*"):
        with contextlib.suppress(FileNotFoundError), (folder / _LOCK).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
        with contextlib.suppress(OSError, ValueError):
            remove_left_over(json.loads((folder / _CGROUPS).read_text()))
        shutil.rmtree(folder, ignore_errors=True)
