"""What a child process computes arrives, whatever becomes of the child."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Never

import pytest

from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.cluster.child_process import in_child_process

PROBLEMS = (SettingProblem(("tiers", 0), "must be an object", line=3), SettingProblem((), "x"))


def refused() -> Never:
    raise SettingError(PROBLEMS, PROBLEMS[:1])


def killed(parent: int) -> int:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_a_function_runs_in_a_process_of_its_own() -> None:
    assert in_child_process(os.getpid) != os.getpid()
    in_child_process(sys.modules.__setitem__, "only_there", sys)
    assert "only_there" not in sys.modules
    assert in_child_process(bytes, 1_000_000) == bytes(1_000_000)  # more than a pipe holds


def test_an_error_arrives_as_it_was_raised() -> None:
    with pytest.raises(SettingError) as caught:
        in_child_process(refused)
    assert (caught.value.problems, caught.value.warnings) == (PROBLEMS, PROBLEMS[:1])
    assert str(caught.value) == "line 3: tiers[0]: must be an object\nx"


def test_without_a_child_the_function_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_child_process(killed, os.getpid()) == os.getpid()
    assert in_child_process(lambda: lambda: "cannot be pickled")() == "cannot be pickled"

    def full() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", full)
    assert in_child_process(os.getpid) == os.getpid()


def test_with_other_threads_no_child_is_started() -> None:
    """A child would have a copy of their locks, and no thread that releases them."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_child_process, os.getpid).result() == os.getpid()
