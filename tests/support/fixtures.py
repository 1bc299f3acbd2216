"""Fixtures on the real control plane, loaded by `tests/conftest.py`.

A test that asks for one of them is marked `controlplane` and, in one process, runs after all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started

_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on the control plane before `-m` selects."""
    for item in items:
        if "controlplane" in getattr(item, "fixturenames", ()):
            item.add_marker("controlplane")


_running: list[ControlPlane] = []


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """A real control plane, one for the whole run; its binaries are built when they are missing."""
    with started(Builder().ensure()) as plane:
        _running.append(plane)
        yield plane
        _running.remove(plane)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stop the control plane during tests that run without it: idle, its parts compute for more than a second a minute."""
    for plane in _running:
        plane.stop_for_now(item.get_closest_marker("controlplane") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Let it go on for what uses it to the end of the run."""
    for plane in _running:
        if nextitem is None:
            plane.stop_for_now(False)


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[str]:
    """The name of a namespace of the test's own on the real control plane."""
    name = f"test-{next(_numbers)}"
    controlplane.add_namespace(name)
    yield name
    controlplane.empty_namespace(name)


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
