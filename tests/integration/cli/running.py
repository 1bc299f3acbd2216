"""Commands that run until they are told to stop, and kubectl against them."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.forked import programs

SECONDS = 60.0
"""How long anything may take to come about."""


@dataclass
class Running:
    """A command in another process.

    Attributes:
        process: The process.
    """

    process: "subprocess.Popen[str]"

    def line(self, start: str) -> str:
        """Wait for a line on stdout that begins so."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            assert selector.select(SECONDS), f"no line on stdout that begins with {start!r}"
        line = self.process.stdout.readline()
        assert line.startswith(start), line or self.process.communicate(timeout=SECONDS)[1]
        return line.strip()

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal and wait for the end: exit code and what it had to say."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextlib.contextmanager
def running(*arguments: str, **environment: str) -> Iterator[Running]:
    """Run `pumice ARGUMENTS…` for as long as the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pumice", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SECONDS)


def pumice(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `pumice ARGUMENTS…` to its end, forked from a process that has imported it."""
    return subprocess.run(
        [programs() / "pumice", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS * 2,
        check=False,
        env=os.environ | environment,
    )


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def kubectl_path() -> str | None:
    """The kubectl that has been built for the tests, or the one on PATH."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    built = sorted(cache.glob("pumice/controlplane/*/bin/kubectl"))
    return str(built[-1]) if built else shutil.which("kubectl")
