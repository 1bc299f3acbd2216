"""Decisions of the scheduler core per CPU second, and the CPU time of a cycle without changes.

    python benchmarks/scheduling.py [--runs N] [--json FILE]

Placing: 10,000 pods (fewer where the row says so) on empty nodes, one cycle; with Pumice's default configuration and
with the one that Volcano compiles in. In racks: the same, each gang or partition in one rack of 16 nodes. Idle: 5,000 nodes
that carry 50,000 running pods, after no event, after the heartbeat of a node, and after the end of a pod.
Preemption: full nodes and 50 gangs of a higher priority, for which 1,000 pods are evicted, with plugins priority and gang.
Waiting: full nodes for which 500 gangs wait, and one event that helps none of them, or a pod that ends; also the
writes that follow. The gangs are equal, or each has another size. The first cycle after the event is measured.
Ordering: action enqueue admits 10,000 PodGroups of 1,000 queues, one of each queue in turn.
Sharing: elastic gangs of three pods in each of 1,000 or 2,000 queues, in a tree in which all queues deserve something; each pod has a turn of its
own, after which the order of the queues is another one. Plugin capacity with its hierarchy.
CPU time of the cycle (and of the event) alone; median and range over the runs. Python's garbage collector is as in the
component (`pumice/cli/lean.py`, `pumice/cluster/slices.py`): what was listed is frozen, and it looks at 10,000 new objects at a time.
Memory: see `benchmarks/scheduling_memory.py`.
"""

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.report import MACHINE, write
from benchmarks.scheduling_clusters import (
    GANGS,
    NAMESPACE,
    SIZE,
    add_gang,
    cluster,
    equal,
    full_of_gangs,
    full_of_less_important,
    running,
)
from benchmarks.scheduling_events import WAITING, Happens, Waits, heartbeat
from benchmarks.scheduling_work import NETWORK, PLACING, elastic_in_tree, tree_of_queues
from pumice.cli.lean import settled
from pumice.scheduler import ClusterState, Config, load_config, run_cycle
from pumice.scheduler.options import Step
from pumice.scheduler.worker.configuration import DELAYS

VICTIMS = """
actions: enqueue, allocate, preempt
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
"""
VOLCANO = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
"""The configuration that Volcano uses without a file."""
CAPACITY = """
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: capacity, enableHierarchy: true}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: nodeorder}, {name: binpack}]
"""


@dataclass
class Row:
    """One line of the table.

    Attributes:
        name: Name of the work.
        nodes: Nodes of the cluster.
        pods: Number of pods to place, or of running pods.
        milliseconds: CPU time of the cycle, median.
        low: Fastest run.
        high: Slowest run.
        writes: Writes that follow from the cycle, if measured; without bindings.
        is_placing: Whether the cycle placed all pods.
    """

    name: str
    nodes: int
    pods: int
    milliseconds: float
    low: float
    high: float
    writes: int | None = None
    is_placing: bool = False

    @property
    def pods_per_second(self) -> float:
        """Pods per CPU second."""
        return self.pods / self.milliseconds * 1000


def measure_placing(
    name: str, nodes: int, build: Callable[[ClusterState], None], config: Config, runs: int
) -> Row:
    """One cycle that places everything."""
    times = []
    decided = waiting = 0
    for _ in range(runs):
        state = cluster(nodes)
        build(state)
        waiting = len(state.tasks)
        gc.collect()
        with settled():
            start = time.process_time()
            result = run_cycle(state, config, 0.0)
            times.append((time.process_time() - start) * 1000)
        decided = len(result.binds)
    middle = statistics.median(times)
    placed = decided == waiting
    return Row(name, nodes, decided, middle, min(times), max(times), is_placing=placed)


def measure_idle(nodes: int, pods: int, runs: int) -> list[Row]:
    """Cycles of a full cluster: after no event, after a heartbeat, and after one pod has ended."""
    config = load_config()
    state = running(nodes, pods)
    run_cycle(state, config, 0.0)
    run_cycle(state, config, 0.0)
    rows = []
    for name, event in (
        ("idle", lambda _: None),
        ("heartbeat", lambda _: state.set_node(heartbeat(state))),
        ("one pod ends", lambda run: state.remove_pod(NAMESPACE, f"gang-{run}-worker-0")),
    ):
        times = []
        gc.collect()
        with settled():
            for run in range(runs):
                start = time.process_time()
                event(run)
                run_cycle(state, config, 0.0)
                times.append((time.process_time() - start) * 1000)
        rows.append(Row(name, nodes, pods, statistics.median(times), min(times), max(times)))
    return rows


def measure_waiting(
    what: str,
    nodes: int,
    size: int,
    cpu: Callable[[int], str],
    happens: Happens,
    waits: Waits,
    runs: int,
) -> Row:
    """Full nodes, 500 gangs that wait, and one event."""
    config = load_config()
    state = running(nodes, nodes * 16)
    state.delays = DELAYS
    for gang in range(GANGS):
        waits(state, f"waiting-{gang}", size, cpu(gang))
    now = 0.0
    for _ in range(5):  # until all reasons have been written
        run_cycle(state, config, now)
        now += DELAYS.numbers
    times, writes = [], []
    gc.collect()
    with settled():
        for run in range(runs):
            start = time.process_time()
            happens(state, run)
            result = run_cycle(state, config, now)
            times.append((time.process_time() - start) * 1000)
            writes.append(len(result.pod_groups) + len(result.pods) + len(result.events))
            now += DELAYS.numbers
    kind = "equal" if cpu is equal else "unequal"
    name = f"{GANGS} {kind} gangs of {size}: {what}"
    middle = statistics.median(times)
    return Row(name, nodes, nodes * 16, middle, min(times), max(times), max(writes))


def measure_preempting(nodes: int, runs: int) -> Row:
    """Full nodes, and 50 gangs of 20 pods of a higher priority, for each of which a pod is evicted."""
    config = load_config(VICTIMS)
    times = []
    evicted = 0
    for _ in range(runs):
        state = full_of_less_important(nodes)
        gc.collect()
        with settled():
            start = time.process_time()
            result = run_cycle(state, config, 0.0)
            times.append((time.process_time() - start) * 1000)
        evicted = len(result.evicted)
    return Row("preemption", nodes, evicted, statistics.median(times), min(times), max(times))


def measure_gang_eviction(nodes: int, runs: int) -> Row:
    """Full nodes on which 500 gangs run, and one gang of 10 pods of a higher priority, for which one of them goes as a whole."""
    config = load_config(VICTIMS.replace("preempt", "gangpreempt"))
    times: list[float] = []
    evicted = 0

    @contextmanager
    def measure(step: Step, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        if (step, name) == ("action", "gangpreempt"):
            times.append((time.process_time() - start) * 1000)

    for _ in range(runs):
        state = full_of_gangs(nodes)
        gc.collect()
        with settled():
            result = run_cycle(state, config, 0.0, measure)
        evicted = len(result.evicted)
    middle = statistics.median(times)
    return Row("gang preemption, one decision", nodes, evicted, middle, min(times), max(times))


def measure_ordering(name: str, config: Config, runs: int) -> Row:
    """Action enqueue for 10,000 PodGroups without pods, of all queues in turn."""
    times: list[float] = []

    @contextmanager
    def measure(step: Step, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        if (step, name) == ("action", "enqueue"):
            times.append((time.process_time() - start) * 1000)

    for _ in range(runs):
        state = cluster(1000)
        leaves = tree_of_queues(state)
        for number in range(GANGS * SIZE):
            add_gang(state, f"gang-{number}", 1, queue=leaves[number % len(leaves)])
        gc.collect()
        with settled():
            result = run_cycle(state, config, 0.0, measure)
        assert len(result.pod_groups) == GANGS * SIZE
    return Row(name, 1000, 0, statistics.median(times), min(times), max(times))


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description="Benchmark the scheduler core.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="shapes of work with this in their name")
    options = parser.parse_args()
    rows = [
        measure_placing(f"{name}{whose}", nodes, build, load_config(text), options.runs)
        for whose, text in (("", None), (", Volcano's file", VOLCANO))
        for name, build in PLACING
        for nodes in (1000, 5000)
        if options.only in name
    ]
    rows += [
        measure_placing(name, nodes, build, load_config(), options.runs)
        for name, build, nodes in NETWORK
        if options.only in name
    ]
    if not options.only:
        rows += measure_others(options.runs)
    show(rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MiB, {MACHINE}")
    figures = [asdict(row) | {"pods_per_second": row.pods_per_second} for row in rows]
    write(options.json, figures, peak_memory_mib=peak)


def measure_others(runs: int) -> list[Row]:
    """Cycles that place no or few pods."""
    preempting = [measure_preempting(nodes, runs) for nodes in (1000, 5000)]
    preempting.append(measure_gang_eviction(5000, runs))
    ordering = [
        measure_ordering("ordering 10,000 PodGroups in 1,000 queues", load_config(), runs),
        measure_ordering("ordering, Volcano's file", load_config(VOLCANO), runs),
    ]
    sharing = [
        measure_placing(
            f"elastic gangs in {queues:,} queues that deserve",
            500,
            partial(elastic_in_tree, queues),
            load_config(CAPACITY),
            runs,
        )
        for queues in (1000, 2000)
    ]
    return (
        preempting
        + ordering
        + sharing
        + measure_idle(5000, 50_000, runs)
        + [
            measure_waiting(what, nodes, size, cpu, happens, waits, runs)
            for what, size, cpu, happens, waits in WAITING
            for nodes in (1500, 5000)
        ]
    )


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    head = (
        f"{'what':<48} {'nodes':>6} {'pods':>6} {'ms CPU (range)':>24} {'pods/s':>12} {'writes':>6}"
    )
    print(head)
    for row in rows:
        spread = f"{row.milliseconds:.3f} ({row.low:.3f}-{row.high:.3f})"
        rate = f"{row.pods_per_second:,.0f}" if row.is_placing else ""
        writes = "" if row.writes is None else row.writes
        print(f"{row.name:<48} {row.nodes:>6} {row.pods:>6} {spread:>24} {rate:>12} {writes:>6}")


if __name__ == "__main__":
    main()
