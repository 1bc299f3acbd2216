"""A user whose Jobs are large does not hold up another one, on a real API server with all components."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD
from pumice.cluster.client import Client
from tests.kit.builders import job, task
from tests.support.controlplane.cluster import ControlPlane
from tests.support.tenants import Tenant

Raw = dict[str, Any]

JOBS, PODS = 8, 200
"""Large Jobs of the one user, and pods of each."""

NODES, ON_EACH = 16, 110

BOUND = 3 * JOBS * PODS // 2
"""Writes of anybody until the small Job runs: half of the three that each pod of the large Jobs takes (creation, binding,
start). It needs eight of its own one after the other, each of which waits for what the API server has under way."""


@pytest.fixture
def large(controlplane: ControlPlane, add_node: Callable[..., str]) -> Iterator[str]:
    """The namespace of the large Jobs, with nodes for them."""
    for number in range(NODES):
        add_node(f"large-{number}", cpu="200", pods=str(ON_EACH))
    controlplane.add_namespace("large")
    yield "large"
    controlplane.request("DELETE", JOB.collection("large"))
    controlplane.remove_namespace("large")


@pytest.mark.usefixtures("users")
async def test_a_job_of_two_pods_runs_beside_eight_of_hundreds(
    controlplane: ControlPlane, large: str, namespace: str
) -> None:
    async with (
        Client.connect(controlplane.kubeconfig) as client,
        Tenant.of(client, namespace) as tenant,
    ):
        await tenant.run(_small("alone", namespace))
        for number in range(JOBS):
            tasks = [task("worker", PODS)]
            await client.create(JOB, job(f"large-{number}", tasks, namespace=large))
        while len((await client.list(POD, large))["items"]) < PODS // 2:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        beside = await tenant.run(_small("beside", namespace))
        found = (await client.list(JOB, large))["items"]
    assert beside.writes <= BOUND
    assert sum(each["status"].get("running", 0) for each in found) < JOBS * PODS


def _small(name: str, namespace: str) -> Raw:
    return job(name, [task("worker", 2)], namespace=namespace)
