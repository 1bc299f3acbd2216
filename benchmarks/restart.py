"""Time from the start of a scheduler to its first binding in a large cluster, and the longest stall of its event loop.

    python -m benchmarks.restart [--nodes N] [--pods N] [--rounds N] [--json FILE]

5,000 nodes and 140,000 pods that run, three quarters of them in gangs of 20, and one gang that waits. A server process shows
this cluster (`benchmarks/canned.py`); `pumice scheduler` is a process of its own. The time runs from the start of that process to
the first binding that the server receives. `benchmarks/probe.py` measures stalls.

Also measured: the time in a small cluster from the start of the scheduler to its first binding, and of the controller to its Lease.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import probe
from benchmarks.report import MACHINE, write

QUIET = subprocess.DEVNULL
STARTS = 5
"""Number of starts of each component in a small cluster."""
WATCHED_SECONDS = 10.0
"""Seconds for which the process is measured after the first binding; counts and statuses of queues are written within this time."""


def report(port: int) -> dict[str, Any]:
    """The counters of the server."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/report", timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def served(nodes: int, pods: int) -> Iterator[int]:
    """Run a server process with a cluster; yields its port."""
    port = free_port()
    options = [f"--nodes={nodes}", f"--pods={pods}", f"--port={port}"]
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.canned", *options], stderr=QUIET)
    try:
        while True:
            try:
                report(port)
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def running(command: list[str], port: int, awaited: str) -> Iterator[dict[str, Any]]:
    """Run a component until the server has seen a certain request of it; returns the counters, with times in seconds from the start."""
    start = time.monotonic()
    process = subprocess.Popen([*command, f"--master=http://127.0.0.1:{port}"], stderr=QUIET)
    try:
        while not (found := report(port))[awaited]:
            if process.poll() is not None or time.monotonic() - start > 300:
                raise SystemExit(f"no {awaited} within 300 s")
            time.sleep(0.1)
        yield {**found, awaited: found[awaited] - start, "listed": found["listed"] - start}
    finally:
        process.terminate()
        process.wait()


def measure(nodes: int, pods: int, folder: Path) -> dict[str, Any]:
    """One restart of the scheduler."""
    figures = folder / "figures.json"
    scheduler = probe.command(figures, "scheduler")
    with served(nodes, pods) as port, running(scheduler, port, "first_bind") as found:
        time.sleep(WATCHED_SECONDS)
        row: dict[str, Any] = {
            "seconds": found["first_bind"],
            "listed_seconds": found["listed"],
            "requests": report(port)["requests"],
        }
    row.update(json.loads(figures.read_text()))
    return row


def started(component: str, awaited: str) -> float:
    """Seconds from the start of a component to its first work in a small cluster."""
    command = [sys.executable, "-m", "pumice", component]
    with served(10, 100) as port, running(command, port, awaited) as found:
        return float(found[awaited])


def line(name: str, values: list[float], unit: str) -> None:
    """Print a figure with its spread."""
    print(
        f"{name:<34} {statistics.median(values):9.2f} {unit} ({min(values):.2f}-{max(values):.2f})"
    )


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=140_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(options.nodes, options.pods, Path(folder)) for _ in range(options.rounds)]
    starts = {
        "scheduler": [started("scheduler", "first_bind") for _ in range(STARTS)],
        "controller": [started("controller", "led") for _ in range(STARTS)],
    }
    print(f"restart, {options.nodes} nodes, {options.pods} pods that run")
    line("start to first binding", [row["seconds"] for row in rows], "s")
    line("start to last page of pods", [row["listed_seconds"] for row in rows], "s")
    line("longest stall", [row["stall_wall"] * 1000 for row in rows], "ms")
    line("longest stall, CPU time", [row["stall_cpu"] * 1000 for row in rows], "ms")
    line("longest garbage collection", [row["longest_collection"] * 1000 for row in rows], "ms")
    line("CPU time", [row["cpu_seconds"] for row in rows], "s")
    line("peak memory", [row["memory_mib"] for row in rows], "MiB")
    for name, times in starts.items():
        line(f"start of the {name}", times, "s")
    for name, count in sorted(rows[-1]["requests"].items()):
        print(f"  {name:<32} {count:9}")
    print(f"{MACHINE}, load {os.getloadavg()[0]:.1f}")
    write(options.json, rows, starts=starts, nodes=options.nodes, pods=options.pods)


if __name__ == "__main__":
    main()
