"""Child processes of a control plane: started on a leash, logged to files, ended for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.controlplane.leash import leashed


class Process:
    """One part, running in a process group of its own.

    It ends with `end`, and at the latest when the process that started it does.

    Args:
        name: What it is called in messages.
        command: Path of the program, and its arguments.
        folder: Where it runs and where `<name>.log` is written. Its HOME, too.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = leashed(command)
        self._folder = folder
        self.log.write_bytes(b"")
        self._popen = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                cwd=self._folder,
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": str(self._folder),
                    # `make test` has them collect garbage less often: memory for processor time.
                    "GOGC": os.environ.get("GOGC", "100"),
                    "PYTHONFAULTHANDLER": "1",  # what ends a component from its first moment on is in its log
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def ending(self) -> str:
        """How it ended by itself, and its last lines; empty while it runs."""
        code = self._popen.poll()
        if code is None:
            return ""
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return f"{self.name} ended by itself with {how}:\n{self.tail()}"

    def tail(self, lines: int = 30) -> str:
        """The last lines that it logged."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def end(self) -> None:
        """Kill it with its children. Nothing is flushed: what it kept is thrown away anyway."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()

    def restart(self) -> None:
        """Kill it, and start it again as it was; its log goes on. Call it in a thread that lasts: see `leashed`."""
        self.end()
        self.start_again()

    def start_again(self) -> None:
        """Start it as it was after `end`."""
        self._popen = self._started()
