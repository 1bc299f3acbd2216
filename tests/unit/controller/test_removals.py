"""Pods are removed a window at a time, and what happens meanwhile is seen between the windows."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.jobs.situation import Limits
from pumice.controller.plan import DeleteObject, Plan, UpdateObject
from tests.kit.builders import task
from tests.unit.controller.scenes import policy, running, words
from tests.unit.controller.world import World

WINDOW = 3


def _eight(**fields: object) -> World:
    world = running(task("worker", 8), **fields)
    world.limits = Limits(window=WINDOW)
    return world


def _marked(plan: Plan) -> int:
    return sum(isinstance(step, UpdateObject) and step.kind == POD for step in plan.steps)


def _deleted(plan: Plan) -> int:
    return sum(isinstance(step, DeleteObject) and step.kind == POD for step in plan.steps)


def _passes(world: World) -> list[tuple[int, int]]:
    """Pods that each pass marks and deletes, until no pass asks for another one at once."""
    found = []
    for _ in range(20):
        plan = world.look()
        world.reap()
        if _marked(plan) or _deleted(plan):
            found.append((_marked(plan), _deleted(plan)))
        if not plan or world.requeues[-1:] != [0.0]:
            break
        world.requeues.pop()
    return found


def test_a_job_that_is_aborted_removes_its_pods_in_windows() -> None:
    world = _eight()
    world.command("AbortJob")
    world.look()
    assert (world.phase, world.status["terminating"]) == ("Aborting", 8)
    assert _passes(world) == [(0, 3), (0, 3), (0, 2)]
    world.settle()
    assert world.phase == "Aborted"


def test_a_command_is_seen_between_two_windows() -> None:
    world = _eight()
    world.command("AbortJob")
    world.look()
    world.look()
    world.command("TerminateJob")
    world.look()
    assert (world.phase, len(world.pods)) == ("Terminating", 8)
    leaving = [pod for pod in world.pods.values() if pod["metadata"].get("deletionTimestamp")]
    assert len(leaving) == WINDOW


@pytest.mark.parametrize(
    ("action", "passes"),
    [
        ("RestartJob", [(0, 3), (0, 3), (0, 2)]),
        ("RestartTask", [(3, 0), (3, 0), (2, 3), (0, 3), (0, 2)]),
    ],
)
def test_a_restart_removes_pods_in_windows(action: str, passes: list[tuple[int, int]]) -> None:
    world = _eight(policies=[policy("PodFailed", action), policy("PodEvicted", "TerminateJob")])
    before = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.fail("train-worker-0")
    world.look()
    assert _passes(world) == passes
    world.settle()
    world.admit()
    for _ in range(3):
        world.settle()
    world.run()
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 8)
    assert not before & {pod["metadata"]["uid"] for pod in world.pods.values()}


def test_a_job_that_shrinks_removes_pods_in_windows() -> None:
    world = _eight(minAvailable=1, policies=[policy("PodEvicted", "TerminateJob")])
    world.job["spec"]["tasks"][0]["replicas"] = 1
    assert _passes(world) == [(3, 0), (3, 0), (1, 3), (0, 3), (0, 1)]
    world.settle()
    assert (world.phase, list(world.pods)) == ("Running", ["train-worker-0"])


def test_a_task_that_restarts_on_scaling_is_replaced_whole() -> None:
    """Only a Job whose pods all run has its pods replaced, so all of them are marked before one is removed."""
    world = _eight(annotations={keys.RESTART_ON_SCALING: "true"})
    before = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.job["spec"]["tasks"][0]["replicas"] = 9
    world.settle()
    world.run()
    world.look()
    assert _passes(world) == [(3, 0), (3, 0), (2, 3), (0, 3), (0, 2)]
    assert not before & {pod["metadata"]["uid"] for pod in world.pods.values()}
    assert words(world).count("RestartOnScaling") == 1
