"""What can be seen of a component from outside while a load lasts: answers to probes, memory, its Lease, its log."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pumice.cluster.cache import WatchCache
from tests.support.controlplane.processes import Process

Raw = dict[str, Any]

EACH = 0.2
"""Seconds between two probes."""

MIB = 2**20

LOST = "no longer leads"
"""What a component logs when it has lost its Lease."""


@dataclass
class Vitals:
    """What one component showed.

    Attributes:
        answers: Answers of `/healthz` with status 200.
        unhealthy: What came instead of such an answer, and how often.
        longest: The longest time to an answer, in seconds.
        before: Resident memory when it began, in MiB.
        peak: The most memory since then, in MiB.
        lost: How often its log says that it no longer leads.
        exceptions: Exceptions in its log.
        ended: Whether the process has ended.
    """

    answers: int = 0
    unhealthy: dict[str, int] = field(default_factory=dict)
    longest: float = 0.0
    before: float = 0.0
    peak: float = 0.0
    lost: int = 0
    exceptions: int = 0
    ended: bool = False


class Leases:
    """Holders and renewals of Leases, as a watch shows them.

    Attributes:
        holders: Who has held each, one after the other.
        longest: The longest time in seconds between two renewals of each, as its holder wrote them.
    """

    def __init__(self, cache: WatchCache[Raw]) -> None:
        self.holders: dict[str, list[str]] = {}
        self.longest: dict[str, float] = {}
        self._renewed: dict[str, datetime] = {}
        cache.subscribe(self._note)

    def _note(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or not new["spec"].get("renewTime"):
            return
        name, spec = new["metadata"]["name"], new["spec"]
        renewed = datetime.fromisoformat(spec["renewTime"])
        holders = self.holders.setdefault(name, [])
        if holders[-1:] != [spec.get("holderIdentity")]:
            holders.append(spec.get("holderIdentity"))
        since = (renewed - self._renewed.get(name, renewed)).total_seconds()
        self.longest[name] = max(self.longest.get(name, 0.0), since)
        self._renewed[name] = renewed


@contextmanager
def watched_vitals(process: Process, url: str) -> Iterator[Vitals]:
    """Probe a component as kubelet does, only more often, for as long as the block lasts.

    Args:
        process: Its process.
        url: Of its `/healthz`.
    """
    found = Vitals(before=_memory(process.pid, "VmRSS"))
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak begins again
    lost, exceptions = _logged(process)
    over = threading.Event()
    worker = threading.Thread(target=_probe, args=(url, over, found))
    worker.start()
    try:
        yield found
    finally:
        over.set()
        worker.join()
        found.ended = not process.running
        if not found.ended:
            found.peak = _memory(process.pid, "VmHWM")
        now = _logged(process)
        found.lost, found.exceptions = now[0] - lost, now[1] - exceptions


def _probe(url: str, over: threading.Event, found: Vitals) -> None:
    while not over.wait(EACH):
        start = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                answer.read()
            found.answers += 1
        except (urllib.error.URLError, OSError) as error:
            found.unhealthy[str(error)] = found.unhealthy.get(str(error), 0) + 1
        found.longest = max(found.longest, time.monotonic() - start)


def _memory(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / MIB


def _logged(process: Process) -> tuple[int, int]:
    text = process.log.read_text(errors="replace")
    return text.count(LOST), text.count("Traceback")
