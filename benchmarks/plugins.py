"""CPU time of wiring the pods of one large Job, for each plugin.

    python benchmarks/plugins.py [--pods N] [--runs N] [--json FILE]

A Job's plugins prepare once, and then wire each pod that the controller creates: the edits of all plugins are
merged and applied to a pod of a usual size, which shares its template with the other pods as in the
controller. Also measured are the creation of the Job's objects (ConfigMaps with all addresses) and the checks
of the plugins at admission. CPU time, median and range; memory is the peak of the process.
"""

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from benchmarks.report import options_of, write
from benchmarks.subjects import task
from pumice.api.jobs import Job
from pumice.plugins import Wiring, builtin, dependencies, problems

AIM_S = 1.0
"""Seconds of CPU for 10,000 pods of one Job."""

FRAMEWORKS: tuple[tuple[str, dict[str, list[str]], tuple[str, ...]], ...] = (
    ("env", {"env": []}, ("worker",)),
    ("svc", {"svc": []}, ("worker",)),
    ("ssh", {"svc": [], "ssh": []}, ("worker",)),
    ("pytorch", {"pytorch": [], "env": []}, ("master", "worker")),
    ("mpi", {"mpi": []}, ("master", "worker")),
    ("mxnet", {"mxnet": []}, ("scheduler", "server", "worker")),
    ("ray", {"ray": []}, ("head", "worker")),
    ("roles", {"roles": ["--roles=worker", "--env=R={rank};S={size}"]}, ("worker",)),
    ("hcclrank", {"pytorch": [], "hcclrank": []}, ("master", "worker")),
    ("tensorflow", {"tensorflow": [], "env": []}, ("ps", "worker")),
)


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds of CPU.

    Attributes:
        framework: The plugin.
        plugins: The plugin and those that it requires, in the order in which they are applied.
        pods: Pods of the Job.
        wiring: Wiring of all pods, median.
        low: Fastest run.
        high: Slowest run.
        objects: Creation of the Job's objects, median.
        check: Checks of the plugins at admission, median.
    """

    framework: str
    plugins: str
    pods: int
    wiring: float
    low: float
    high: float
    objects: float
    check: float


def job(plugins: dict[str, list[str]], tasks: Sequence[str], pods: int) -> Job:
    """A Job whose last task has nearly all pods."""
    plugins = plugins | dependencies(plugins, builtin())
    sizes = [1] * (len(tasks) - 1)
    manifest = {
        "metadata": {"name": "train", "namespace": "vision"},
        "spec": {
            "plugins": plugins,
            "tasks": [
                task(name, size)
                for name, size in zip(tasks, [*sizes, pods - len(sizes)], strict=True)
            ],
        },
    }
    return msgspec.convert(manifest, Job)


def wire(subject: Job) -> None:
    """Wire all pods, each once."""
    wiring = Wiring(subject, builtin())
    for each in subject.tasks:
        template = each.template or {}
        for index in range(each.size):
            name = f"{subject.metadata.name}-{each.name}-{index}"
            pod = {**template, "metadata": {**template["metadata"], "name": name}}
            wiring.pod(each, index, pod)


def timed(work: Callable[[], Any], runs: int) -> list[float]:
    """CPU seconds of each run; the first run warms up and does not count."""
    times = []
    for run in range(runs + 1):
        begun = time.process_time()
        work()
        if run:
            times.append(round(time.process_time() - begun, 4))
    return times


def measure(
    framework: str, plugins: dict[str, list[str]], tasks: Sequence[str], pods: int, runs: int
) -> Row:
    """Measure one framework.

    Raises:
        ValueError: Admission would refuse the Job.
    """
    subject = job(plugins, tasks, pods)
    found = problems(subject, builtin())
    if found.errors:
        raise ValueError(f"{framework}: {found.errors[0]}")
    wiring = timed(lambda: wire(subject), runs)
    objects = timed(lambda: Wiring(subject, builtin()).objects(), runs)
    check = timed(lambda: problems(subject, builtin()), runs)
    named = subject.spec.plugins or {}
    return Row(
        framework,
        ", ".join(each for each in builtin().names if each in named),
        pods,
        statistics.median(wiring),
        min(wiring),
        max(wiring),
        statistics.median(objects),
        statistics.median(check),
    )


def rows(pods: int, runs: int) -> list[Row]:
    """All frameworks."""
    return [measure(name, plugins, tasks, pods, runs) for name, plugins, tasks in FRAMEWORKS]


def table(measured: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [
        f"{'plugin':<11} {'applied':<22} {'pods':>6} {'s CPU (range)':>20} {'objects s':>9} {'check s':>8}"
    ]
    for row in measured:
        spread = f"{row.wiring:.2f} ({row.low:.2f}-{row.high:.2f})"
        lines.append(
            f"{row.framework:<11} {row.plugins:<22} {row.pods:>6} {spread:>20} {row.objects:>9.3f} "
            f"{row.check:>8.4f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write JSON if asked to."""
    options = options_of("Benchmark the wiring of pods.", pods=10_000, runs=3)
    measured = rows(options.pods, options.runs)
    print(table(measured))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    slow = [row.framework for row in measured if row.low > AIM_S]
    print(f"peak {peak} MiB; over {AIM_S:.0f} s of CPU: {', '.join(slow) or 'none'}")
    write(options.json, [asdict(row) for row in measured], aim_s=AIM_S, peak_mib=peak)


if __name__ == "__main__":
    main()
