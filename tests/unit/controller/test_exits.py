"""A pod that exits 0 because it is being removed has not succeeded."""

from tests.kit.builders import task
from tests.unit.controller.scenes import policy, running
from tests.unit.controller.world import World

NAMES = ["train-worker-0", "train-worker-1", "train-worker-2"]


def _exits(world: World) -> None:
    """Pods that are being removed exit 0 on SIGTERM; the controller sees that, then they are gone."""
    world.succeed(*(n for n, p in world.pods.items() if p["metadata"].get("deletionTimestamp")))
    world.look()
    world.settle()


def test_a_suspended_job_runs_all_its_pods_again() -> None:
    world = running(task("worker", 3))
    world.command("AbortJob")
    world.look()
    world.look()
    _exits(world)
    assert (world.phase, world.status.get("succeeded", 0)) == ("Aborted", 0)
    world.command("ResumeJob")
    world.settle()
    world.admit()
    world.settle()
    assert (world.phase, list(world.pods)) == ("Pending", NAMES)


def test_pods_of_the_incarnation_before_do_not_count_in_the_new_one() -> None:
    world = running(task("worker", 3), minAvailable=1, policies=[policy("PodFailed", "RestartJob")])
    world.fail("train-worker-0")
    world.look()
    world.look()
    world.succeed("train-worker-1", "train-worker-2")
    world.reap("train-worker-0")
    world.look()
    world.look()
    world.settle()
    world.admit()
    world.settle()
    assert (world.status.get("succeeded", 0), list(world.pods)) == (0, NAMES)


def test_a_terminated_job_has_no_pods_that_succeeded() -> None:
    world = running(task("worker", 3))
    world.command("TerminateJob")
    world.look()
    world.look()
    _exits(world)
    assert (world.phase, world.status.get("succeeded", 0)) == ("Terminated", 0)


def test_an_evicted_pod_is_run_again() -> None:
    world = running(task("worker", 3))
    world.evict("train-worker-1")
    world.look()
    _exits(world)
    assert (list(world.pods), world.status.get("succeeded", 0)) == (NAMES, 0)


def test_a_policy_that_waits_takes_its_action_after_an_eviction() -> None:
    world = running(task("worker", 3), policies=[policy("PodEvicted", "RestartJob", timeout="10s")])
    world.evict("train-worker-1")
    world.look()
    _exits(world)
    world.now += 60
    world.settle()
    assert world.status["retryCount"] == 1


def test_a_pod_that_succeeded_before_it_was_removed_is_done() -> None:
    world = running(task("worker", 3))
    world.succeed("train-worker-1")
    world.settle()
    world.evict("train-worker-1")
    world.look()
    world.settle()
    assert (len(world.pods), world.status["succeeded"]) == (2, 1)
