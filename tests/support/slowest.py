"""Where the time of a run went: its ten slowest files, and processor time. Loaded by `tests/conftest.py`.

Where `PUMICE_TEST_TIMES` names a file, lines `run|file<TAB>SECONDS<TAB>NAME` are appended to it, so that CI can show
the slowest files of several runs.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from pathlib import Path

import pytest

SHOWN = 10


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(
        config, "workerinput"
    ):  # pytest-xdist's workers report to the process that started them
        config.pluginmanager.register(Slowest(config.option.markexpr))


class Slowest:
    """Sums what the tests of a file take, their fixtures included.

    Args:
        run: Which tests run, as `-m` selects them.
    """

    def __init__(self, run: str) -> None:
        self._run = run or "all tests"
        self._began = time.monotonic()
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        found = self._seconds.most_common()
        if len(found) > 1:
            terminalreporter.section(f"{SHOWN} slowest files", "-")
            for name, seconds in found[:SHOWN]:
                terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
            terminalreporter.write_line(f"{processor_time():7.1f} s of processor time in all")
        path = os.environ.get("PUMICE_TEST_TIMES")
        if path and found:
            run = f"{self._run} ({processor_time():.0f} s of processor time)"
            lines = [("run", time.monotonic() - self._began, run)]
            lines += [("file", seconds, name) for name, seconds in found]
            with Path(path).open("a") as file:
                file.writelines(f"{sort}\t{taken:.1f}\t{name}\n" for sort, taken, name in lines)


def processor_time() -> float:
    """Seconds that this process has computed, and those that it has waited for: all workers, and what they started."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
