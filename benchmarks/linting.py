"""Time and memory of `pumice lint` for a thousand Jobs, for the whole command from its start to its end.

    python benchmarks/linting.py [--jobs N] [--runs N] [--json FILE]

The Jobs are of 3 to 10 KB, of four shapes, in one file: YAML of many documents, or a List in JSON.
Each run is a new process; wall time and CPU time, median and range. For comparison PyYAML's loader, written in
C, reads the same file: the cost of reading YAML without Pumice.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from benchmarks.report import MACHINE, options_of, write
from benchmarks.subjects import Raw, task

LOADER = "import sys, yaml; list(yaml.load_all(open(sys.argv[1], 'rb'), yaml.CSafeLoader))"
SHAPES: tuple[tuple[dict[str, list[str]], tuple[tuple[str, int], ...]], ...] = (
    ({"tensorflow": ["--port=2222"], "env": []}, (("ps", 2), ("worker", 4), ("evaluator", 1))),
    ({"pytorch": ["--master=master", "--worker=worker"]}, (("master", 1), ("worker", 7))),
    ({"ssh": [], "svc": []}, (("launcher", 1), ("worker", 8))),
    ({"env": []}, (("shard", 100),)),
)


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds.

    Attributes:
        what: What ran.
        input: Form of the file.
        output: Form of the output; empty if there is none.
        wall: Wall time, median.
        low: Fastest run.
        high: Slowest run.
        cpu: CPU time, median.
        peak_mib: Largest resident memory of a run.
    """

    what: str
    input: str
    output: str
    wall: float
    low: float
    high: float
    cpu: float
    peak_mib: int


def job(number: int) -> Raw:
    """One of the Jobs; its templates differ from those of all others."""
    plugins, roles = SHAPES[number % len(SHAPES)]
    tasks = [task(name, replicas) for name, replicas in roles]
    for each in tasks:
        del each["minAvailable"], each["maxRetry"]
        each["template"]["spec"]["containers"][0]["image"] += f"-{number}"
    name = f"train-{number:05}"
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "vision", "labels": {"app": name}},
        "spec": {
            "queue": "default",
            "maxRetry": 3,
            "plugins": plugins,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "tasks": tasks,
        },
    }


def files(folder: Path, count: int) -> dict[str, Path]:
    """The same Jobs in both forms."""
    jobs = [job(number) for number in range(count)]
    found = {"yaml": folder / "jobs.yaml", "json": folder / "jobs.json"}
    # Each document is written by itself, so that none has an alias of another one.
    texts = [
        yaml.dump(json.loads(json.dumps(each)), Dumper=yaml.CSafeDumper, sort_keys=False)
        for each in jobs
    ]
    found["yaml"].write_text("---\n".join(texts))
    found["json"].write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    return found


def measure(what: str, file: Path, output: str, command: Sequence[str], runs: int) -> Row:
    """Run a command several times; the first run warms up and does not count.

    Raises:
        RuntimeError: It failed.
    """
    walls, cpus, peak = [], [], 0
    for run in range(runs + 1):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        if run:
            walls.append(round(time.perf_counter() - start, 3))
            cpus.append(round(used.ru_utime + used.ru_stime, 3))
            peak = max(peak, used.ru_maxrss // 1024)
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    form = file.suffix.lstrip(".")
    return Row(what, form, output, wall, min(walls), max(walls), cpu, peak)


def rows(found: dict[str, Path], runs: int) -> list[Row]:
    """All rows."""
    lint = [sys.executable, "-m", "pumice", "lint"]
    measured = [
        measure("lint", file, output, [*lint, str(file), "-o", output], runs)
        for file in found.values()
        for output in ("text", "json")
    ]
    loader = [sys.executable, "-c", LOADER, str(found["yaml"])]
    return [*measured, measure("PyYAML alone", found["yaml"], "", loader, runs)]


def table(measured: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [
        f"{'what':<13} {'input':>5} {'output':>6} {'s (range)':>20} {'CPU s':>6} {'peak MiB':>8}"
    ]
    for row in measured:
        spread = f"{row.wall:.2f} ({row.low:.2f}-{row.high:.2f})"
        lines.append(
            f"{row.what:<13} {row.input:>5} {row.output:>6} {spread:>20} {row.cpu:>6.2f} "
            f"{row.peak_mib:>8}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write JSON if asked to."""
    options = options_of("Benchmark pumice lint.", jobs=1000, runs=5)
    with tempfile.TemporaryDirectory() as folder:
        found = files(Path(folder), options.jobs)
        sizes = {form: file.stat().st_size for form, file in found.items()}
        measured = rows(found, options.runs)
    print(table(measured))
    each = ", ".join(
        f"{size / options.jobs / 1000:.1f} KB in {form}" for form, size in sizes.items()
    )
    print(f"{options.jobs} Jobs of {each}; {MACHINE}")
    write(options.json, [asdict(row) for row in measured], jobs=options.jobs, bytes=sizes)


if __name__ == "__main__":
    main()
