"""Child processes of a control plane: started on a leash, logged to files, ended for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.controlplane.leash import leashed
from tests.support.forked import Forked


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
        self._command = command
        self._folder = folder
        self.log.write_bytes(b"")
        self._popen = self._started()

    def _started(self) -> subprocess.Popen[bytes] | Forked:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                leashed(self._command),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            # `make test` has them collect garbage less often: memory for processor time.
            "GOGC": os.environ.get("GOGC", "100"),
            "PYTHONFAULTHANDLER": "1",  # what ends a component from its first moment on is in its log
        }

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

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and its children; nothing if it has ended."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)

    def end(self) -> None:
        """Kill it with its children. Nothing is flushed: what it kept is thrown away anyway."""
        self.send(signal.SIGKILL)
        self._popen.wait()

    def restart(self) -> None:
        """Kill it, and start it again as it was; its log goes on. Call it in a thread that lasts: see `leashed`."""
        self.end()
        self.start_again()

    def start_again(self) -> None:
        """Start it as it was after `end`."""
        self._popen = self._started()


class PumiceProcess(Process):
    """`pumice` with arguments, forked from a process that has imported it, for tests that do not measure its memory.

    Args:
        name: What it is called in messages.
        arguments: Of `pumice`.
        folder: Where it runs and where `<name>.log` is written. Its HOME, too.
        variables: Of its environment, beside those of any process.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._variables = variables or {}
        super().__init__(name, arguments, folder)

    def _started(self) -> Forked:
        environment = {**self._environment, **self._variables}
        with self.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            streams = nothing.fileno(), log.fileno(), log.fileno()
            return Forked(self._command, self._folder, environment, streams)
