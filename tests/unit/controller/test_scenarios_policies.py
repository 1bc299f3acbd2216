"""Policies: something happens to a pod or a task, and the Job reacts as it was told to."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD, POD_GROUP, SERVICE
from pumice.controller.jobs import restart_budgets
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import START, FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy, running


def test_a_failed_pod_restarts_the_job() -> None:
    cluster = running(policies=[policy("PodFailed", "RestartJob")], plugins={"svc": []})
    service = cluster.objects[SERVICE, "train"]["metadata"]["uid"]
    group = cluster.objects[POD_GROUP, "train-u1"]["metadata"]["uid"]
    first = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    cluster.fail("train-worker-0", exit_code=3)
    cluster.settle()
    assert cluster.phase == "Pending"
    assert (cluster.status["version"], cluster.status["retryCount"]) == (1, 1)
    assert cluster.names(POD) == []  # the group must enqueue again
    executed = next(event for event in cluster.events if event.reason == "ExecuteAction")
    assert executed.message == (
        "RestartJob: task worker: pod train-worker-0 failed with exit code 3 (spec.policies[0]);"
        " attempts used: 1 of 3 (maxRetry)"
    )
    cluster.admit()
    cluster.settle()
    assert len(cluster.pods) == 2
    assert not first & {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    versions = {pod["metadata"]["annotations"][keys.JOB_VERSION] for pod in cluster.pods.values()}
    assert versions == {"1"}
    # What the plugins made and the group's place in the line live through it.
    assert cluster.objects[SERVICE, "train"]["metadata"]["uid"] == service
    assert cluster.objects[POD_GROUP, "train-u1"]["metadata"]["uid"] == group


def test_pods_are_made_only_after_the_old_ones_are_gone() -> None:
    cluster = running(policies=[policy("PodFailed", "RestartJob")])
    cluster.fail("train-worker-0")
    for _ in range(4):
        cluster.look()
    assert cluster.phase == "Restarting"
    assert cluster.status["terminating"] == 2
    cluster.reap("train-worker-0")
    cluster.look()
    assert cluster.phase == "Restarting"
    cluster.settle()
    assert cluster.phase == "Pending"


def test_the_last_restart_fails_the_job_and_keeps_its_failed_pods() -> None:
    """XAC-9."""
    cluster = running(policies=[policy("PodFailed", "RestartJob")], maxRetry=1)
    cluster.fail("train-worker-0")
    cluster.settle()
    assert cluster.phase == "Failed"
    assert cluster.reason == (
        "RetriesExhausted",
        (
            "task worker: pod train-worker-0 failed with exit code 1 (spec.policies[0]);"
            " attempts used: 1 of 1 (maxRetry)"
        ),
    )
    assert cluster.names(POD) == ["train-worker-0"]
    told = [event for event in cluster.events if "attempts" in event.message]
    assert [(each.reason, each.message) for each in told] == [("Failed", cluster.reason[1])]


def test_exit_codes_choose() -> None:
    policies = [{"exitCode": 3, "action": "AbortJob"}, policy("PodFailed", "RestartJob")]
    cluster = running(policies=policies)
    cluster.fail("train-worker-0", exit_code=3)
    cluster.settle()
    assert cluster.phase == "Aborted"


def test_a_failure_that_was_dealt_with_does_not_strike_again_after_a_resume() -> None:
    cluster = running(policies=[policy("PodFailed", "AbortJob")])
    cluster.fail("train-worker-0")
    cluster.settle()
    assert cluster.phase == "Aborted"
    cluster.command("ResumeJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run("train-worker-1")
    cluster.settle()
    assert cluster.phase == "Running"


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
    cluster = running(task("ps", 1), worker)
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.fail("train-worker-0")
    cluster.settle()
    if action == "RestartJob":
        cluster.admit()
        cluster.settle()
    assert len(cluster.pods) == 5
    kept = [name for name, pod in cluster.pods.items() if pod["metadata"]["uid"] == before[name]]
    assert kept == survivors
    assert cluster.status.get("retryCount", 0) == (action == "RestartJob")
    noted = {
        "RestartPod": "pod/worker/0=1/1",
        "RestartPartition": "partition/worker/0=1/1",
        "RestartTask": "task/worker=1/1",
    }
    assert cluster.status["controlledResources"].get(restart_budgets.NOTE) == noted.get(action)


def test_an_evicted_pod_counts_once() -> None:
    policies = [policy("PodEvicted", "RestartPod")]
    cluster = running(policies=policies)
    cluster.evict("train-worker-0")
    for _ in range(6):
        cluster.look()
    assert cluster.status["controlledResources"][restart_budgets.NOTE] == "pod/worker/0=1/0"
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert cluster.phase == "Running"
    assert cluster.status["controlledResources"][restart_budgets.NOTE] == "pod/worker/0=1/0"


def test_a_pod_that_vanished_was_evicted_too() -> None:
    cluster = running(policies=[policy("PodEvicted", "TerminateJob")])
    cluster.vanish("train-worker-0")
    cluster.settle()
    assert cluster.phase == "Terminated"


def test_the_controllers_own_removals_are_no_evictions() -> None:
    cluster = running(
        policies=[policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartJob")]
    )
    cluster.fail("train-worker-0")
    cluster.settle()
    assert cluster.phase == "Pending"


def test_a_restarted_pod_that_takes_its_time_to_end_is_no_eviction() -> None:
    policies = [policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartPod")]
    cluster = running(minAvailable=1, policies=policies)
    cluster.fail("train-worker-0")
    for _ in range(5):
        cluster.look()
    assert cluster.phase == "Running"  # the other pod is enough
    assert cluster.status["terminating"] == 1
    assert cluster.pods["train-worker-0"]["metadata"]["annotations"][keys.OUT_OF_SYNC] == "true"
    cluster.reap()
    cluster.settle()
    assert (cluster.phase, len(cluster.pods)) == ("Running", 2)


def test_a_completed_task_completes_the_job() -> None:
    chief = task("chief", 1, policies=[policy("TaskCompleted", "CompleteJob")])
    cluster = running(chief, task("worker", 2))
    cluster.succeed("train-chief-0")
    cluster.settle()
    assert (cluster.phase, cluster.names(POD)) == ("Completed", ["train-chief-0"])
    assert cluster.reason == ("CompleteJob", "task chief is complete (spec.tasks[0].policies[0])")


def test_containers_that_restart_too_often_fail_their_task() -> None:
    """XEV-5."""
    cluster = running(policies=[policy("TaskFailed", "TerminateJob")])
    statuses = cluster.pods["train-worker-0"]["status"]["containerStatuses"]
    statuses[0]["restartCount"] = 2
    cluster.settle()
    assert cluster.phase == "Running"
    cluster.pods["train-worker-1"]["status"]["initContainerStatuses"] = [{"restartCount": 1}]
    cluster.settle()
    assert cluster.phase == "Terminated"


def test_a_gang_that_is_torn_restarts() -> None:
    """XPO-8, and only once: Volcano's policy never fires after the first restart."""
    cluster = running(policies=[policy("Unknown", "RestartJob")], maxRetry=5)
    for expected in (1, 2):
        cluster.admit("Unknown")
        cluster.settle()
        assert (cluster.phase, cluster.status["retryCount"]) == ("Pending", expected)
        cluster.admit()
        cluster.settle()
        cluster.run()
        cluster.settle()
        assert cluster.phase == "Running"


def test_a_timeout_is_waited_for_and_derived_from_the_pod() -> None:
    """XDA-1: a pod that runs in time cancels it, and a restart of the controller changes nothing."""
    cluster = FakeCluster(a_job(policies=[policy("PodPending", "AbortJob", timeout="10s")]))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert min(cluster.requeues) == 10
    cluster.now = START + 9
    cluster.settle()
    assert cluster.phase == "Pending"
    cluster.now = START + 10
    cluster.settle()
    assert cluster.phase == "Aborted"

    calm = FakeCluster(a_job(policies=[policy("PodPending", "AbortJob", timeout="10s")]))
    calm.settle()
    calm.admit()
    calm.settle()
    calm.run()
    calm.now += 1000
    calm.settle()
    assert calm.phase == "Running"
