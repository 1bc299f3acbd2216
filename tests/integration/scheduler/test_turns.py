"""What was decided for one namespace does not hold up another: counted in requests of an API server that carries out one at a time."""

from typing import Any

import pytest

from pumice.api.kinds import NAMESPACE
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import pod, pod_group
from tests.kit.requests import one_at_a_time

LARGE, SMALL = 60, 2
"""Pods of the two namespaces."""

CONCURRENT = 4
"""Requests of one kind under way at once."""


def _gang(stage: SchedulerStage, namespace: str, name: str, size: int) -> None:
    stage.store.create(pod_group(name, size, namespace=namespace))
    for number in range(size):
        made = pod(f"{name}-{number}", namespace=namespace, group=name, cpu="1")
        del made["status"], made["metadata"]["uid"]
        stage.store.create(made)


@pytest.fixture
async def crowded(stage: SchedulerStage) -> SchedulerStage:
    """A cluster with room for all pods."""
    stage.cluster.add_node("node1", cpu="100")
    await stage.client.create(NAMESPACE, {"metadata": {"name": "small"}})
    return stage


async def _served(stage: SchedulerStage, resource: str, **settings: Any) -> list[str]:
    """The namespaces of all requests for a resource, in the order in which they were carried out."""
    async with (
        one_at_a_time(stage.cluster.url) as (client, done),
        stage.scheduler(client, **settings),
    ):

        def served() -> list[str]:
            return [each.namespace for each in done if each.resource == resource]

        await stage.until(lambda: len(served()) >= LARGE + SMALL)
    return served()


async def test_bindings_of_namespaces_take_turns(crowded: SchedulerStage) -> None:
    """One cycle decides about both gangs, the large one first."""
    _gang(crowded, "default", "large", LARGE)
    _gang(crowded, "small", "small", SMALL)
    served = await _served(crowded, "pods/binding", concurrent_binds=CONCURRENT)
    assert served[: CONCURRENT + 2 * SMALL].count("small") == SMALL


async def test_statuses_of_pod_groups_take_turns(crowded: SchedulerStage) -> None:
    """One cycle admits all gangs, those of the large namespace first."""
    for number in range(LARGE):
        _gang(crowded, "default", f"large-{number:02}", 1)
    for number in range(SMALL):
        _gang(crowded, "small", f"small-{number:02}", 1)
    served = await _served(crowded, "podgroups", concurrent_writes=CONCURRENT)
    assert served[: CONCURRENT + 2 * SMALL].count("small") >= SMALL
