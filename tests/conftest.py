"""Fixtures that several folders share, and which tests are too slow for the quick suite, or run alone."""

import functools
import gc
import importlib
import importlib.metadata
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.fixtures", "tests.support.order", "tests.support.slowest"]

# How long an example takes is no test's business, nor how long it takes to draw one.
settings.register_profile(
    "whole", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("whole")
settings.register_profile("quick", settings.get_profile("whole"), max_examples=10)
settings.register_profile("deep", settings.get_profile("whole"), max_examples=2000)

# Tracebacks drawn with rich take a second each.
structlog.configure(
    [
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

_entry_points: Any = importlib.metadata.entry_points
_installed = functools.cache(lambda path: _entry_points())  # noqa: ARG005
# A test for which a package is installed adds to the path. To look into all packages for each configuration takes 3 ms.
importlib.metadata.entry_points = lambda **group: _installed(tuple(sys.path)).select(**group)

SLOW = (
    "tests/browser/",
    "tests/docs/test_commands.py",
    "tests/docs/test_links.py",
    "tests/docs/test_site.py::test_it_builds",
    "tests/fuzz/",
    "tests/integration/",
    "tests/packaging/",
    "tests/unit/api/test_occurrences.py::test_any_schedule_in_odd_zones",
    "tests/unit/api/test_occurrences.py::test_every_minute_of_three_years",
    "tests/unit/certs/test_rotation.py::test_for_ten_years_every_leaf_in_use_is_trusted",
    "tests/unit/certs/test_strange_secrets.py",
    "tests/unit/cli/test_imports.py",
    "tests/unit/cli/test_lint_costs.py",
    "tests/unit/cli/test_lint_queues.py",
    "tests/unit/cli/test_plugins_check.py",
    "tests/unit/cli/test_process.py",
    "tests/unit/cli/test_review_table.py",
    "tests/unit/cli/test_simulate_trace.py::test_a_real_trace",
    "tests/unit/cli/test_simulate_trace.py::test_a_run_that_makes_no_progress_says_so",
    "tests/unit/cli/test_simulated.py",
    "tests/unit/cli/test_terminal_escapes.py::test_a_list_written_entry_by_entry_has_the_same_form",
    "tests/unit/cli/test_wild.py",
    "tests/unit/cluster/test_set_aside.py",
    "tests/unit/controller/test_cost_of_passes.py",
    "tests/unit/controller/test_deletions.py",
    "tests/unit/controller/test_histories.py",
    "tests/unit/controller/test_notes_of_many.py",
    "tests/unit/controller/test_stopped.py",
    "tests/unit/scheduler/test_growth.py",
    "tests/unit/scheduler/test_network_costs.py",
    "tests/unit/scheduler/test_peer_groups.py::test_twice_as_many_pods_with_terms_of_their_own_are_twice_the_work",
    "tests/unit/scheduler/test_queue_tournament.py",
    "tests/unit/scheduler/test_rest.py",
    "tests/unit/scheduler/test_rules_over_time.py",
    "tests/unit/support/test_controlplane_builder.py",
    "tests/unit/support/test_fixtures.py",
    "tests/unit/support/test_forked.py",
    "tests/unit/support/test_order.py::test_of_a_test_that_has_passed_a_process_tells_once",
    "tests/unit/testing/",
    "tests/unit/traces/test_dues.py",
    "tests/unit/traces/test_engine.py::test_a_run_twice_gives_equal_records",
    "tests/unit/traces/test_plain_jobs.py",
    "tests/unit/webhook/test_admission.py::test_nesting_without_end_is_answered",
    "tests/unit/webhook/test_cases.py::test_a_review_that_says_no_more_than_it_must_is_answered_alike",
    "tests/unit/webhook/test_hostile_sizes.py",
    "tests/unit/webhook/test_levels.py::test_no_rule_goes_past_its_level",
    "tests/unit/webhook/test_standing.py",
    "tests/unit/webhook/test_wrong_types.py::test_a_field_that_no_rule_looks_at_hides_only_rules_that_compare_fields",
)
"""Tests that start whole processes or loops, wait for seconds, have many or large objects, or tell a story or a table once for each of its steps."""

ALONE = (
    "tests/e2e/test_footprint.py",
    "tests/integration/certs/test_replicas_controlplane.py",
    "tests/e2e/test_hostile_tenant.py",
)
"""Tests that measure processor time or how long something takes, and tests whose certificates last for seconds.

The most memory of a process does not depend on what else runs, so a test of that runs beside others.
"""


REAL = ("tests/e2e/", "tests/frameworks/")
"""Folders of which each test runs on the control plane or with real frameworks, as does each file `*_controlplane.py`."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread the files of which no test is asked for: reading all takes each worker seconds."""
    asked = config.option.markexpr
    if " or " in asked or config.rootpath not in collection_path.parents:
        return None
    path = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    if asked == "alone":
        return True if not any(f"{each}/".startswith(path) for each in ALONE) else None
    slow = "not slow" in asked and path.startswith(SLOW)
    real = path.startswith(REAL) or path.endswith("_controlplane.py/")
    unreal = "not controlplane and" in asked and "not frameworks" in asked
    return True if slow or (real and unreal) else None


def import_own_share(config: pytest.Config) -> None:
    """In one of several processes, begin with files that no other begins with.

    What one has compiled the others read. All in one order would each compile all of a fresh checkout, for nine seconds.
    """
    process = getattr(config, "workerinput", None)
    if process is None or config.args != ["tests"]:
        return
    found = sorted((config.rootpath / "tests").rglob("test_*.py"))
    files = [file for file in found if not pytest_ignore_collect(file, config)]
    for file in files[int(process["workerid"][2:]) :: process["workercount"]]:
        path = file.relative_to(config.rootpath).with_suffix("")
        with suppress(Exception):  # pytest says it when it imports the file
            importlib.import_module(".".join(path.parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep Python's garbage collector away from the tests that were found.

    It would look at all of them again and again, while more are found and while they run.
    """
    gc.disable()
    try:
        import_own_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def freezing_again() -> Iterator[None]:
    """For a test after which nothing is frozen: the tests that were found are kept away from the garbage collector again.

    Otherwise each later look at all objects takes half a second.
    """
    yield
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the quick suite leaves out, and what runs beside no other test."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(ALONE):
            item.add_marker(pytest.mark.alone)
