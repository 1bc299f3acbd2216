"""Linting costs in proportion to what is linted, whatever form the answer has.

Nothing here is timed: calls are counted. How long a thousand Jobs take, `benchmarks/linting.py` measures.
"""

from pathlib import Path

import pytest

from benchmarks.linting import files
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
