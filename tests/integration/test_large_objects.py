"""The memory of each component with 250 of the largest objects that admission lets through."""

import asyncio
import json
import os
import sys

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import builders
from tests.support import large_objects

STORED_BYTES = 1_500_000
"""About what etcd stores of one object."""

MOST = {"webhook": 72, "controller": 80, "scheduler": 120}
"""MiB that a component takes with ordinary objects, by which it may grow."""

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1000000"}
"""Blocks of a megabyte go back to the system when they are freed. Otherwise glibc keeps some of them, and the peak of equal runs differs by up to 16 MiB."""

DONE = {"webhook": 8, "controller": large_objects.NUMBER, "scheduler": large_objects.NUMBER}
"""Reviews that admit, pods that are made, and pods that a cycle decides about."""


def test_it_is_as_large_as_can_be_and_admitted() -> None:
    job = large_objects.job()
    del job["metadata"]["resourceVersion"]
    view = Snapshot.of([builders.queue("default")])
    admission = Admission(AdmissionSettings(), view, builtin())
    found = judge(admission, job)
    assert [(each.code, each.path) for each in found.errors] == []
    assert STORED_BYTES * 0.8 < len(json.dumps(job, separators=(",", ":"))) < STORED_BYTES


@pytest.mark.parametrize("component", large_objects.COMPONENTS)
async def test_the_memory_of_a_component_at_most_doubles(component: str) -> None:
    runner, url = await large_objects.server(component)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.large_objects",
            component,
            url,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | MALLOC,
        )
        output, _ = await process.communicate()
    finally:
        await runner.cleanup()
    assert process.returncode == 0
    found = json.loads(output)
    wanted = {kind.plural for kind in large_objects.lists(component)}
    assert {kind for kind, held in found["held"].items() if held >= large_objects.NUMBER} >= wanted
    assert found["done"] >= DONE[component]
    grown = (found["peak"] - found["before"]) // 2**20
    assert grown <= MOST[component], found
