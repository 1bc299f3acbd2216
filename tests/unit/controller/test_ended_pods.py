import pytest

from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import policy, running, words


def test_a_succeeded_pod_that_is_removed_is_done_and_not_run_again() -> None:
    cluster = running(task("worker", 3), policies=[policy("PodEvicted", "TerminateJob")])
    cluster.succeed("train-worker-0")
    cluster.settle()
    assert cluster.noted("pumice.dev/succeeded") == "worker/0"
    cluster.evict("train-worker-0")
    for _ in range(3):
        cluster.look()
    assert cluster.phase == "Running"
    cluster.reap()
    cluster.settle()
    assert (cluster.phase, sorted(cluster.pods)) == (
        "Running",
        ["train-worker-1", "train-worker-2"],
    )
    assert (cluster.status["succeeded"], cluster.status["running"]) == (1, 2)
    assert cluster.status["taskStatusCount"]["worker"]["phase"] == {"Running": 2, "Succeeded": 1}
    assert cluster.group is not None
    assert cluster.group["spec"]["minMember"] == 2
    cluster.succeed("train-worker-1", "train-worker-2")
    cluster.settle()
    assert (cluster.phase, cluster.status["succeeded"]) == ("Completed", 3)
    for name in list(cluster.pods):
        cluster.vanish(name)
    cluster.settle()
    assert cluster.status["succeeded"] == 3, "also when its pods are collected"


def test_what_has_succeeded_survives_a_suspension_and_not_a_restart() -> None:
    cluster = running(task("worker", 2))
    cluster.succeed("train-worker-0")
    cluster.settle()
    cluster.vanish("train-worker-0")
    cluster.command("AbortJob")
    cluster.settle()
    assert (cluster.phase, cluster.status["succeeded"]) == ("Aborted", 1)
    cluster.command("ResumeJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert (cluster.phase, list(cluster.pods)) == ("Running", ["train-worker-1"])
    cluster.command("RestartJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert list(cluster.pods) == ["train-worker-0", "train-worker-1"]
    assert "succeeded" not in cluster.status


def test_a_restarted_task_runs_its_completed_pods_again_and_others_do_not() -> None:
    worker = task("worker", 2, policies=[policy("PodFailed", "RestartTask")])
    cluster = running(task("ps", 1), worker, minAvailable=1)
    cluster.succeed("train-worker-0", "train-ps-0")
    cluster.settle()
    cluster.vanish("train-worker-0")
    cluster.vanish("train-ps-0")
    cluster.settle()
    cluster.fail("train-worker-1")
    cluster.settle()
    assert sorted(cluster.pods) == ["train-worker-0", "train-worker-1"]
    assert cluster.noted("pumice.dev/succeeded") == "ps/0"


def test_a_task_whose_pods_succeeded_and_are_gone_is_ready_and_complete() -> None:
    first = task("first", 2, policies=[policy("TaskCompleted", "CompleteJob")])
    second = task("second", 1, dependsOn={"name": ["first"]})
    cluster = running(first, second, minAvailable=2)
    cluster.run()
    cluster.settle()
    cluster.succeed("train-first-0")
    cluster.settle()
    cluster.vanish("train-first-0")
    cluster.vanish("train-second-0")
    cluster.settle()
    assert sorted(cluster.pods) == ["train-first-1", "train-second-0"]
    cluster.succeed("train-first-1")
    cluster.settle()
    assert cluster.phase == "Completed"


def _succeeds_and_goes(cluster: FakeCluster, name: str) -> None:
    """A pod succeeds and is removed between two passes; the loop remembers that."""
    cluster.succeed(name)
    _goes(cluster, name)


def _goes(cluster: FakeCluster, name: str) -> None:
    cluster.ended.append(cluster.pods[name])
    cluster.vanish(name)


def test_a_pod_that_succeeded_and_was_removed_between_two_passes_was_not_evicted() -> None:
    cluster = running(task("worker", 2), policies=[policy("PodEvicted", "TerminateJob")])
    _succeeds_and_goes(cluster, "train-worker-0")
    cluster.settle()
    assert (cluster.phase, list(cluster.pods)) == ("Running", ["train-worker-1"])
    assert cluster.status["succeeded"] == 1
    assert cluster.noted("pumice.dev/succeeded") == "worker/0"
    cluster.ended.clear()
    cluster.succeed("train-worker-1")
    cluster.settle()
    assert cluster.phase == "Completed"


@pytest.mark.parametrize("runs", [False, True])
def test_a_pod_that_failed_and_was_removed_waits_for_the_policy_of_its_failure(runs: bool) -> None:
    later = policy("PodFailed", "RestartPod", timeout="10s")
    cluster = running(task("worker", 2), policies=[later])
    cluster.fail("train-worker-0")
    cluster.settle()
    cluster.now += 5
    _goes(cluster, "train-worker-0")
    cluster.settle()
    cluster.ended.clear()  # that was written
    assert "train-worker-0" in cluster.pods
    if runs:
        cluster.run()
    cluster.now += 4
    cluster.settle()
    assert "ExecuteAction" not in words(cluster)
    cluster.now += 1
    cluster.settle()
    cluster.now += 100
    cluster.settle()
    assert words(cluster).count("ExecuteAction") == (not runs)
    assert cluster.noted("pumice.dev/retries") == ("" if runs else "pod/worker/0=1/1")


@pytest.mark.parametrize("alone", [True, False])
def test_a_policy_about_an_exit_code_waits_for_a_pod_that_is_gone(alone: bool) -> None:
    later = {"exitCode": 3, "action": "AbortJob", "timeout": "10s"}
    others = [] if alone else [policy("PodFailed", "RestartJob")]
    cluster = running(task("worker", 2), policies=[later, *others])
    cluster.fail("train-worker-0", exit_code=3)
    _goes(cluster, "train-worker-0")
    cluster.settle()
    cluster.ended.clear()
    cluster.settle()
    assert "ExecuteAction" not in words(cluster)
    cluster.now += 10
    cluster.settle()
    assert cluster.phase == "Aborted"


def test_an_exit_code_is_not_guessed() -> None:
    """Which of two policies waits is not known, so none acts; least of all one that does not wait."""
    codes = {3: "AbortJob", 4: "TerminateJob"}
    later = [{"exitCode": code, "action": codes[code], "timeout": "10s"} for code in codes]
    cluster = running(task("worker", 2), policies=[*later, policy("PodFailed", "RestartJob")])
    cluster.fail("train-worker-0", exit_code=3)
    _goes(cluster, "train-worker-0")
    cluster.settle()
    cluster.ended.clear()
    cluster.now += 10
    cluster.settle()
    assert "ExecuteAction" not in words(cluster)


def test_a_pod_that_failed_often_and_is_there_again_does_not_wait_as_if_it_had_failed() -> None:
    later = policy("PodFailed", "RestartPod", timeout="10s")
    cluster = running(task("worker", 2), policies=[later], minAvailable=1, minSuccess=1)
    cluster.status["controlledResources"]["pumice.dev/retries"] = "pod/worker/0=2/2"
    cluster.fail("train-worker-0")
    _goes(cluster, "train-worker-0")
    cluster.settle()
    cluster.ended.clear()
    cluster.settle()
    assert cluster.reason[0] == "PodsPending"  # and not RestartBackOff
    cluster.succeed("train-worker-1")
    cluster.settle()
    assert cluster.reason[1] == "1 of 2 pods succeeded, 0 failed, minSuccess 1 is reached"


def test_a_pod_of_an_earlier_incarnation_that_succeeded_runs_again() -> None:
    cluster = running(task("worker", 2), policies=[policy("PodFailed", "RestartJob")], maxRetry=9)
    cluster.fail("train-worker-1")
    cluster.look()
    _succeeds_and_goes(cluster, "train-worker-0")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert sorted(cluster.pods) == ["train-worker-0", "train-worker-1"]
    assert cluster.status.get("succeeded", 0) == 0


def test_a_restarted_task_forgets_a_pod_that_succeeded_and_was_removed_between_two_passes() -> None:
    cluster = running(task("worker", 2), policies=[policy("PodFailed", "RestartTask")], maxRetry=9)
    _succeeds_and_goes(cluster, "train-worker-0")
    cluster.fail("train-worker-1")
    cluster.look()
    cluster.ended.clear()  # that was written
    cluster.settle()
    assert sorted(cluster.pods) == ["train-worker-0", "train-worker-1"]
    assert cluster.noted("pumice.dev/succeeded") == ""


FAILED = "task worker: pod train-worker-1 failed with exit code 3"


@pytest.mark.parametrize(
    ("policies", "executed"),
    [
        ([policy("PodFailed", "TerminateJob")], FAILED),
        ([{"exitCode": 3, "action": "TerminateJob"}], FAILED),
        (
            [policy("PodEvicted", "TerminateJob"), policy("PodFailed", "AbortJob")],
            "pod train-worker-1 was removed",
        ),
    ],
)
def test_a_pod_that_failed_and_was_removed_between_two_passes_has_failed(
    policies: list[dict[str, str]], executed: str
) -> None:
    """Pods of a deleted node fail and are removed at once. A policy about their eviction comes first."""
    cluster = running(policies=policies)
    cluster.fail("train-worker-1", exit_code=3)
    _goes(cluster, "train-worker-1")
    cluster.settle()
    messages = [each.message for each in cluster.events if each.reason == "ExecuteAction"]
    assert messages == [f"TerminateJob: {executed} (spec.policies[0])"]
    assert cluster.phase == "Terminated"


def test_a_pod_that_failed_again_and_was_removed_is_restarted_without_delay() -> None:
    cluster = running(policies=[policy("PodFailed", "RestartPod")], maxRetry=9)
    cluster.fail("train-worker-1")
    cluster.settle()
    cluster.run()
    cluster.settle()
    cluster.fail("train-worker-1")
    _goes(cluster, "train-worker-1")
    cluster.look()
    cluster.ended.clear()  # that was written
    cluster.settle()
    assert cluster.noted("pumice.dev/retries") == "pod/worker/1=2/2"
    assert sorted(cluster.pods) == ["train-worker-0", "train-worker-1"]
