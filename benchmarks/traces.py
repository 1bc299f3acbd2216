"""CPU time and memory of a trace in virtual time.

    python -m benchmarks.traces [--part P] [--only N] [--json FILE]

A drawn week of jobs (`pumice trace generate`, about four pods a job) is run by `pumice simulate --trace` in a process of its own, which also reads the
trace and measures what its jobs got. Times and memory stand beside their aims. `--part 0.05` takes a twentieth of the jobs, of the nodes and of the aim for the time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.report import MACHINE, write

SIZES = ((20_000, 300, 60.0), (100_000, 1_500, 1500.0))
"""Jobs, nodes of 8 GPUs, and the aim in CPU seconds."""

LOAD = ("--median", "1800")
"""Jobs are short enough that at most 200 wait, which the aims suppose; with the default 700 do."""

MEMORY_MIB = 2048
"""The aim for the memory."""

NODE = "8gpu,64cpu,512Gi"


@dataclass
class Run:
    """One line of the table.

    Attributes:
        jobs: Jobs of the trace.
        nodes: Nodes of the cluster.
        pods: Pods of the jobs.
        ended: Jobs that were over at the end.
        waiting: Most jobs that waited at once.
        cycles: Scheduling cycles.
        cpu_seconds: All of the process.
        aim_seconds: What they are to be at most.
        decision_seconds: The cycles alone.
        peak_memory_mib: Largest resident memory of the process.
    """

    jobs: int
    nodes: int
    pods: int
    ended: int
    waiting: int
    cycles: int
    cpu_seconds: float
    aim_seconds: float
    decision_seconds: float
    peak_memory_mib: int


def measure(jobs: int, nodes: int, aim: float) -> Run:
    """Draw a trace and run it."""
    pumice = [str(Path(sys.executable).with_name("pumice"))]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.jsonl")
        with trace.open("wb") as lines:
            draw = [*pumice, "trace", "generate", "--jobs", str(jobs), "--seed", "1", *LOAD]
            subprocess.run(draw, stdout=lines, check=True)
        pods = sum(json.loads(line)["replicas"] for line in trace.read_text().splitlines())
        answer = Path(folder, "answer.json")
        with answer.open("wb") as out:
            run = [*pumice, "simulate", "--trace", str(trace), "--nodes", f"{nodes}x{NODE}"]
            process = subprocess.Popen([*run, "-o", "json"], stdout=out)
            _, status, used = os.wait4(process.pid, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise SystemExit(f"pumice simulate ended with code {code}")
        found = json.loads(answer.read_text())
    cost = found["summary"]["cost"]
    return Run(
        jobs,
        nodes,
        pods,
        sum(each["end"] is not None for each in found["jobs"]),
        _most_waiting(found["jobs"]),
        cost["cycles"],
        round(used.ru_utime + used.ru_stime, 1),
        aim,
        round(cost["decision_seconds"], 1),
        used.ru_maxrss // 1024,
    )


def _most_waiting(jobs: Sequence[dict[str, Any]]) -> int:
    """How many jobs waited at once at most; those that start when they are submitted do not wait."""
    changes = [
        change
        for job in jobs
        if job["start"] != job["submit"]
        for change in ((job["submit"], 1), (job["start"], -1))
        if change[0] is not None
    ]
    return max(accumulate((step for _, step in sorted(changes)), initial=0))


def show(runs: Sequence[Run]) -> None:
    """Print the table."""
    print(
        f"{'jobs':>8} {'pods':>8} {'nodes':>6} {'ended':>8} {'waiting':>8} {'cycles':>8} {'CPU s':>8} {'aim':>8} {'deciding':>9} {'MiB':>6} {'aim':>6}"
    )
    for each in runs:
        print(
            f"{each.jobs:>8} {each.pods:>8} {each.nodes:>6} {each.ended:>8} {each.waiting:>8} {each.cycles:>8} "
            f"{each.cpu_seconds:>8} {each.aim_seconds:>8} {each.decision_seconds:>9} {each.peak_memory_mib:>6} {MEMORY_MIB:>6}"
        )


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description="Benchmark traces in virtual time.")
    parser.add_argument("--part", type=float, default=1.0, help="part of the jobs and nodes")
    parser.add_argument("--only", type=int, default=0, help="only the run with this many jobs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs = [
        measure(round(jobs * options.part), max(1, round(nodes * options.part)), aim * options.part)
        for jobs, nodes, aim in SIZES
        if options.only in (0, jobs)
    ]
    show(runs)
    print(MACHINE)
    write(options.json, [asdict(each) for each in runs])


if __name__ == "__main__":
    main()
