"""Files that compute and files that wait run beside each other, the longest of both first."""

from __future__ import annotations

from collections import OrderedDict

from tests.support.order import COMPUTING, WAITING, FromBothEnds, place


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
