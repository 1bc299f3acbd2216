"""Memory of the scheduler core, each figure from a new process.

    python -m benchmarks.scheduling_memory [--json FILE]

A cluster of 5,000 nodes with 10,000 and with 50,000 running pods, after a cycle: peak resident memory of the process, and what
each further pod takes. 500 gangs of 20 pods placed on 5,000 nodes, each gang of another shape: what the cycle
takes at most, less what it takes when they all are of one shape.
"""

import argparse
import resource
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.report import MACHINE, write
from benchmarks.scheduling_clusters import GANGS, cluster, running
from benchmarks.scheduling_work import equal_gangs, unequal_gangs
from pumice.scheduler import load_config, run_cycle

NODES = 5000
FEW, MANY = 10_000, 50_000
MIB = 1024 * 1024


def resident(pods: int) -> int:
    """Peak resident bytes of a process that holds a cluster with so many running pods."""
    run_cycle(running(NODES, pods), load_config(), 0.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def of_cycle(shapes: int) -> int:
    """Bytes that a cycle of 500 gangs of so many shapes, 1 or 500, takes at most beyond what was there before it."""
    state = cluster(NODES)
    (equal_gangs if shapes == 1 else unequal_gangs)(state)
    tracemalloc.start()
    run_cycle(state, load_config(), 0.0)
    return tracemalloc.get_traced_memory()[1]


def alone(measure: Callable[[int], int], argument: int) -> int:
    """A figure from a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, argument).result()


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description="Memory of the scheduler core.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    few, many = alone(resident, FEW), alone(resident, MANY)
    shapes = alone(of_cycle, GANGS) - alone(of_cycle, 1)
    figures: list[dict[str, object]] = [
        {
            "what": f"peak with {FEW:,} pods, MiB",
            "figure": round(few / MIB),
            "aim": 150 + FEW // 512,
        },
        {
            "what": f"peak with {MANY:,} pods, MiB",
            "figure": round(many / MIB),
            "aim": 150 + MANY // 512,
        },
        {"what": "a further pod, bytes", "figure": (many - few) // (MANY - FEW), "aim": 2048},
        {
            "what": f"500 shapes at {NODES:,} nodes, MiB",
            "figure": round(shapes / MIB, 1),
            "aim": 16,
        },
    ]
    for each in figures:
        print(f"{each['what']:<40} {each['figure']:>8} {each['aim']:>8}")
    print(MACHINE)
    write(options.json, figures)


if __name__ == "__main__":
    main()
