"""Pods are removed a window at a time, and what happens meanwhile is seen between the windows."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.jobs.situation import Limits
from pumice.controller.plan import DeleteObject, Plan, UpdateObject
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import policy, running, words

WINDOW = 3


def _eight(**fields: object) -> FakeCluster:
    cluster = running(task("worker", 8), **fields)
    cluster.limits = Limits(window=WINDOW)
    return cluster


def _marked(plan: Plan) -> int:
    return sum(isinstance(step, UpdateObject) and step.kind == POD for step in plan.steps)


def _deleted(plan: Plan) -> int:
    return sum(isinstance(step, DeleteObject) and step.kind == POD for step in plan.steps)


def _passes(cluster: FakeCluster) -> list[tuple[int, int]]:
    """Pods that each pass marks and deletes, until no pass asks for another one at once."""
    found = []
    for _ in range(20):
        plan = cluster.look()
        cluster.reap()
        if _marked(plan) or _deleted(plan):
            found.append((_marked(plan), _deleted(plan)))
        if not plan or cluster.requeues[-1:] != [0.0]:
            break
        cluster.requeues.pop()
    return found


def test_a_job_that_is_aborted_removes_its_pods_in_windows() -> None:
    cluster = _eight()
    cluster.command("AbortJob")
    cluster.look()
    assert (cluster.phase, cluster.status["terminating"]) == ("Aborting", 8)
    assert _passes(cluster) == [(0, 3), (0, 3), (0, 2)]
    cluster.settle()
    assert cluster.phase == "Aborted"


def test_a_command_is_seen_between_two_windows() -> None:
    cluster = _eight()
    cluster.command("AbortJob")
    cluster.look()
    cluster.look()
    cluster.command("TerminateJob")
    cluster.look()
    assert (cluster.phase, len(cluster.pods)) == ("Terminating", 8)
    leaving = [pod for pod in cluster.pods.values() if pod["metadata"].get("deletionTimestamp")]
    assert len(leaving) == WINDOW


@pytest.mark.parametrize(
    ("action", "passes"),
    [
        ("RestartJob", [(0, 3), (0, 3), (0, 2)]),
        ("RestartTask", [(3, 0), (3, 0), (2, 3), (0, 3), (0, 2)]),
    ],
)
def test_a_restart_removes_pods_in_windows(action: str, passes: list[tuple[int, int]]) -> None:
    cluster = _eight(policies=[policy("PodFailed", action), policy("PodEvicted", "TerminateJob")])
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    cluster.fail("train-worker-0")
    cluster.look()
    assert _passes(cluster) == passes
    cluster.settle()
    cluster.admit()
    for _ in range(3):
        cluster.settle()
    cluster.run()
    cluster.settle()
    assert (cluster.phase, len(cluster.pods)) == ("Running", 8)
    assert not before & {pod["metadata"]["uid"] for pod in cluster.pods.values()}


def test_a_job_that_shrinks_removes_pods_in_windows() -> None:
    cluster = _eight(minAvailable=1, policies=[policy("PodEvicted", "TerminateJob")])
    cluster.job["spec"]["tasks"][0]["replicas"] = 1
    assert _passes(cluster) == [(3, 0), (3, 0), (1, 3), (0, 3), (0, 1)]
    cluster.settle()
    assert (cluster.phase, list(cluster.pods)) == ("Running", ["train-worker-0"])


def test_a_task_that_restarts_on_scaling_is_replaced_whole() -> None:
    """Only a Job whose pods all run has its pods replaced, so all of them are marked before one is removed."""
    cluster = _eight(annotations={keys.RESTART_ON_SCALING: "true"})
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    cluster.job["spec"]["tasks"][0]["replicas"] = 9
    cluster.settle()
    cluster.run()
    cluster.look()
    assert _passes(cluster) == [(3, 0), (3, 0), (2, 3), (0, 3), (0, 2)]
    assert not before & {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    assert words(cluster).count("RestartOnScaling") == 1
