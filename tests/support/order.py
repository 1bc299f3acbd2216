"""In which order files of tests run, on which of several processes, and what these tell of a test. Loaded by `tests/conftest.py`.

Files whose tests compute keep a processor busy; those on the control plane and with real frameworks wait a lot. So with
`--dist loadfile` both run beside each other: of five processes two begin at the one end of the order, with the
longest that computes, the others at the other end, with the longest that waits, and they meet at short files.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

SHARING = (
    "tests/e2e/test_neighbours.py",
    "tests/e2e/test_frameworks.py",
    "tests/e2e/test_other_owners.py",
    "tests/e2e/test_whole_way.py",
    "tests/e2e/test_cronjobs.py",
    "tests/e2e/test_deleted_pods.py",
    "tests/e2e/test_limits.py",
    "tests/e2e/test_other_pods.py",
    "tests/e2e/test_volumes.py",
    "tests/e2e/test_optional_plugins.py",
    "tests/e2e/test_racks.py",
    "tests/e2e/test_scheduling.py",
)
"""Files on one release, one after another in one process: those first that need its scheduler as the chart configures it."""

COMPUTING = (
    "tests/docs/test_commands.py",
    "tests/integration/cli/test_run.py",
    "tests/integration/test_large_objects.py",
    "tests/unit/webhook/test_hostile_sizes.py",
    "tests/unit/cli/test_lint_queues.py",
    "tests/integration/scheduler/test_simulate_agrees.py",
    "tests/integration/cli/test_dev_run.py",
    "tests/integration/embedded/node/test_process_pods.py",
    "tests/integration/cli/test_dev.py",
    "tests/unit/api/test_occurrences.py",
    "tests/integration/controller/test_job_flows_stopped.py",
    "tests/integration/cli/test_web.py",
    "tests/browser/test_page.py",
    "tests/chart/test_schema.py",
    "tests/integration/scheduler/test_set_aside.py",
    "tests/integration/controller/test_stopped.py",
    "tests/integration/controller/test_cronjobs_stopped.py",
    "tests/unit/scheduler/test_rest.py",
    "tests/integration/cli/test_components.py",
    "tests/integration/embedded/test_retries.py",
    "tests/integration/cli/test_dev_detached.py",
)
"""Files off the control plane that take longest, the longest first."""

WAITING = (
    SHARING[0],
    "tests/docs/test_commands_controlplane.py",
    "tests/e2e/test_life_of_a_release_modes.py",
    "tests/frameworks/test_ray.py",
    "tests/e2e/test_life_of_a_release.py",
    "tests/chart/test_life_of_a_release.py",
    "tests/integration/webhook/test_table_controlplane.py",
    "tests/frameworks/test_ssh.py",
    "tests/frameworks/test_torch.py",
    "tests/integration/webhook/test_updates_controlplane.py",
    "tests/integration/certs/test_faults_controlplane.py",
    "tests/frameworks/test_mpi.py",
    "tests/chart/installed/test_components.py",
    "tests/integration/certs/test_cert_manager_controlplane.py",
    "tests/e2e/test_killed.py",
    "tests/e2e/test_restored.py",
    "tests/integration/webhook/test_policies_controlplane.py",
    "tests/integration/webhook/test_rolling_restart_controlplane.py",
    "tests/integration/webhook/test_controlplane.py",
    "tests/frameworks/test_tensorflow.py",
)
"""Files on the control plane and with real frameworks that take longest, the longest first."""


def place(file: str, *, waits: bool) -> int:
    """Where a file stands in the order; those at one place keep the order in which they were found."""
    file = _unit(file)
    if waits:
        return len(WAITING) - WAITING.index(file) if file in WAITING else 0
    return COMPUTING.index(file) - len(COMPUTING) - 1 if file in COMPUTING else -1


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Sort what is left to run."""
    yield
    items.sort(key=_place_of)


def _place_of(item: pytest.Item) -> tuple[int, int]:
    waits = any(map(item.get_closest_marker, ("controlplane", "frameworks")))
    file = item.nodeid.partition("::")[0]
    return place(file, waits=waits), SHARING.index(file) if file in SHARING else -1


def _unit(file: str) -> str:
    """The file with which a process gets this one."""
    return SHARING[0] if file in SHARING else file


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In one of several processes, tell of a test that has passed once, instead of at five moments.

    Both processes would spend a tenth of the quick suite on that. The one report has the time of all parts.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    told = [each for each in reports if each.when == "call"]  # none with --setup-only
    if told and all(each.passed for each in reports):
        told[0].duration = sum(each.duration for each in reports)
        reports = told
    for each in reports:
        item.ihook.pytest_runtest_logreport(report=each)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FromBothEnds | None:
    return FromBothEnds(config, log) if config.option.dist == "loadfile" else None


class FromBothEnds(LoadFileScheduling):  # type: ignore[misc]
    """Gives each process a file at a time, or those that share a release, from its end of the order."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit(nodeid.partition("::")[0])

    def _assign_work_unit(self, node: WorkerController) -> None:
        if list(self.assigned_work).index(node) % 5 < 3:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
