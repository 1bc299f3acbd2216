"""Linting many Jobs takes about as long as PyYAML's own C loader needs to read them, and no longer.

Of a thousand Jobs the whole command must not take longer than three seconds; `benchmarks/linting.py` measures
that. A comparison holds on a slow machine, too.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from benchmarks.linting import files
from tests.unit.cli.conftest import Pumice

JOBS = 40
TRIES = 3
ALLOWANCE = 1.25


def seconds(work: Callable[[], object]) -> float:
    """CPU time of the quickest of several tries."""
    found = []
    for _ in range(TRIES):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize("output", ["text", "json"])
def test_linting_costs_no_more_than_plain_reading(
    pumice: Pumice, tmp_path: Path, output: str
) -> None:
    file = files(tmp_path, JOBS)["yaml"]
    text = file.read_text()
    assert pumice("lint", file).code == 0  # and everything is imported
    linting = seconds(lambda: pumice("lint", file, "-o", output))
    reading = seconds(lambda: list(yaml.load_all(text, Loader=yaml.CSafeLoader)))
    assert linting < ALLOWANCE * reading
