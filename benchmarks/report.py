"""Results of benchmarks as JSON, with the machine on which they were measured, and the options that benchmarks share."""

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MACHINE = f"Python {platform.python_version()}, {platform.machine()}"
"""Description of the machine, for the last line that a benchmark prints."""


def write(file: Path | None, rows: Sequence[dict[str, Any]], **figures: Any) -> None:
    """Write rows, figures of the whole run, and the machine to a file, if there is one."""
    if file is None:
        return
    document = {
        "rows": rows,
        **figures,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }
    file.write_text(json.dumps(document, indent=2) + "\n")


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def options_of(about: str, **counts: int) -> argparse.Namespace:
    """The options of a benchmark on the command line: numbers with their defaults, and `json`, a file for the results."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in counts.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()
