"""Jobs and what became of them, as the scenarios of this folder tell it."""

from typing import Any

from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster

Raw = dict[str, Any]


def a_job(*tasks: Raw, **fields: Any) -> Raw:
    return job("train", list(tasks) or [task("worker", 2, cpu="1")], uid="u1", **fields)


def running(*tasks: Raw, **fields: Any) -> FakeCluster:
    """A Job whose pods all run."""
    cluster = FakeCluster(a_job(*tasks, **fields))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert cluster.phase == "Running"
    return cluster


def policy(event: str, action: str, **fields: Any) -> Raw:
    return {"event": event, "action": action} | fields


def words(cluster: FakeCluster) -> list[str]:
    return [event.reason for event in cluster.events]
