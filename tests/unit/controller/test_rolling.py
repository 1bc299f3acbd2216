"""Restarting pods of a Job that was scaled, where the Job asks for it."""

from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.plan import DeleteObject
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import policy, running, words

ASKS = {keys.RESTART_ON_SCALING: "true"}


def _running(**fields: Any) -> FakeCluster:
    """A parameter server and two workers that run."""
    evicted = policy("PodEvicted", "RestartJob")
    return running(
        task("ps", 1), task("worker", 2), plugins={"pytorch": []}, policies=[evicted], **fields
    )


def _uids(cluster: FakeCluster) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}


def _replaced(cluster: FakeCluster, before: dict[str, str]) -> list[str]:
    now = _uids(cluster)
    return [name for name, uid in before.items() if now.get(name, "") != uid]


def _leaving(cluster: FakeCluster) -> list[str]:
    return [name for name, pod in cluster.pods.items() if "deletionTimestamp" in pod["metadata"]]


def test_older_pods_are_made_anew_one_task_after_the_other() -> None:
    cluster = _running(annotations=ASKS)
    before = _uids(cluster)
    cluster.job["spec"]["tasks"][1]["replicas"] = 3
    cluster.settle()
    assert _replaced(cluster, before) == [], "the new pod must run first"
    for restarted in (["train-ps-0"], ["train-ps-0", "train-worker-0", "train-worker-1"]):
        cluster.run()
        cluster.settle()
        assert _replaced(cluster, before) == restarted
    last = _uids(cluster)
    cluster.run()
    cluster.settle()
    assert _uids(cluster) == last
    assert not cluster.plan()
    assert (cluster.phase, cluster.status.get("retryCount", 0)) == ("Running", 0)
    assert words(cluster).count("RestartOnScaling") == 2


def test_a_job_that_shrinks_restarts_what_is_left() -> None:
    cluster = _running(annotations=ASKS)
    before = _uids(cluster)
    cluster.job["spec"]["tasks"][1]["replicas"] = 1
    for _ in range(3):
        cluster.settle()
        cluster.run()
    cluster.settle()
    assert cluster.names(POD) == ["train-ps-0", "train-worker-0"]
    assert _replaced(cluster, before) == list(before)
    assert not cluster.plan()


def test_the_next_task_does_not_wait_for_a_pod_that_is_scaled_away() -> None:
    cluster = running(task("worker", 3), task("ps", 1), minAvailable=2, annotations=ASKS)
    before = _uids(cluster)
    cluster.evict("train-worker-2")  # its node is dead, so it stays
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    for restarted in (["train-worker-0", "train-worker-1"], ["train-ps-0"]):
        cluster.look()
        assert _leaving(cluster) == [*restarted, "train-worker-2"]
        cluster.reap(*restarted)
        cluster.look()
        cluster.run(*restarted)
    assert _replaced(cluster, before) == ["train-ps-0", "train-worker-0", "train-worker-1"]
    assert words(cluster).count("RestartOnScaling") == 2


def test_a_pod_that_failed_and_is_scaled_away_is_removed_once() -> None:
    cluster = running(task("worker", 3), minAvailable=2, annotations=ASKS)
    cluster.fail("train-worker-2")
    cluster.settle()
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    removed = [step.name for step in cluster.plan().steps if isinstance(step, DeleteObject)]
    assert removed == ["train-worker-2", "train-worker-0", "train-worker-1"]


def test_nothing_restarts_while_a_pod_does_not_run() -> None:
    cluster = _running(annotations=ASKS)
    cluster.job["spec"]["tasks"][1]["replicas"] = 3
    cluster.settle()
    cluster.run("train-worker-2", phase="Pending")
    assert not cluster.plan()


@pytest.mark.parametrize("annotations", [{}, {keys.RESTART_ON_SCALING: "false"}])
def test_no_pod_is_restarted_unasked(annotations: dict[str, str]) -> None:
    cluster = _running(annotations=annotations)
    before = _uids(cluster)
    cluster.job["spec"]["tasks"][1]["replicas"] = 3
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert _replaced(cluster, before) == []
    assert all(keys.SCALE not in pod["metadata"]["annotations"] for pod in cluster.pods.values())


def test_pods_from_before_the_job_asked_stay() -> None:
    cluster = _running()
    before = _uids(cluster)
    cluster.job["metadata"]["annotations"] = ASKS
    cluster.job["spec"]["tasks"][1]["replicas"] = 3
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert _replaced(cluster, before) == []


def test_a_controller_that_is_killed_between_marking_and_removing_goes_on() -> None:
    cluster = _running(annotations=ASKS)
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    cluster.settle()
    cluster.run()
    plan = cluster.plan()
    for step in plan.steps:
        if isinstance(step, DeleteObject):
            break
        cluster.carry_out(step)
    plan = cluster.look()
    assert [step.name for step in plan.steps if isinstance(step, DeleteObject)] == ["train-ps-0"]
