"""No eviction is missed and none counts twice: what the Job's status notes of its pods decides, not what the process saw."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.jobs.situation import Limits
from pumice.controller.plan import CreateObject, PatchStatus, Plan, RequireAbsent
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster, StoppedError
from tests.unit.controller.job_scenarios import a_job, policy, running


def _replace(cluster: FakeCluster) -> None:
    """Let the pods go that end, and others run in their place."""
    for _ in range(3):
        cluster.look()
    cluster.reap()
    for _ in range(3):
        cluster.settle()
        cluster.admit()
        cluster.run()
    cluster.settle()


def _evictions(cluster: FakeCluster) -> list[str]:
    """Actions that policies have taken because of evictions."""
    return [
        event.message
        for event in cluster.events
        if event.reason == "ExecuteAction" and "was removed" in event.message
    ]


def test_pods_are_noted_when_they_are_seen_and_by_no_write_of_their_own() -> None:
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.admit()
    plan = cluster.look()
    assert any(isinstance(step, CreateObject) and step.kind == POD for step in plan.steps)
    assert cluster.noted() == "", "what was never seen may never have been made"
    before = cluster.writes
    cluster.look()
    assert cluster.noted() == "worker/0-1"
    assert cluster.status["pending"] == 2
    assert cluster.writes == before + 1


def test_a_pod_that_went_while_a_targeted_restart_ran_was_evicted() -> None:
    policies = [policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartPod")]
    cluster = running(task("worker", 3), policies=policies)
    cluster.fail("train-worker-0")
    cluster.look()
    assert cluster.phase == "Restarting"
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert cluster.phase == "Terminated"
    assert _evictions(cluster) == [
        "TerminateJob: pod train-worker-1 was removed (spec.policies[0])"
    ]


@pytest.mark.parametrize("gone", [True, False])
def test_a_restart_of_a_task_does_not_replace_the_pod_for_which_the_job_ends(gone: bool) -> None:
    """Both are seen in the same pass, and the restart would come first."""
    policies = [
        policy("PodEvicted", "TerminateJob"),
        {"exitCode": 3, "action": "TerminateJob"},
        policy("PodFailed", "RestartTask"),
    ]
    cluster = running(task("worker", 3), policies=policies)
    cluster.fail("train-worker-0")
    if gone:
        cluster.vanish("train-worker-1")
    else:
        cluster.fail("train-worker-1", exit_code=3)
    cluster.settle()
    assert cluster.phase == "Terminated"


def test_a_pod_that_went_before_the_first_pass_of_a_controller_was_evicted() -> None:
    """Nothing but the cluster is left of the earlier controller, in every test of this file."""
    cluster = running(policies=[policy("PodEvicted", "TerminateJob")])
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert cluster.phase == "Terminated"


@pytest.mark.parametrize("write", range(3))
def test_a_pod_that_goes_in_a_pass_that_is_cut_short_was_evicted(write: int) -> None:
    policies = [policy("PodEvicted", "RestartPod")]
    cluster = running(task("worker", 4), policies=policies)
    cluster.vanish("train-worker-1")
    cluster.stop_before = cluster.writes + write
    with pytest.raises(StoppedError):
        cluster.settle()
    cluster.stop_before = None
    cluster.vanish("train-worker-2")
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert cluster.noted("pumice.dev/retries") == "pod/worker/1-2=1/0"
    assert (cluster.phase, len(cluster.pods)) == ("Running", 4)


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartJob"])
def test_an_eviction_counts_once(action: str) -> None:
    cluster = running(policies=[policy("PodEvicted", action)], maxRetry=9)
    cluster.evict("train-worker-1")
    _replace(cluster)
    assert len(_evictions(cluster)) == 1
    assert cluster.phase == "Running"


def test_pods_that_the_controller_removes_are_taken_out_of_the_note_before() -> None:
    cluster = running(task("worker", 4), policies=[policy("PodEvicted", "TerminateJob")])
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    plan = cluster.plan()
    (status,) = [step.status for step in plan.steps if isinstance(step, PatchStatus)]
    assert status["controlledResources"]["pumice.dev/pods"] == "worker/0-1"
    assert isinstance(next(iter(plan.stages[0])), PatchStatus)
    cluster.look()
    cluster.job["spec"]["tasks"][0]["replicas"] = 4
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert (cluster.phase, len(cluster.pods)) == ("Running", 4)


def test_pods_of_an_earlier_incarnation_are_no_evictions() -> None:
    """They end slowly while the next incarnation begins, because fewer pods are enough for that."""
    cluster = running(
        task("worker", 3),
        minAvailable=1,
        policies=[policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartJob")],
    )
    cluster.fail("train-worker-0")
    for _ in range(3):
        cluster.look()
    cluster.reap("train-worker-0")
    cluster.look()
    assert cluster.phase == "Pending"
    cluster.look()
    assert cluster.noted() == ""
    cluster.settle()
    assert cluster.phase == "Pending"


def test_a_cache_that_is_older_than_the_job_evicts_nothing() -> None:
    """What the caches do not show is looked up before anything is done about it."""
    cluster = running(policies=[policy("PodEvicted", "TerminateJob")])
    hidden = cluster.objects.pop((POD, "train-worker-1"))
    plan = cluster.plan()
    assert list(plan.stages[0]) == [RequireAbsent(POD, "default", "train-worker-1")]
    assert isinstance(next(iter(plan.stages[1])), PatchStatus)
    cluster.objects[POD, "train-worker-1"] = hidden
    hidden["metadata"]["labels"].pop(keys.JOB_NAME)  # found, but not by the watch
    assert [pod["metadata"]["name"] for pod in cluster.of(POD)] == [
        "train-worker-0",
        "train-worker-1",
    ]
    plan = cluster.plan(found=[hidden])
    assert not [step for step in plan.steps if isinstance(step, RequireAbsent | CreateObject)]
    for step in plan.steps:
        cluster.carry_out(step)
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert [each.reason for each in cluster.events].count("ExecuteAction") == 1


def _asked(plan: Plan) -> int:
    return sum(isinstance(step, RequireAbsent) for step in plan.steps)


@pytest.mark.parametrize("timeout", [None, "10s"])
def test_the_api_server_is_asked_about_a_window_of_evicted_pods_in_a_pass(
    timeout: str | None,
) -> None:
    later = {"timeout": timeout} if timeout else {}
    cluster = running(task("worker", 8), policies=[policy("PodEvicted", "RestartPod", **later)])
    cluster.limits = Limits(window=3)
    for name in cluster.pods:
        cluster.vanish(name)
    before = cluster.writes
    assert [_asked(cluster.look()) for _ in range(2)] == [3, 3]
    assert (cluster.writes, cluster.requeues) == (before, [0.0, 0.0])
    plan = cluster.look()
    assert _asked(plan) == 2
    assert any(isinstance(step, PatchStatus) for step in plan.steps)
    if timeout:
        assert cluster.noted("pumice.dev/evicted") == "worker/0-7@2027-01-15T08:00:00Z"
        cluster.now += 11
        for _ in range(3):
            cluster.look()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert cluster.noted("pumice.dev/retries") == "pod/worker/0-7=1/0", "once for each"
    assert len(_evictions(cluster)) == 1
    assert (cluster.phase, len(cluster.pods)) == ("Running", 8)


def test_a_command_is_seen_while_the_api_server_is_asked_about_evicted_pods() -> None:
    cluster = running(task("worker", 8), policies=[policy("PodEvicted", "RestartPod")])
    cluster.limits = Limits(window=3)
    for name in cluster.pods:
        cluster.vanish(name)
    cluster.look()
    cluster.command("AbortJob")
    cluster.settle()
    assert cluster.phase == "Aborted"


def test_an_eviction_for_which_a_policy_waits_is_noted_with_its_moment_until_the_pod_runs() -> None:
    """Also while the pod cannot be made, and when the one in its place goes as well."""
    worker = task("worker", 2, dependsOn={"name": ["first"]})
    policies = [policy("PodEvicted", "AbortJob", timeout="10s")]
    cluster = running(task("first", 1), worker, policies=policies, minAvailable=1)
    cluster.run()
    cluster.settle()
    cluster.now += 5
    cluster.vanish("train-first-0")
    cluster.vanish("train-worker-0")
    plan = cluster.look()
    assert {step.name for step in plan.steps if isinstance(step, RequireAbsent)} == {
        "train-first-0",
        "train-worker-0",
    }
    cluster.settle()
    assert sorted(cluster.pods) == ["train-first-0", "train-worker-1"], "worker waits for first"
    moment = "2027-01-15T08:00:05Z"
    assert cluster.noted("pumice.dev/evicted") == f"first/0@{moment} worker/0@{moment}"
    cluster.now += 5
    cluster.run("train-first-0")
    cluster.settle()
    assert cluster.noted("pumice.dev/evicted") == f"worker/0@{moment}"
    cluster.now += 5
    cluster.settle()
    assert cluster.phase == "Aborted"
    assert cluster.reason[1].startswith("pod train-worker-0 was removed and does not run again")


@pytest.mark.parametrize("step", ["at once", "between passes", "while it restarts", "as they end"])
def test_a_gang_that_is_evicted_as_a_whole_is_restarted_once(step: str) -> None:
    """Its pods go for another gang, one eviction after the other: the later ones are not those of the next incarnation."""
    policies = [policy("PodEvicted", "RestartJob"), policy("PodFailed", "RestartJob")]
    cluster = running(task("worker", 4), policies=policies, maxRetry=2)
    names = [f"train-worker-{index}" for index in range(4)]
    for name in names:
        if step == "as they end" and name == names[-1]:
            cluster.fail(name, exit_code=143)
        cluster.evict(name)
        if step == "between passes":
            cluster.look()
        if step == "while it restarts":
            cluster.look()
            cluster.reap(name)
    _replace(cluster)
    assert len(_evictions(cluster)) == 1
    assert cluster.status["retryCount"] == 1
    assert (cluster.phase, len(cluster.pods)) == ("Running", 4)
