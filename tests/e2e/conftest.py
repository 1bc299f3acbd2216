"""An installation a module, so that no two stand beside each other: webhook configurations are named once.

Modules of tests that leave a release as it was follow each other on one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pumice.api.kinds import QUEUE
from tests.e2e.users import Users
from tests.kit.builders import queue
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation, installed
from tests.support.order import SHARING


class Shared:
    """The release on which modules follow each other."""

    def __init__(self) -> None:
        self.installation: Installation | None = None
        self._stack = ExitStack()

    def of(self, plane: ControlPlane, paths: pytest.TempPathFactory) -> Installation:
        """That release, installed when there is none."""
        if self.installation is None:
            release = installed(plane, paths.mktemp("pumice"), forked=True)
            self.installation = self._stack.enter_context(release)
        return self.installation

    def remove(self) -> None:
        """Take it away, if there is one."""
        self.installation = None
        self._stack.close()


SHARED = Shared()


@pytest.fixture(scope="session")
def shared(controlplane: ControlPlane) -> Iterator[Shared]:
    """The release that is shared, which is gone before the control plane is."""
    del controlplane
    yield SHARED
    SHARED.remove()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None]:
    """Take the release away that is shared before a test that has another one, or none."""
    yield
    if nextitem is not None and nextitem.nodeid.partition("::")[0] not in SHARING:
        SHARED.remove()


@pytest.fixture(scope="module")
def installation(
    request: pytest.FixtureRequest,
    controlplane: ControlPlane,
    shared: Shared,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """Pumice, installed from its chart."""
    if request.node.nodeid in SHARING:
        yield shared.of(controlplane, tmp_path_factory)
        return
    tests = [
        each for each in request.session.items if each.getparent(pytest.Module) is request.node
    ]
    measured = any(each.get_closest_marker("alone") for each in tests)
    with installed(controlplane, tmp_path_factory.mktemp("pumice"), forked=not measured) as here:
        yield here


@pytest.fixture
def users(controlplane: ControlPlane, installation: Installation, namespace: str) -> Users:
    """Users of a release that works."""
    found = Users(controlplane, namespace)
    wait_until(found.defaulted, "the API server to reach the webhook", 60)
    found.forget()
    return found


@pytest.fixture
def make_queue(controlplane: ControlPlane) -> Iterator[Callable[..., str]]:
    """Queues that are gone after the test."""
    names: list[str] = []

    def make(name: str, **spec: Any) -> str:
        manifest = queue(name, state="", **spec)
        manifest.pop("status")
        controlplane.apply(manifest)
        names.append(name)
        return name

    yield make
    for name in names:
        controlplane.request("DELETE", QUEUE.path(name))


@pytest.fixture
def priority_classes(controlplane: ControlPlane) -> Iterator[None]:
    """Two PriorityClasses, `e2e-low` and `e2e-high`."""
    names = {"e2e-low": 10, "e2e-high": 1000}
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in names.items():
        manifest = {**head, "metadata": {"name": name}, "value": value}
        assert controlplane.request("POST", path, manifest)[0] in (201, 409)
    yield
    for name in names:
        controlplane.request("DELETE", f"{path}/{name}")
