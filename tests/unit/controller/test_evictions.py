"""No eviction is missed and none counts twice: what the Job's status notes of its pods decides, not what the process saw."""

import pytest

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.controller.plan import CreateObject, PatchStatus, RequireAbsent
from tests.kit.builders import task
from tests.unit.controller.scenes import a_job, policy, running
from tests.unit.controller.world import StoppedError, World

NOTE = "pumice.dev/pods"


def _noted(world: World, key: str = NOTE) -> str:
    return str(world.status.get("controlledResources", {}).get(key, ""))


def _evictions(world: World) -> list[str]:
    """Actions that policies have taken because of evictions."""
    return [
        event.message
        for event in world.events
        if event.reason == "ExecuteAction" and "was removed" in event.message
    ]


def test_pods_are_noted_when_they_are_seen_and_by_no_write_of_their_own() -> None:
    world = World(a_job())
    world.settle()
    world.admit()
    plan = world.look()
    assert any(isinstance(step, CreateObject) and step.kind == POD for step in plan.steps)
    assert _noted(world) == "", "what was never seen may never have been made"
    before = world.writes
    world.look()
    assert _noted(world) == "worker/0-1"
    assert world.status["pending"] == 2
    assert world.writes == before + 1


def test_a_pod_that_went_while_a_targeted_restart_ran_was_evicted() -> None:
    policies = [policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartPod")]
    world = running(task("worker", 3), policies=policies)
    world.fail("train-worker-0")
    world.look()
    assert world.phase == "Restarting"
    world.vanish("train-worker-1")
    world.settle()
    assert world.phase == "Terminated"
    assert _evictions(world) == ["TerminateJob: pod train-worker-1 was removed (spec.policies[0])"]


def test_a_pod_that_went_before_the_first_pass_of_a_controller_was_evicted() -> None:
    """Nothing but the cluster is left of the earlier controller, in every test of this file."""
    world = running(policies=[policy("PodEvicted", "TerminateJob")])
    world.vanish("train-worker-1")
    world.settle()
    assert world.phase == "Terminated"


@pytest.mark.parametrize("write", range(3))
def test_a_pod_that_goes_in_a_pass_that_is_cut_short_was_evicted(write: int) -> None:
    policies = [policy("PodEvicted", "RestartPod")]
    world = running(task("worker", 4), policies=policies)
    world.vanish("train-worker-1")
    world.stop_before = world.writes + write
    with pytest.raises(StoppedError):
        world.settle()
    world.stop_before = None
    world.vanish("train-worker-2")
    world.settle()
    world.run()
    world.settle()
    assert _noted(world, "pumice.dev/retries") == "pod/worker/1-2=1/0"
    assert (world.phase, len(world.pods)) == ("Running", 4)


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartJob"])
def test_an_eviction_counts_once(action: str) -> None:
    world = running(policies=[policy("PodEvicted", action)], maxRetry=9)
    world.evict("train-worker-1")
    for _ in range(3):
        world.look()
    world.reap()
    for _ in range(3):
        world.settle()
        world.admit()
        world.run()
    world.settle()
    assert len(_evictions(world)) == 1
    assert world.phase == "Running"


def test_pods_that_the_controller_removes_are_taken_out_of_the_note_before() -> None:
    world = running(task("worker", 4), policies=[policy("PodEvicted", "TerminateJob")])
    world.job["spec"]["tasks"][0]["replicas"] = 2
    plan = world.plan()
    (status,) = [step.status for step in plan.steps if isinstance(step, PatchStatus)]
    assert status["controlledResources"][NOTE] == "worker/0-1"
    assert isinstance(next(iter(plan.stages[0])), PatchStatus)
    world.look()
    world.job["spec"]["tasks"][0]["replicas"] = 4
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 4)


def test_pods_of_an_earlier_incarnation_are_no_evictions() -> None:
    """They end slowly while the next incarnation begins, because fewer pods are enough for that."""
    world = running(
        task("worker", 3),
        minAvailable=1,
        policies=[policy("PodEvicted", "TerminateJob"), policy("PodFailed", "RestartJob")],
    )
    world.fail("train-worker-0")
    for _ in range(3):
        world.look()
    world.reap("train-worker-0")
    world.look()
    assert world.phase == "Pending"
    world.look()
    assert _noted(world) == ""
    world.settle()
    assert world.phase == "Pending"


def test_a_cache_that_is_older_than_the_job_evicts_nothing() -> None:
    """What the caches do not show is looked up before anything is done about it."""
    world = running(policies=[policy("PodEvicted", "TerminateJob")])
    hidden = world.objects.pop((POD, "train-worker-1"))
    plan = world.plan()
    assert list(plan.stages[0]) == [RequireAbsent(POD, "default", "train-worker-1")]
    assert isinstance(next(iter(plan.stages[1])), PatchStatus)
    world.objects[POD, "train-worker-1"] = hidden
    hidden["metadata"]["labels"].pop(keys.JOB_NAME)  # found, but not by the watch
    assert [pod["metadata"]["name"] for pod in world.of(POD)] == [
        "train-worker-0",
        "train-worker-1",
    ]
    plan = world.plan(found=[hidden])
    assert not [step for step in plan.steps if isinstance(step, RequireAbsent | CreateObject)]


def test_a_succeeded_pod_that_is_removed_is_done_and_not_run_again() -> None:
    world = running(task("worker", 3), policies=[policy("PodEvicted", "TerminateJob")])
    world.succeed("train-worker-0")
    world.settle()
    assert _noted(world, "pumice.dev/succeeded") == "worker/0"
    world.evict("train-worker-0")
    for _ in range(3):
        world.look()
    assert world.phase == "Running"
    world.reap()
    world.settle()
    assert (world.phase, sorted(world.pods)) == ("Running", ["train-worker-1", "train-worker-2"])
    assert (world.status["succeeded"], world.status["running"]) == (1, 2)
    assert world.status["taskStatusCount"]["worker"]["phase"] == {"Running": 2, "Succeeded": 1}
    assert world.group is not None
    assert world.group["spec"]["minMember"] == 2
    world.succeed("train-worker-1", "train-worker-2")
    world.settle()
    assert (world.phase, world.status["succeeded"]) == ("Completed", 3)
    for name in list(world.pods):
        world.vanish(name)
    world.settle()
    assert world.status["succeeded"] == 3, "also when its pods are collected"


def test_what_has_succeeded_survives_a_suspension_and_not_a_restart() -> None:
    world = running(task("worker", 2))
    world.succeed("train-worker-0")
    world.settle()
    world.vanish("train-worker-0")
    world.command("AbortJob")
    world.settle()
    assert (world.phase, world.status["succeeded"]) == ("Aborted", 1)
    world.command("ResumeJob")
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, list(world.pods)) == ("Running", ["train-worker-1"])
    world.command("RestartJob")
    world.settle()
    world.admit()
    world.settle()
    assert list(world.pods) == ["train-worker-0", "train-worker-1"]
    assert "succeeded" not in world.status


def test_a_restarted_task_runs_its_completed_pods_again_and_others_do_not() -> None:
    worker = task("worker", 2, policies=[policy("PodFailed", "RestartTask")])
    world = running(task("ps", 1), worker, minAvailable=1)
    world.succeed("train-worker-0", "train-ps-0")
    world.settle()
    world.vanish("train-worker-0")
    world.vanish("train-ps-0")
    world.settle()
    world.fail("train-worker-1")
    world.settle()
    assert sorted(world.pods) == ["train-worker-0", "train-worker-1"]
    assert _noted(world, "pumice.dev/succeeded") == "ps/0"


def test_a_task_whose_pods_succeeded_and_are_gone_is_ready_and_complete() -> None:
    first = task("first", 2, policies=[policy("TaskCompleted", "CompleteJob")])
    second = task("second", 1, dependsOn={"name": ["first"]})
    world = running(first, second, minAvailable=2)
    world.run()
    world.settle()
    world.succeed("train-first-0")
    world.settle()
    world.vanish("train-first-0")
    world.vanish("train-second-0")
    world.settle()
    assert sorted(world.pods) == ["train-first-1", "train-second-0"]
    world.succeed("train-first-1")
    world.settle()
    assert world.phase == "Completed"


def test_an_eviction_for_which_a_policy_waits_is_noted_with_its_moment_until_the_pod_runs() -> None:
    """Also while the pod cannot be made, and when the one in its place goes as well."""
    worker = task("worker", 2, dependsOn={"name": ["first"]})
    policies = [policy("PodEvicted", "AbortJob", timeout="10s")]
    world = running(task("first", 1), worker, policies=policies, minAvailable=1)
    world.run()
    world.settle()
    world.now += 5
    world.vanish("train-first-0")
    world.vanish("train-worker-0")
    plan = world.look()
    assert {step.name for step in plan.steps if isinstance(step, RequireAbsent)} == {
        "train-first-0",
        "train-worker-0",
    }
    world.settle()
    assert sorted(world.pods) == ["train-first-0", "train-worker-1"], "worker waits for first"
    moment = "2027-01-15T08:00:05Z"
    assert _noted(world, "pumice.dev/evicted") == f"first/0@{moment} worker/0@{moment}"
    world.now += 5
    world.run("train-first-0")
    world.settle()
    assert _noted(world, "pumice.dev/evicted") == f"worker/0@{moment}"
    world.now += 5
    world.settle()
    assert world.phase == "Aborted"
    assert world.reason[1].startswith("pod train-worker-0 was removed and does not run again")


def _succeeds_and_goes(world: World, name: str) -> None:
    """A pod succeeds and is removed between two passes; the loop remembers that."""
    world.succeed(name)
    world.succeeded.append(world.pods[name])
    world.vanish(name)


def test_a_pod_that_succeeded_and_was_removed_between_two_passes_was_not_evicted() -> None:
    world = running(task("worker", 2), policies=[policy("PodEvicted", "TerminateJob")])
    _succeeds_and_goes(world, "train-worker-0")
    world.settle()
    assert (world.phase, list(world.pods)) == ("Running", ["train-worker-1"])
    assert world.status["succeeded"] == 1
    assert _noted(world, "pumice.dev/succeeded") == "worker/0"
    world.succeeded.clear()
    world.succeed("train-worker-1")
    world.settle()
    assert world.phase == "Completed"


def test_a_pod_of_an_earlier_incarnation_that_succeeded_runs_again() -> None:
    world = running(task("worker", 2), policies=[policy("PodFailed", "RestartJob")], maxRetry=9)
    world.fail("train-worker-1")
    world.look()
    _succeeds_and_goes(world, "train-worker-0")
    world.settle()
    world.admit()
    world.settle()
    assert sorted(world.pods) == ["train-worker-0", "train-worker-1"]
    assert world.status.get("succeeded", 0) == 0


def test_a_restarted_task_forgets_a_pod_that_succeeded_and_was_removed_between_two_passes() -> None:
    world = running(task("worker", 2), policies=[policy("PodFailed", "RestartTask")], maxRetry=9)
    _succeeds_and_goes(world, "train-worker-0")
    world.fail("train-worker-1")
    world.look()
    world.succeeded.clear()  # that was written
    world.settle()
    assert sorted(world.pods) == ["train-worker-0", "train-worker-1"]
    assert _noted(world, "pumice.dev/succeeded") == ""
