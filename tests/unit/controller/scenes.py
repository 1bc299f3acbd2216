"""Jobs and what became of them, as the scenarios of this folder tell it."""

from typing import Any

from tests.kit.builders import job, task
from tests.unit.controller.world import World

Raw = dict[str, Any]


def a_job(*tasks: Raw, **fields: Any) -> Raw:
    return job("train", list(tasks) or [task("worker", 2, cpu="1")], uid="u1", **fields)


def running(*tasks: Raw, **fields: Any) -> World:
    """A Job whose pods all run."""
    world = World(a_job(*tasks, **fields))
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert world.phase == "Running"
    return world


def policy(event: str, action: str, **fields: Any) -> Raw:
    return {"event": event, "action": action} | fields


def words(world: World) -> list[str]:
    return [event.reason for event in world.events]
