"""Fixtures for pods that really run; every test of this folder is marked `frameworks`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.images.builder import Builder
from tests.support.pods.cluster import Running
from tests.support.pods.node import Node
from tests.support.pods.wired import Wired

Run = Callable[[Wired], Running]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("frameworks")


@pytest.fixture(scope="session")
def images() -> dict[str, tuple[Path, ...]]:
    """The images, built when they are missing."""
    return Builder().ensure()


@pytest.fixture
def run(images: dict[str, tuple[Path, ...]], tmp_path: Path) -> Iterator[Run]:
    """Run a wired Job on a node of the test's own; its pods are yet to start."""
    (tmp_path / "node").mkdir()
    node = Node(tmp_path / "node")
    numbers = itertools.count(1)

    def begin(job: Wired) -> Running:
        return Running(node, job, images, tmp_path / f"job-{next(numbers)}")

    yield begin
    node.end()
