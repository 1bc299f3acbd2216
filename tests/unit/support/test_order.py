"""Files that compute and files that wait run beside each other, the longest of both first."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

from tests.support.order import COMPUTING, SHARING, WAITING, FromBothEnds, place

REPORTING = """
pytest_plugins = ["tests.support.order"]

def pytest_runtest_logreport(report):
    print("TOLD", report.nodeid.partition("::")[2], report.when, report.outcome, report.duration > 0.2)
"""
OF_EVERY_END = """
import pytest, time

@pytest.fixture
def broken_before():
    raise ValueError

@pytest.fixture
def broken_after():
    yield
    raise ValueError

@pytest.fixture
def slow():
    time.sleep(0.25)

def test_passes(slow): pass
def test_fails(): raise ValueError
def test_begins_badly(broken_before): pass
def test_ends_badly(broken_after): pass
def test_skips(): pytest.skip()
@pytest.mark.xfail
def test_fails_as_expected(): raise ValueError
"""


class Process:
    """A process that is told what to run."""

    def __init__(self) -> None:
        self.indexes: list[int] = []

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.indexes += indexes


def test_the_longest_stand_at_the_ends() -> None:
    files = [("a.py", False), (COMPUTING[1], False), (COMPUTING[0], False)]
    files += [(WAITING[0], True), ("b.py", True), (WAITING[1], True)]
    files.sort(key=lambda each: place(each[0], waits=each[1]))
    assert [file for file, _ in files] == [
        *(COMPUTING[0], COMPUTING[1], "a.py"),
        *("b.py", WAITING[1], WAITING[0]),
    ]


def test_two_processes_of_five_begin_with_what_computes() -> None:
    names = ("longest", "longer", "long", "short", "slow", "slower", "slowest")
    tests = [f"{name}.py::test" for name in names]
    queue = FromBothEnds.__new__(FromBothEnds)
    processes = [Process() for _ in range(5)]
    queue.assigned_work = OrderedDict((each, {}) for each in processes)
    queue.registered_collections = dict.fromkeys(processes, tests)
    queue.workqueue = OrderedDict((each.partition("::")[0], {each: False}) for each in tests)
    for process in (*processes, processes[4], processes[0]):
        queue._assign_work_unit(process)
    assert [each.indexes for each in processes] == [[6, 3], [5], [4], [0], [1, 2]]


def test_all_tests_of_a_file_run_in_one_process() -> None:
    """Each process has fixtures of its own: a file on three of them would do three times what its tests share."""
    makefile = (Path(__file__).parents[3] / "Makefile").read_text()
    recipe = makefile.partition("\ntest:")[2].partition("\n\n")[0]
    runs = [line for line in recipe.splitlines() if "-m pytest" in line]
    assert len(runs) == 2
    assert [line for line in runs if "--dist loadfile " not in line] == []


def test_three_processes_take_a_file_each() -> None:
    tests = [f"{file}.py::test_{number}" for file in "abc" for number in range(3)]
    queue = FromBothEnds.__new__(FromBothEnds)
    processes = [Process() for _ in range(3)]
    queue.assigned_work = OrderedDict((each, {}) for each in processes)
    queue.registered_collections = dict.fromkeys(processes, tests)
    queue.workqueue = OrderedDict(
        (f"{file}.py", {each: False for each in tests if each.startswith(file)}) for file in "abc"
    )
    for process in processes:
        queue._assign_work_unit(process)
    assert [each.indexes for each in processes] == [[6, 7, 8], [3, 4, 5], [0, 1, 2]]


def test_files_that_share_a_release_go_to_one_process_in_one_piece() -> None:
    root = Path(__file__).parents[3]
    assert [file for file in SHARING if not (root / file).is_file()] == []
    assert {place(file, waits=True) for file in SHARING} == {place(SHARING[0], waits=True)}
    assert SHARING[0] in WAITING
    queue = FromBothEnds.__new__(FromBothEnds)
    assert {queue._split_scope(f"{file}::test") for file in SHARING} == {SHARING[0]}
    assert (
        queue._split_scope("tests/e2e/test_footprint.py::test[a::b]")
        == "tests/e2e/test_footprint.py"
    )


def test_of_a_test_that_has_passed_a_process_tells_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(REPORTING)
    (tmp_path / "test_ends.py").write_text(OF_EVERY_END)
    command = ["pytest", "-s", "-n1", "-pno:cacheprovider", "-cpytest.ini", f"--rootdir={tmp_path}"]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line.split("TOLD ")[1] for line in ran.stdout.splitlines() if "TOLD " in line]
    assert told == [
        "test_passes call passed True",
        *("test_fails setup passed False", "test_fails call failed False"),
        "test_fails teardown passed False",
        *("test_begins_badly setup failed False", "test_begins_badly teardown passed False"),
        *("test_ends_badly setup passed False", "test_ends_badly call passed False"),
        "test_ends_badly teardown failed False",
        *("test_skips setup passed False", "test_skips call skipped False"),
        "test_skips teardown passed False",
        "test_fails_as_expected setup passed False",
        "test_fails_as_expected call skipped False",
        "test_fails_as_expected teardown passed False",
    ], ran.stdout
    assert "1 failed, 2 passed, 1 skipped, 1 xfailed, 2 errors" in ran.stdout
