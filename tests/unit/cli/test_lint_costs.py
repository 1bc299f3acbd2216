"""Linting costs in proportion to what is linted, whatever form the answer has.

Nothing here is timed: calls and allocated bytes are counted. How long a thousand Jobs take, `benchmarks/linting.py`
measures.
"""

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from benchmarks.linting import files
from pumice.cli import main
from tests.kit.counting import calls
from tests.unit.cli.conftest import Pumice

FEW = 20
GROWTH = 2.2
"""Times the calls for twice the Jobs; what looks at each beside each makes four times as many."""


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_twice_the_jobs_take_twice_the_calls(
    pumice: Pumice, tmp_path: Path, form: str, output: str
) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few, many = files(tmp_path / "few", FEW)[form], files(tmp_path / "many", 2 * FEW)[form]
    assert pumice("lint", many).code == 0  # and everything is imported
    of_few = calls(lambda: pumice("lint", few, "-o", output))
    of_many = calls(lambda: pumice("lint", many, "-o", output))
    assert of_many < GROWTH * of_few


@pytest.mark.parametrize("output", ["text", "json"])
def test_results_are_written_one_by_one(
    tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest part of memory is reading: 44 KB for each Job. With all results it was 61, in JSON 242."""
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few, many = files(tmp_path / "few", FEW)["yaml"], files(tmp_path / "many", 2 * FEW)["yaml"]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)

        def peak(file: Path) -> int:
            tracemalloc.start()
            try:
                assert main(["lint", str(file), "-o", output]) == 0
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        peak(many)  # and everything is imported
        assert (peak(many) - peak(few)) / FEW < 50_000
