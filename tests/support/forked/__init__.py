"""Pumice in processes that are forked from one that has imported it, for tests of what it does and not of how it starts."""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kit.waiting import wait_until

Completed = subprocess.CompletedProcess[str]
PROGRAM = str(Path(sys.executable).with_name("pumice"))
_FOLDER = Path(__file__).parent
_ROOT = _FOLDER.parents[2]


@functools.cache
def server() -> str:
    """Path of the socket of this process's server, which is started when it is first asked for and ends with the process."""
    folder = tempfile.mkdtemp(prefix="pumice-forked-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, log = f"{folder}/socket", Path(folder, "log")
    with log.open("wb") as output:
        command = [sys.executable, "-m", "tests.support.forked.server", path]
        process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    atexit.register(_end, process)
    wait_until(lambda: process.poll() is not None or Path(path).exists(), "the forking server", 60)
    assert process.poll() is None, log.read_text(errors="replace")
    return path


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


def write_command(path: Path) -> None:
    """Write a program that stands for `pumice` on a PATH."""
    words = [sys.executable, "-IS", str(_FOLDER / "command.py"), server(), PROGRAM]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)


def run(*arguments: str, environment: Mapping[str, str] = os.environ) -> Completed:
    """Run `pumice` in this folder to its end, without input."""
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as messages,
    ):
        streams = nothing.fileno(), output.fileno(), messages.fileno()
        code = Forked(arguments, Path.cwd(), environment, streams).wait()
        for each in (output, messages):
            each.seek(0)
        return Completed(["pumice", *arguments], code, output.read(), messages.read())


@functools.cache
def programs() -> Path:
    """A folder with a `pumice` that starts quickly, for this process."""
    folder = Path(server()).parent / "bin"
    folder.mkdir()
    write_command(folder / "pumice")
    return folder


class Forked:
    """A child that runs `pumice`; of `subprocess.Popen` it has what a test needs.

    Attributes:
        pid: Its process id, which is that of its session and process group, too.
        returncode: How it ended, as of a `Popen`.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> None:
        """Start it.

        Args:
            arguments: Behind the program's name.
            folder: Where it works.
            environment: Its whole environment.
            streams: File descriptors of its standard streams.
        """
        words = [PROGRAM, *arguments]
        variables = [f"{name}={value}" for name, value in environment.items()]
        order = "\0".join((str(folder), str(len(words)), *words, *variables)).encode()
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server())
        length = len(order).to_bytes(4, sys.byteorder)
        socket.send_fds(self._connection, [length], streams)
        self._connection.sendall(order)
        self.pid = self._answer()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None:
            self._connection.setblocking(False)
            try:
                self.wait()
            except BlockingIOError:
                self._connection.setblocking(True)
        return self.returncode

    def wait(self) -> int:
        """Wait until it has ended."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._answer())
            self._connection.close()
        return self.returncode

    def _answer(self) -> int:
        return int.from_bytes(self._connection.recv(4), sys.byteorder)
