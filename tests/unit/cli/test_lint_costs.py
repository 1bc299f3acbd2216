"""Linting costs in proportion to what is linted, whatever form the answer has.

Nothing here is timed: calls and allocated bytes are counted. How long a thousand Jobs take, `benchmarks/linting.py`
measures.
"""

import os
import sys
import tracemalloc
from collections.abc import Iterator
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


def growth(folder: Path, form: str, output: str, code: int, mistake: tuple[str, str]) -> float:
    """Bytes at the peak for each further Job. In all Jobs a text is replaced by a mistake."""

    def peak(count: int) -> int:
        file = files(folder, count)[form]
        file.write_text(file.read_text().replace(*mistake))
        tracemalloc.start()
        try:
            assert main(["lint", str(file), "-o", output]) == code
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # and everything is imported
    return (peak(FEW) - peak(FEW // 2)) / (FEW // 2)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Output is not kept."""
    with Path(os.devnull).open("w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        yield


@pytest.mark.usefixtures("nowhere")
def test_results_are_written_one_by_one(tmp_path: Path) -> None:
    """The largest part of memory is reading: 44 KB for each Job. With all results and their JSON it was 242."""
    assert growth(tmp_path, "yaml", "json", 0, ("", "")) < 50_000


@pytest.mark.usefixtures("nowhere")
def test_items_of_a_list_are_searched_for_lines_one_by_one(tmp_path: Path) -> None:
    """The largest part is reading again: 44 KB for each Job. With the nodes of all items it was 247."""
    mistake = '"maxRetry": 3', '"maxRetry": -3'
    assert growth(tmp_path, "json", "text", 1, mistake) < 60_000
