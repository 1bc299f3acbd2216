"""Small questions that plugins and the scheduler ask of Jobs and pods."""

from typing import Any

import msgspec
import pytest

from pumice.api import names
from pumice.api.pods import Pod
from pumice.plugins.addresses import addresses
from pumice.plugins.role_members import RoleMembers
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.state.watched_cluster import ClusterState
from tests.kit.tables import table
from tests.unit.plugins.support import job, task

TABLE = table("plugins/helpers")


def by_id(row: Any) -> str:
    return str(row["id"])


def placed(name: str, age: int) -> TaskInfo:
    """What the scheduler knows of a pod of an age in hours."""
    created = f"2026-01-01T{20 - age:02}:00:00Z"
    raw = {"metadata": {"name": name, "namespace": "ns", "creationTimestamp": created}, "spec": {}}
    pod = msgspec.convert(raw, Pod)
    return TaskInfo(pod, ClusterState().shapes.intern(pod))


@pytest.mark.parametrize("row", TABLE["order"], ids=by_id)
def test_pods_have_one_order(row: Any) -> None:
    left, right = placed(*row["left"]), placed(*row["right"])

    assert (left.order < right.order) is row["first"]
    assert (right.order < left.order) is not row["first"]


@pytest.mark.parametrize("row", TABLE["pods"], ids=by_id)
def test_pods_are_named_after_job_task_and_index(row: Any) -> None:
    own = job("job1", task("task1"), task(*row["task"]))
    (*_, chosen) = own.tasks

    assert [names.pod_name("job1", chosen.name, index) for index in range(chosen.size)] == row[
        "names"
    ]
    assert addresses(own, chosen) == [f"{name}.job1" for name in row["names"]]
    assert [int(names.pod_index(name)) for name in row["names"]] == list(range(chosen.size))


@pytest.mark.parametrize("row", TABLE["replicas"], ids=by_id)
def test_a_role_has_as_many_pods_as_its_task(row: Any) -> None:
    own = job("job1", *(task(*each) for each in row["tasks"]))

    assert RoleMembers(own, {"role": row["name"]}).count("role") == row["count"]
