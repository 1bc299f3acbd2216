"""Fixtures for pods that really run; every test of this folder is marked `frameworks`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.frameworks.running import Images, Live, Result, live_cluster, run_jobs
from tests.support.images.builder import Builder

Run = Callable[..., Result]
"""`run_jobs` without its first two arguments."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("frameworks")


@pytest.fixture(scope="session")
def images() -> Images:
    """The images, built when they are missing."""
    return Builder().ensure()


@pytest.fixture
def run(images: Images, tmp_path: Path) -> Run:
    """Run Jobs to their end."""
    return partial(run_jobs, tmp_path, images)


@pytest.fixture
async def live(images: Images) -> AsyncIterator[Live]:
    """A cluster whose pods run on this machine."""
    async with live_cluster(images) as found:
        yield found
