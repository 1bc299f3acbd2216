"""Child processes of a control plane: started on a leash, logged to files, ended for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.controlplane.leash import leashed

__all__ = ["NotReadyError", "Process", "wait_until"]


class NotReadyError(RuntimeError):
    """Something did not come up in time; the message ends with the tails of the logs."""


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
        with self.log.open("wb") as log:
            self._popen = subprocess.Popen(
                leashed(command),
                cwd=folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)},
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

    def tail(self, lines: int = 30) -> str:
        """The last lines that it logged."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def end(self) -> None:
        """Kill it with its children. Nothing is flushed: what it kept is thrown away anyway."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()


def wait_until(
    ready: Callable[[], bool], what: str, seconds: float, processes: Sequence[Process] = ()
) -> None:
    """Poll until `ready()`.

    Raises:
        NotReadyError: It took longer than `seconds`, or one of `processes` ended meanwhile.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        for process in processes:
            if not process.running:
                raise NotReadyError(
                    f"{process.name} ended while waiting for {what}:\n{process.tail()}"
                )
        if time.monotonic() > deadline:
            tails = "\n".join(f"--- {process.name}\n{process.tail()}" for process in processes)
            raise NotReadyError(f"{what}: not after {seconds:.0f} s\n{tails}")
        time.sleep(0.05)
