"""Clusters of `pumice dev --detach`: their start, and finding them again.

Each has a record in a folder of the user, and keeps a lock on it for as long as its process lives: the process inherits the open
file and need not know of it. So a record without a lock is of a cluster that is gone, whatever its process id means now.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import typer
import yaml

from pumice.cli.exits import UserError

_START_SECONDS = 120.0
"""How long a cluster may take until it answers; one with a large state takes some seconds."""
_STOP_SECONDS = 30.0
"""How long a cluster may take to end."""
_READY = "export KUBECONFIG="
"""Begin of the line that `pumice dev` prints on stdout when its API server answers."""


@dataclass(frozen=True, slots=True)
class Detached:
    """A cluster that runs in the background.

    Attributes:
        pid: Its process.
        server: URL of its API server.
        kubeconfig: Its kubeconfig, as an absolute path.
        log: What it writes to stderr.
        started: When, in UNIX seconds.
    """

    pid: int
    server: str
    kubeconfig: str
    log: str
    started: float


def given(context: typer.Context, but: str) -> list[str]:
    """The options of a command as its user gave them, to start the same command again.

    Args:
        context: The command's.
        but: Name of the parameter of a flag that is left out.
    """
    found: list[str] = []
    for each in context.command.params:
        value, name = context.params.get(str(each.name)), str(each.name)
        if name == but or context.get_parameter_source(name).name != "COMMANDLINE":  # type: ignore[union-attr]
            continue
        if isinstance(value, bool):
            found.append((each.opts if value else each.secondary_opts)[-1])
        else:
            values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
            found += [f"{each.opts[-1]}={one}" for one in values]
    return found


def start(
    arguments: Sequence[str], *, with_stdin: bool = False, with_page: bool = False
) -> tuple[Detached, str]:
    """Start `pumice dev` in the background, and return when its API server answers.

    Returns:
        The cluster, and the line with the address of its page, if it has one.

    Raises:
        UserError: It did not start; the messages are those that it wrote.
    """
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = folder / f"{os.getpid()}-{time.time_ns()}.json"
        log, coming = record.with_suffix(".log"), record.with_suffix(".new")
        with coming.open("w", encoding="utf-8") as kept, log.open("w", encoding="utf-8") as said:
            fcntl.flock(kept, fcntl.LOCK_EX)
            process = subprocess.Popen(
                [sys.executable, "-m", "pumice", "dev", *arguments],
                stdin=None if with_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                pass_fds=[kept.fileno()],
                start_new_session=True,  # Ctrl-C, and the end of the terminal, are not meant for it
            )
            try:
                assert process.stdout is not None
                file = _announced(process.stdout, log)
                page = process.stdout.readline().decode().strip() if with_page else ""
            except BaseException:
                process.kill()
                process.wait()
                coming.unlink()
                log.unlink()
                raise
            config = yaml.safe_load(Path(file).read_text("utf-8"))
            server = config["clusters"][0]["cluster"]["server"]
            found = Detached(process.pid, server, file, str(log), time.time())
            json.dump(asdict(found), kept)
            kept.flush()
            coming.rename(record)
    except OSError as error:
        raise UserError(f"--detach: {error.filename or folder}: {error.strerror}") from None
    return found, page


def _announced(stdout: IO[bytes], log: Path) -> str:
    """Wait for the line that names the kubeconfig, and return its path.

    Raises:
        UserError: The process ended, or took too long.
    """
    import selectors

    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        is_timely = bool(selector.select(_START_SECONDS))
    line = stdout.readline().decode() if is_timely else ""
    if line.startswith(_READY):
        return line.removeprefix(_READY).strip()
    why = log.read_text("utf-8", "replace").replace("pumice dev: ", "").splitlines()
    what = "ended" if is_timely else f"did not answer within {_START_SECONDS:g} s"
    raise UserError(*why or [f"the cluster {what}, and wrote nothing"])


def running() -> list[Detached]:
    """Clusters that run in the background, the oldest first; records of those that are gone are removed."""
    found = filter(None, map(_read, _folder().glob("*.json")))
    return sorted(found, key=lambda each: each.started)


def stop(cluster: Detached) -> None:
    """End a cluster, and wait for it.

    Raises:
        UserError: It does not end.
    """
    record = Path(cluster.log).with_suffix(".json")
    os.kill(cluster.pid, signal.SIGTERM)
    for _ in _ticks(_STOP_SECONDS):
        if _read(record) is None:
            return
    what = f"still runs {_STOP_SECONDS:g} s after it was told to stop"
    raise UserError(f"the cluster of {cluster.kubeconfig} (process {cluster.pid}) {what}")


def _ticks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


def _read(record: Path) -> Detached | None:
    """What a record says; None, and the record is removed, if its cluster is gone."""
    try:
        with record.open(encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Detached(**json.loads(stream.read()))
            record.unlink(missing_ok=True)
            record.with_suffix(".log").unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    return None


def _folder() -> Path:
    """Where the records lie, by the rules of XDG."""
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UserError(f"--detach: {error}; set HOME or XDG_STATE_HOME") from None
    return Path(state) / "pumice" / "dev"
