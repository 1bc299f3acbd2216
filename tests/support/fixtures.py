"""Fixtures on the real control plane, loaded by `tests/conftest.py`.

A test that asks for one of them is marked `controlplane` and runs after all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started

LONGEST = (
    "tests/e2e/test_life_of_a_release_modes.py",
    "tests/docs/test_commands.py",
    "tests/frameworks/test_mpi.py",
    "tests/frameworks/test_torch.py",
    "tests/frameworks/test_ssh.py",
    "tests/integration/webhook/test_policies_controlplane.py",
    "tests/integration/webhook/test_updates_controlplane.py",
    "tests/integration/webhook/test_controlplane.py",
    "tests/e2e/test_life_of_a_release.py",
    "tests/integration/certs/test_faults_controlplane.py",
    "tests/integration/webhook/test_table_controlplane.py",
    "tests/e2e/test_whole_way.py",
    "tests/e2e/test_scheduling.py",
    "tests/e2e/test_native_jobs.py",
    "tests/chart/test_life_of_a_release.py",
)
"""Files of tests on the control plane and with real frameworks that take longest: they begin first, so that no worker is
left alone with one at the end."""

_numbers = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark what runs on the control plane before `-m` selects, and put it after all else, the longest first."""
    for item in items:
        if "controlplane" in getattr(item, "fixturenames", ()):
            item.add_marker("controlplane")
    yield
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if not any(map(item.get_closest_marker, ("controlplane", "frameworks"))):
        return 0
    file = item.nodeid.partition("::")[0]
    return 1 + (LONGEST.index(file) if file in LONGEST else len(LONGEST))


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """A real control plane, one for the whole run; its binaries are built when they are missing."""
    with started(Builder().ensure()) as plane:
        yield plane


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[str]:
    """The name of a namespace of the test's own on the real control plane."""
    name = f"test-{next(_numbers)}"
    controlplane.add_namespace(name)
    yield name
    controlplane.remove_namespace(name)


@pytest.fixture
def add_node(controlplane: ControlPlane) -> Iterator[Callable[..., str]]:
    """`ControlPlane.add_node`, for nodes that are gone after the test."""
    names: list[str] = []

    def add(name: str, *arguments: object, **named: object) -> str:
        controlplane.add_node(name, *arguments, **named)  # type: ignore[arg-type]
        names.append(name)
        return name

    yield add
    for name in names:
        controlplane.remove_node(name)
