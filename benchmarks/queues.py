"""What a change of a PodGroup's phase costs the controller of queues, and how often it writes: `python -m benchmarks.queues`.

1,000 queues and 10,000 PodGroups, spread over the queues or all in one of them, on an embedded API server in a process of its own, which also
changes the phases, at a fixed rate. The controller runs in the process that is measured: its CPU time holds everything, from the bytes of the watch to the
writes. For each queue the shortest time between two writes of its status is kept.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.report import MACHINE, write
from pumice.api.crds import all_crds
from pumice.api.kinds import POD_GROUP, QUEUE
from pumice.api.podgroups import PHASES
from pumice.api.queues import Queue
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.queues import own_status
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.embedded import EmbeddedCluster
from pumice.plugins import builtin

QUIET_SECONDS = 3.0
"""Seconds without a write after which a measurement begins, or ends."""


async def serve(queues: int, groups: int, spread: int) -> None:
    """Run the API server; each line of standard input says how many changes to make, and how many per second."""
    async with EmbeddedCluster(all_crds()) as cluster:
        store = cluster.store
        for number in range(queues):
            head = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind}
            meta = {"name": f"q{number}"}
            store.create({**head, "metadata": meta, "spec": {"parent": "root"}})
        for number in range(groups):
            meta = {"name": f"g{number}", "namespace": "default"}
            head = {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.kind}
            spec = {"minMember": 1, "queue": f"q{number % spread}"}
            status = {"phase": PHASES[0]}
            store.create({**head, "metadata": meta, "spec": spec, "status": status})
        print(cluster.url, flush=True)
        lines = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(lines)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while line := await lines.readline():
            changes, rate = map(int, line.split())
            began = time.monotonic()
            for number in range(changes):
                group = store.get(POD_GROUP, f"g{number % groups}", "default")
                assert group is not None
                phase = PHASES[(PHASES.index(group["status"]["phase"]) + 1) % len(PHASES)]
                store.update(group | {"status": {"phase": phase}})
                if (ahead := began + number / rate - time.monotonic()) > 0:
                    await asyncio.sleep(ahead)
            print(time.monotonic() - began, flush=True)


@dataclass
class Writes:
    """Writes of queue statuses, counted by a watch.

    Attributes:
        total: Number of writes.
        shortest: Shortest time between two of one queue, in seconds.
        last: When the last was seen, by queue.
    """

    total: int
    shortest: float
    last: dict[str, float]

    def changed(self, old: Queue | None, new: Queue | None) -> None:
        """Count a change of a queue."""
        if old is None or new is None or own_status(old) == own_status(new):
            return
        now, name = time.monotonic(), new.metadata.name
        self.total += 1
        self.shortest = min(self.shortest, now - self.last.get(name, -1e9))
        self.last[name] = now


@contextmanager
def server(queues: int, groups: int, spread: int) -> Iterator[subprocess.Popen[str]]:
    """The API server in a process of its own."""
    numbers = [str(each) for each in (queues, groups, spread)]
    command = [sys.executable, "-m", "benchmarks.queues", "--serve", *numbers]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


async def measure(queues: int, groups: int, spread: int, changes: int, rate: int) -> dict[str, Any]:
    """One row."""
    with server(queues, groups, spread) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).strip()
        async with Client.connect(server=url) as client:
            settings = ControllerSettings(controllers=frozenset(("queue-controller",)))
            worker = ControllerWorker(client, builtin(), settings)
            started, used = time.monotonic(), time.process_time()
            running = asyncio.create_task(run_until_stopped(worker.tasks(), signals=()))
            await worker.started.wait()
            cache = worker.watches.of(QUEUE, Queue)
            writes = Writes(0, float("inf"), {})
            cache.subscribe(writes.changed)
            await until(lambda: all(each.status.state for each in cache.values()))
            opened = time.monotonic() - started
            opening = time.process_time() - used
            await quiet(writes)
            writes.total, writes.shortest, writes.last = 0, float("inf"), {}
            used = time.process_time()
            process.stdin.write(f"{changes} {rate}\n")
            process.stdin.flush()
            took = float(await asyncio.to_thread(process.stdout.readline))
            await quiet(writes)
            cpu = time.process_time() - used
            counted = sum(sum(_counts(each)) for each in cache.values())
            assert counted == groups, f"{counted} PodGroups are counted, expected {groups}"
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return {
        "queues": queues,
        "groups": groups,
        "groups are in": spread,
        "changes": changes,
        "changes per second": round(changes / took),
        "cpu ms per change": round(cpu / changes * 1000, 3),
        "writes": writes.total,
        "shortest seconds between writes of a queue": round(writes.shortest, 3),
        "seconds until all queues were open": round(opened, 2),
        "cpu seconds until then": round(opening, 2),
    }


def _counts(queue: Queue) -> list[int]:
    return [int(getattr(queue.status, phase.lower())) for phase in PHASES]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def quiet(writes: Writes) -> None:
    """Wait until writes have stopped."""
    seen = -1
    while seen != writes.total:
        seen = writes.total
        await asyncio.sleep(QUIET_SECONDS)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=1_000, help="changes per second")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=3, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(*given.serve))
        return 0
    rows = []
    for spread in (given.queues, 1):
        row = uvloop.run(measure(given.queues, given.groups, spread, given.changes, given.rate))
        rows.append(row)
        print("\n".join(f"{name:45} {value}" for name, value in row.items()), end="\n\n")
    print(MACHINE)
    write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
