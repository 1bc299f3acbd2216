"""Run every benchmark and write its figures beside it: `python -m benchmarks`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BENCHMARKS = (
    "admission",
    "linting",
    "verbs",
    "web",
    "plugins",
    "scheduling",
    "scheduling_memory",
    "hand_over",
    "restart",
    "queues",
    "hostile",
    "end_to_end",
    "creations",
    "huge_job",
    "neighbours",
    "traces",
)


def main() -> int:
    """Run them one after the other, each in a process of its own; the first failure ends it."""
    RESULTS.mkdir(exist_ok=True)
    for name in BENCHMARKS:
        command = [
            sys.executable,
            str(HERE / f"{name}.py"),
            "--json",
            str(RESULTS / f"{name}.json"),
        ]
        if code := subprocess.run(command, cwd=HERE.parent, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
