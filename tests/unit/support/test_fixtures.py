"""What asks for the control plane is marked and runs last; what is slow, or runs alone, is named as it is called."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.conftest import ALONE, SLOW
from tests.support.controlplane.builder import REPOSITORY
from tests.support.order import COMPUTING, WAITING

ON_IT = "tests/e2e/test_controlplane.py"
OFF_IT = "tests/unit/support/test_controlplane_processes.py"


def collected(*arguments: str) -> list[str]:
    """The files of the tests that pytest would run, each once, in its order."""
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments],
        cwd=REPOSITORY,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    names = [line.partition("::")[0] for line in answer.stdout.splitlines() if "::" in line]
    assert names, answer.stdout
    return list(dict.fromkeys(names))


def test_tests_on_the_control_plane_run_after_all_others() -> None:
    assert collected(ON_IT, OFF_IT) == [OFF_IT, ON_IT]


def test_tests_on_the_control_plane_can_be_left_out() -> None:
    assert collected("-m", "not controlplane", ON_IT, OFF_IT) == [OFF_IT]


def test_what_is_named_as_slow_or_runs_alone_is_there() -> None:
    for each in (*SLOW, *ALONE, *COMPUTING, *WAITING):
        file, _, test = each.partition("::")
        assert (REPOSITORY / file).exists(), each
        name = test.partition("[")[0]  # without parameters
        assert not name or f"def {name}(" in (REPOSITORY / file).read_text(), each


def test_tests_that_run_alone_can_be_left_out_and_picked() -> None:
    measured = [each for each in ALONE if each.startswith("tests/e2e/")]
    assert len(measured) > 1
    assert collected("-m", "not alone", *measured, ON_IT) == [ON_IT]
    assert set(collected("-m", "alone", *measured, ON_IT)) == set(measured)
