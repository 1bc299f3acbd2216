"""Processor time of single verbs of the command line, for the whole process from its start to its end.

    python -m benchmarks.verbs [--runs N] [--json FILE]

`lint` and `render` read one Job with plugin pytorch. `job list` and `explain` ask the API server of `pumice dev`, over
TLS, with that Job, which needs GPUs that no node has, and another one that waits for room. Each run is a new process; median and range. For comparison
an interpreter that does nothing, and one that only imports the option parser.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import MACHINE, options_of, spread, write

EXAMPLE = Path(__file__).parents[1] / "examples" / "pytorch.yaml"
PUMICE = [sys.executable, "-m", "pumice"]
WAITING = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "waiting", "namespace": "default"},
    "spec": {
        "minAvailable": 4,
        "tasks": [
            {
                "name": "worker",
                "replicas": 4,
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "main",
                                "image": "registry.example.com/training:1",
                                "resources": {"requests": {"cpu": "6"}},
                            }
                        ]
                    }
                },
            }
        ],
    },
}


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds of processor time.

    Attributes:
        verb: What ran.
        cpu: Median.
        low: Fastest run.
        high: Slowest run.
    """

    verb: str
    cpu: float
    low: float
    high: float


def seconds(command: Sequence[str]) -> float:
    """Processor time of one run.

    Raises:
        RuntimeError: It failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[list[str]]:
    """Run `pumice dev` with the two Jobs; yields the options that lead to it."""
    state, kubeconfig = folder / "waiting.json", folder / "kubeconfig"
    state.write_text(json.dumps(WAITING))
    nodes = ["--nodes", "2x8/32Gi"]
    files = ["--state", str(EXAMPLE), "--state", str(state)]
    process = subprocess.Popen(
        [*PUMICE, "dev", *nodes, *files, "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # printed when the server answers
        yield ["--kubeconfig", str(kubeconfig)]
    finally:
        process.terminate()
        process.communicate()


def measured(runs: int) -> list[Row]:
    """All rows; the verbs take turns, so that what else the machine does meets all of them. The first turn does not count."""
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as options:
        commands = {
            "nothing": [sys.executable, "-c", ""],
            "import typer": [sys.executable, "-c", "import typer"],
            "--help": [*PUMICE, "--help"],
            "lint": [*PUMICE, "lint", str(EXAMPLE)],
            "render": [*PUMICE, "render", str(EXAMPLE)],
            "job list": [*PUMICE, "job", "list", *options],
            "explain": [*PUMICE, "explain", "job", "waiting", *options],
        }
        found: dict[str, list[float]] = {verb: [] for verb in commands}
        for turn in range(runs + 1):
            for verb, command in commands.items():
                cpu = seconds(command)
                if turn:
                    found[verb].append(round(cpu, 3))
    return [
        Row(verb, statistics.median(cpus), min(cpus), max(cpus)) for verb, cpus in found.items()
    ]


def main() -> None:
    """Measure, print the table, and write JSON if asked to."""
    options = options_of("Benchmark the start of verbs.", runs=11)
    rows = measured(options.runs)
    print(f"{'verb':<13} {'CPU s (range)':>20}")
    for row in rows:
        print(f"{row.verb:<13} {spread((row.low, row.cpu, row.high), 3):>20}")
    print(f"median of {options.runs} runs; {MACHINE}")
    write(options.json, [asdict(row) for row in rows], runs=options.runs)


if __name__ == "__main__":
    main()
