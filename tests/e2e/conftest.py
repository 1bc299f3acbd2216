"""An installation a module, so that no two stand beside each other: webhook configurations are named once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import QUEUE
from tests.e2e.users import Users
from tests.kit.builders import queue
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation, installed


@pytest.fixture(scope="module")
def installation(
    controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Pumice, installed from its chart."""
    with installed(controlplane, tmp_path_factory.mktemp("pumice")) as here:
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
