"""A pod that exits 0 because it is being removed has not succeeded."""

from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import policy, running

NAMES = ["train-worker-0", "train-worker-1", "train-worker-2"]


def _exits(cluster: FakeCluster) -> None:
    """Pods that are being removed exit 0 on SIGTERM; the controller sees that, then they are gone."""
    cluster.succeed(*(n for n, p in cluster.pods.items() if p["metadata"].get("deletionTimestamp")))
    cluster.look()
    cluster.settle()


def test_a_suspended_job_runs_all_its_pods_again() -> None:
    cluster = running(task("worker", 3))
    cluster.command("AbortJob")
    cluster.look()
    cluster.look()
    _exits(cluster)
    assert (cluster.phase, cluster.status.get("succeeded", 0)) == ("Aborted", 0)
    cluster.command("ResumeJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert (cluster.phase, list(cluster.pods)) == ("Pending", NAMES)


def test_pods_of_the_incarnation_before_do_not_count_in_the_new_one() -> None:
    cluster = running(
        task("worker", 3), minAvailable=1, policies=[policy("PodFailed", "RestartJob")]
    )
    cluster.fail("train-worker-0")
    cluster.look()
    cluster.look()
    cluster.succeed("train-worker-1", "train-worker-2")
    cluster.reap("train-worker-0")
    cluster.look()
    cluster.look()
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert (cluster.status.get("succeeded", 0), list(cluster.pods)) == (0, NAMES)


def test_a_terminated_job_has_no_pods_that_succeeded() -> None:
    cluster = running(task("worker", 3))
    cluster.command("TerminateJob")
    cluster.look()
    cluster.look()
    _exits(cluster)
    assert (cluster.phase, cluster.status.get("succeeded", 0)) == ("Terminated", 0)


def test_an_evicted_pod_is_run_again() -> None:
    cluster = running(task("worker", 3))
    cluster.evict("train-worker-1")
    cluster.look()
    _exits(cluster)
    assert (list(cluster.pods), cluster.status.get("succeeded", 0)) == (NAMES, 0)


def test_a_policy_that_waits_takes_its_action_after_an_eviction() -> None:
    cluster = running(
        task("worker", 3), policies=[policy("PodEvicted", "RestartJob", timeout="10s")]
    )
    cluster.evict("train-worker-1")
    cluster.look()
    _exits(cluster)
    cluster.now += 60
    cluster.settle()
    assert cluster.status["retryCount"] == 1


def test_a_pod_that_succeeded_before_it_was_removed_is_done() -> None:
    cluster = running(task("worker", 3))
    cluster.succeed("train-worker-1")
    cluster.settle()
    cluster.evict("train-worker-1")
    cluster.look()
    cluster.settle()
    assert (len(cluster.pods), cluster.status["succeeded"]) == (2, 1)
