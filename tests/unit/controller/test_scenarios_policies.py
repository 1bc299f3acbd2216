"""Policies: something happens to a pod or a task, and the Job reacts as it was told to."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD, POD_GROUP, SERVICE
from pumice.controller.jobs import retries
from tests.kit.builders import task
from tests.unit.controller.scenes import a_job, policy, running
from tests.unit.controller.world import START, World


def test_a_failed_pod_restarts_the_job() -> None:
    world = running(policies=[policy("PodFailed", "RestartJob")], plugins={"svc": []})
    service = world.objects[SERVICE, "train"]["metadata"]["uid"]
    group = world.objects[POD_GROUP, "train-u1"]["metadata"]["uid"]
    first = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.fail("train-worker-0", exit_code=3)
    world.settle()
    assert world.phase == "Pending"
    assert (world.status["version"], world.status["retryCount"]) == (1, 1)
    assert world.names(POD) == []  # the group must enqueue again
    executed = next(event for event in world.events if event.reason == "ExecuteAction")
    assert executed.message == (
        "RestartJob: pod train-worker-0 failed with exit code 3 (spec.policies[0])"
    )
    world.admit()
    world.settle()
    assert len(world.pods) == 2
    assert not first & {pod["metadata"]["uid"] for pod in world.pods.values()}
    versions = {pod["metadata"]["annotations"][keys.JOB_VERSION] for pod in world.pods.values()}
    assert versions == {"1"}
    # What the plugins made and the group's place in the line live through it.
    assert world.objects[SERVICE, "train"]["metadata"]["uid"] == service
    assert world.objects[POD_GROUP, "train-u1"]["metadata"]["uid"] == group


def test_pods_are_made_only_after_the_old_ones_are_gone() -> None:
    world = running(policies=[policy("PodFailed", "RestartJob")])
    world.fail("train-worker-0")
    for _ in range(4):
        world.look()
    assert world.phase == "Restarting"
    assert world.status["terminating"] == 2
    world.reap("train-worker-0")
    world.look()
    assert world.phase == "Restarting"
    world.settle()
    assert world.phase == "Pending"


def test_the_last_restart_fails_the_job_and_keeps_its_failed_pods() -> None:
    """XAC-9."""
    world = running(policies=[policy("PodFailed", "RestartJob")], maxRetry=1)
    world.fail("train-worker-0")
    world.settle()
    assert world.phase == "Failed"
    assert world.reason == ("RetriesExhausted", "restarted 1 times, maxRetry is 1")
    assert world.names(POD) == ["train-worker-0"]


def test_exit_codes_choose() -> None:
    policies = [{"exitCode": 3, "action": "AbortJob"}, policy("PodFailed", "RestartJob")]
    world = running(policies=policies)
    world.fail("train-worker-0", exit_code=3)
    world.settle()
    assert world.phase == "Aborted"


def test_a_failure_that_was_dealt_with_does_not_strike_again_after_a_resume() -> None:
    world = running(policies=[policy("PodFailed", "AbortJob")])
    world.fail("train-worker-0")
    world.settle()
    assert world.phase == "Aborted"
    world.command("ResumeJob")
    world.settle()
    world.admit()
    world.settle()
    world.run("train-worker-1")
    world.settle()
    assert world.phase == "Running"


@pytest.mark.parametrize(
    ("action", "survivors"),
    [
        ("RestartPod", ["train-ps-0", "train-worker-1", "train-worker-2", "train-worker-3"]),
        ("RestartPartition", ["train-ps-0", "train-worker-2", "train-worker-3"]),
        ("RestartTask", ["train-ps-0"]),
        ("RestartJob", []),
    ],
)
def test_how_much_a_restart_replaces(action: str, survivors: list[str]) -> None:
    worker = task(
        "worker",
        4,
        partitionPolicy={"totalPartitions": 2, "partitionSize": 2},
        policies=[policy("PodFailed", action)],
    )
    world = running(task("ps", 1), worker)
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    world.fail("train-worker-0")
    world.settle()
    if action == "RestartJob":
        world.admit()
        world.settle()
    assert len(world.pods) == 5
    kept = [name for name, pod in world.pods.items() if pod["metadata"]["uid"] == before[name]]
    assert kept == survivors
    assert world.status.get("retryCount", 0) == (action == "RestartJob")
    noted = {
        "RestartPod": "pod/worker/0=1/1",
        "RestartPartition": "partition/worker/0=1/1",
        "RestartTask": "task/worker=1/1",
    }
    assert world.status["controlledResources"].get(retries.NOTE) == noted.get(action)


def test_an_evicted_pod_counts_once() -> None:
    policies = [policy("PodEvicted", "RestartPod")]
    world = running(policies=policies)
    world.evict("train-worker-0")
    for _ in range(6):
        world.look()
    assert world.status["controlledResources"][retries.NOTE] == "pod/worker/0=1/0"
    world.settle()
    world.run()
    world.settle()
    assert world.phase == "Running"
    assert world.status["controlledResources"][retries.NOTE] == "pod/worker/0=1/0"


def test_a_pod_that_vanished_was_evicted_too() -> None:
    world = running(policies=[policy("PodEvicted", "TerminateJob")])
    world.vanish("train-worker-0")
    world.settle()
    assert world.phase == "Terminated"


def test_the_controllers_own_removals_are_no_evictions() -> None:
    world = running(
        policies=[policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartJob")]
    )
    world.fail("train-worker-0")
    world.settle()
    assert world.phase == "Pending"


def test_a_restarted_pod_that_takes_its_time_to_end_is_no_eviction() -> None:
    policies = [policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartPod")]
    world = running(minAvailable=1, policies=policies)
    world.fail("train-worker-0")
    for _ in range(5):
        world.look()
    assert world.phase == "Running"  # the other pod is enough
    assert world.status["terminating"] == 1
    assert world.pods["train-worker-0"]["metadata"]["annotations"][keys.OUT_OF_SYNC] == "true"
    world.reap()
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 2)


def test_a_completed_task_completes_the_job() -> None:
    chief = task("chief", 1, policies=[policy("TaskCompleted", "CompleteJob")])
    world = running(chief, task("worker", 2))
    world.succeed("train-chief-0")
    world.settle()
    assert (world.phase, world.names(POD)) == ("Completed", ["train-chief-0"])
    assert world.reason == ("CompleteJob", "task chief is complete (spec.tasks[0].policies[0])")


def test_containers_that_restart_too_often_fail_their_task() -> None:
    """XEV-5."""
    world = running(policies=[policy("TaskFailed", "TerminateJob")])
    statuses = world.pods["train-worker-0"]["status"]["containerStatuses"]
    statuses[0]["restartCount"] = 2
    world.settle()
    assert world.phase == "Running"
    world.pods["train-worker-1"]["status"]["initContainerStatuses"] = [{"restartCount": 1}]
    world.settle()
    assert world.phase == "Terminated"


def test_a_gang_that_is_torn_restarts() -> None:
    """XPO-8, and only once: Volcano's policy never fires after the first restart."""
    world = running(policies=[policy("Unknown", "RestartJob")], maxRetry=5)
    for expected in (1, 2):
        world.admit("Unknown")
        world.settle()
        assert (world.phase, world.status["retryCount"]) == ("Pending", expected)
        world.admit()
        world.settle()
        world.run()
        world.settle()
        assert world.phase == "Running"


def test_a_timeout_is_waited_for_and_derived_from_the_pod() -> None:
    """XDA-1: a pod that runs in time cancels it, and a restart of the controller changes nothing."""
    world = World(a_job(policies=[policy("PodPending", "AbortJob", timeout="10s")]))
    world.settle()
    world.admit()
    world.settle()
    assert min(world.requeues) == 10
    world.now = START + 9
    world.settle()
    assert world.phase == "Pending"
    world.now = START + 10
    world.settle()
    assert world.phase == "Aborted"

    calm = World(a_job(policies=[policy("PodPending", "AbortJob", timeout="10s")]))
    calm.settle()
    calm.admit()
    calm.settle()
    calm.run()
    calm.now += 1000
    calm.settle()
    assert calm.phase == "Running"
