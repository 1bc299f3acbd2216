"""Restarting pods of a Job that was scaled, where the Job asks for it."""

from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.plan import DeleteObject
from tests.kit.builders import task
from tests.unit.controller.scenes import policy, running, words
from tests.unit.controller.world import World

ASKS = {keys.RESTART_ON_SCALING: "true"}


def _running(**fields: Any) -> World:
    """A parameter server and two workers that run."""
    evicted = policy("PodEvicted", "RestartJob")
    return running(
        task("ps", 1), task("worker", 2), plugins={"pytorch": []}, policies=[evicted], **fields
    )


def _uids(world: World) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}


def _replaced(world: World, before: dict[str, str]) -> list[str]:
    now = _uids(world)
    return [name for name, uid in before.items() if now.get(name, "") != uid]


def test_older_pods_are_made_anew_one_task_after_the_other() -> None:
    world = _running(annotations=ASKS)
    before = _uids(world)
    world.job["spec"]["tasks"][1]["replicas"] = 3
    world.settle()
    assert _replaced(world, before) == [], "the new pod must run first"
    for restarted in (["train-ps-0"], ["train-ps-0", "train-worker-0", "train-worker-1"]):
        world.run()
        world.settle()
        assert _replaced(world, before) == restarted
    last = _uids(world)
    world.run()
    world.settle()
    assert _uids(world) == last
    assert not world.plan()
    assert (world.phase, world.status.get("retryCount", 0)) == ("Running", 0)
    assert words(world).count("RestartOnScaling") == 2


def test_a_job_that_shrinks_restarts_what_is_left() -> None:
    world = _running(annotations=ASKS)
    before = _uids(world)
    world.job["spec"]["tasks"][1]["replicas"] = 1
    for _ in range(3):
        world.settle()
        world.run()
    world.settle()
    assert world.names(POD) == ["train-ps-0", "train-worker-0"]
    assert _replaced(world, before) == list(before)
    assert not world.plan()


def test_nothing_restarts_while_a_pod_does_not_run() -> None:
    world = _running(annotations=ASKS)
    world.job["spec"]["tasks"][1]["replicas"] = 3
    world.settle()
    world.run("train-worker-2", phase="Pending")
    assert not world.plan()


@pytest.mark.parametrize("annotations", [{}, {keys.RESTART_ON_SCALING: "false"}])
def test_no_pod_is_restarted_unasked(annotations: dict[str, str]) -> None:
    world = _running(annotations=annotations)
    before = _uids(world)
    world.job["spec"]["tasks"][1]["replicas"] = 3
    world.settle()
    world.run()
    world.settle()
    assert _replaced(world, before) == []
    assert all(keys.SCALE not in pod["metadata"]["annotations"] for pod in world.pods.values())


def test_pods_from_before_the_job_asked_stay() -> None:
    world = _running()
    before = _uids(world)
    world.job["metadata"]["annotations"] = ASKS
    world.job["spec"]["tasks"][1]["replicas"] = 3
    world.settle()
    world.run()
    world.settle()
    assert _replaced(world, before) == []


def test_a_controller_that_is_killed_between_marking_and_removing_goes_on() -> None:
    world = _running(annotations=ASKS)
    world.job["spec"]["tasks"][0]["replicas"] = 2
    world.settle()
    world.run()
    plan = world.plan()
    for step in plan.steps:
        if isinstance(step, DeleteObject):
            break
        world.carry_out(step)
    plan = world.look()
    assert [step.name for step in plan.steps if isinstance(step, DeleteObject)] == ["train-ps-0"]
