"""Controllers and schedulers as processes, and which of them leads."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pumice.cluster.cache import WatchCache
from tests.support.controlplane.processes import Process, PumiceProcess

COMPONENTS = ("controller", "scheduler")

MEMBERS = 2
"""Processes of each component that are not stopped."""

LEASE_SECONDS = 1
TIMES = (
    f"--leader-elect-lease-duration={LEASE_SECONDS}s",
    "--leader-elect-renew-deadline=700ms",
    "--leader-elect-retry-period=200ms",
)

_TORN = "Fatal error on SSL protocol"
"""What uvloop logs when a connection with unsent data is closed, as those of a stopped process are."""


class Member:
    """One process.

    Attributes:
        stopped: Whether it was sent SIGSTOP and no SIGCONT yet.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.stopped = False

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)
        self.stopped = number == signal.SIGSTOP


class Component:
    """The processes of the controller, or of the scheduler.

    Attributes:
        name: `controller` or `scheduler`.
        longest: Longest time in seconds from the loss of a leader until another one held the Lease.
        terms: How often the Lease was taken.
        renewals: How often it was renewed or taken.
    """

    def __init__(self, name: str, kubeconfig: Path, folder: Path) -> None:
        self.name = name
        self.longest = 0.0
        self.terms = 0
        self.renewals = 0
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._members: list[Member] = []
        self._started = 0
        self._holder = ""
        self._lost: float | None = None
        self._ended: list[Process] = []

    def follow(self, leases: WatchCache[dict[str, Any]]) -> None:
        """Learn from a watch of Leases who leads."""
        leases.subscribe(self._note)

    def _note(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if new is None or new["metadata"]["name"] != f"pumice-{self.name}":
            return
        holder = str(new["spec"].get("holderIdentity") or "")
        self.renewals += bool(holder)
        if not holder or holder == self._holder:
            return
        self._holder = holder
        self.terms += 1
        if self._lost is not None:
            self.longest = max(self.longest, time.monotonic() - self._lost)
            self._lost = None

    @property
    def leader(self) -> Member | None:
        """The process that holds the Lease, unless it was killed or stopped."""
        for each in self._members:
            if self._holder.endswith(f"_{each.process.pid}") and not each.stopped:
                return each
        return None

    def fill_up(self) -> None:
        """Start processes until there are enough that run."""
        while sum(not each.stopped for each in self._members) < MEMBERS:
            self._started += 1
            arguments = [self.name, *TIMES, f"--kubeconfig={self._kubeconfig}"]
            process = PumiceProcess(f"{self.name}-{self._started}", arguments, self._folder)
            self._members.append(Member(process))

    def kill(self, member: Member) -> None:
        """Kill the leader; its Lease stays as it is."""
        self._lost = time.monotonic()
        member.process.end()
        self._members.remove(member)
        self._ended.append(member.process)

    def stop(self, member: Member) -> None:
        """Stop the leader for a while."""
        self._lost = time.monotonic()
        member.send(signal.SIGSTOP)

    def end(self) -> None:
        """End all processes."""
        for each in self._members:
            each.process.end()

    def faults(self) -> Iterable[str]:
        """Processes that ended by themselves, and exceptions in logs."""
        for member in self._members:
            if ending := member.process.ending:
                yield ending
        for process in (*self._ended, *(each.process for each in self._members)):
            yield from exceptions(process)


def exceptions(process: Process) -> Iterable[str]:
    """Exceptions in the log of a process."""
    for line in process.log.read_text(errors="replace").splitlines():
        if "Traceback" in line and _TORN not in line:
            yield f"{process.name} logged an exception: {line[:3000]}"
