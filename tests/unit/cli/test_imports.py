"""A verb imports what it needs and no more, which is what its start costs. Nothing is timed; `benchmarks/verbs.py` does that."""

import gc
import subprocess
import sys
from typing import Any

import pytest

from pumice.cli import main
from tests.kit.imported import check_imports, import_rows


@pytest.mark.parametrize("row", import_rows(live=False), ids=lambda row: row["name"])
def test_a_verb_imports_what_it_needs(row: dict[str, Any]) -> None:
    check_imports(row)


def test_garbage_is_searched_for_rarely_while_a_verb_runs_and_as_before_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, during = gc.get_threshold(), []

    def run(*_: object) -> int:
        during.append(gc.get_threshold())
        return 1

    monkeypatch.setattr("pumice.cli.app.run", run)
    assert main([]) == 1
    assert during[0][0] > before[0] * 10
    assert gc.get_threshold() == before


ENDING = """
import atexit, gc, sys
from pumice.cli import main
atexit.register(lambda: sys.stderr.write(str(gc.get_freeze_count() > 0)))  # which runs after what is registered later
main(["--version"])
"""


def test_the_objects_of_a_verb_are_not_searched_for_garbage_when_the_process_ends() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stderr == "True"
