"""The life of a Job that nobody disturbs: from nothing to the end, and as it grows and shrinks."""

import pytest

from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, POD, POD_GROUP, SERVICE
from pumice.api.meta import format_time
from pumice.controller.plan import CreateObject, DeleteObject, UpdateObject
from tests.kit.builders import task
from tests.unit.controller.scenes import a_job, policy, running, words
from tests.unit.controller.world import World


def test_pods_wait_until_the_scheduler_lets_the_group_enqueue() -> None:
    """XAC-6."""
    world = World(a_job(plugins={"svc": []}))
    world.settle()
    assert (world.phase, world.names(POD)) == ("Pending", [])
    assert world.names(POD_GROUP) == ["train-u1"]
    assert (world.names(SERVICE), world.names(CONFIG_MAP)) == (["train"], ["train-svc"])
    assert world.names(NETWORK_POLICY) == ["train"]
    assert world.reason == (
        "PodGroupPending",
        "waiting for the scheduler to let the Job into queue default",
    )
    world.admit("Pending")
    world.settle()
    assert world.names(POD) == []
    world.admit()
    world.settle()
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.reason == ("PodsPending", "2 of 2 pods do not run yet")


def test_the_first_pass_writes_the_status_before_anything_is_made() -> None:
    plan = World(a_job(plugins={"svc": []})).plan()
    kinds = [type(step).__name__ for step in plan.steps]
    assert kinds == ["PatchStatus", *["CreateObject"] * 4]
    assert [step.kind.kind for step in plan.steps if isinstance(step, CreateObject)][
        -1
    ] == "PodGroup"


def test_a_job_runs_and_completes() -> None:
    world = running()
    assert world.status["running"] == 2
    assert world.status["taskStatusCount"] == {"worker": {"phase": {"Running": 2}}}
    assert world.status["minAvailable"] == 2
    assert world.reason == ("", "")
    world.now += 90
    world.succeed()
    world.settle()
    assert world.phase == "Completed"
    assert world.reason == ("PodsSucceeded", "2 of 2 pods succeeded, 0 failed")
    assert world.status["runningDuration"] == "1m30s"
    assert [each["status"] for each in world.status["conditions"]] == [
        "Pending",
        "Running",
        "Completed",
    ]
    assert words(world) == ["Running", "Completed"]


def test_a_finished_job_counts_the_pods_that_it_keeps() -> None:
    """XAC-10."""
    world = running()
    world.succeed()
    world.settle()
    assert world.status["succeeded"] == 2
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.status["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}


def test_a_finished_job_leaves_nothing_but_finished_pods() -> None:
    """AC-1, AC-24."""
    world = running(plugins={"svc": [], "env": []})
    assert {"plugin-env", "plugin-svc"} <= world.status["controlledResources"].keys()
    world.succeed()
    world.settle()
    for kind in (SERVICE, CONFIG_MAP, NETWORK_POLICY, POD_GROUP):
        assert world.names(kind) == []
    assert world.status["controlledResources"] == {
        "pumice.dev/startTime": format_time(world.now),
        "pumice.dev/completionTime": format_time(world.now),
        "pumice.dev/succeeded": "worker/0-1",
    }


def test_what_the_plugins_made_stays_until_the_last_pod_is_gone() -> None:
    world = running(plugins={"svc": []}, minSuccess=1)
    world.succeed("train-worker-0")
    for _ in range(4):
        world.look()
    assert (world.phase, world.status["terminating"]) == ("Completed", 1)
    assert world.names(SERVICE) == ["train"]
    world.settle()
    assert world.names(SERVICE) == []


def test_too_few_successes_fail_the_job_and_spare_the_failed_pods() -> None:
    world = running()
    world.succeed("train-worker-0")
    world.fail("train-worker-1")
    world.settle()
    assert world.phase == "Failed"
    assert world.reason == ("TooFewSucceeded", "1 of 2 pods succeeded, 1 failed, minAvailable is 2")
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.events[-1].type == "Warning"


def test_a_job_completed_by_min_success_removes_what_still_runs() -> None:
    world = running(minSuccess=1)
    world.succeed("train-worker-0")
    world.settle()
    assert (world.phase, world.names(POD)) == ("Completed", ["train-worker-0"])


def test_lost_pods_are_replaced_and_the_job_is_pending_meanwhile() -> None:
    world = running()
    world.vanish("train-worker-1")
    world.settle()
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.phase == "Pending"
    world.run()
    world.settle()
    assert world.phase == "Running"


@pytest.mark.parametrize("steps", range(4))
def test_a_pass_over_a_settled_job_does_nothing(steps: int) -> None:
    world = World(a_job(plugins={"svc": [], "env": []}))
    world.settle()
    for happens in (world.admit, world.run, world.succeed)[:steps]:
        happens()
        world.settle()
    before = (world.writes, len(world.events))
    world.now += 1000
    assert not world.plan()
    world.look()
    assert (world.writes, len(world.events)) == before


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    world = running()
    world.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert list(world.plan().steps) == []


def test_a_job_that_grows_gets_the_next_pods() -> None:
    """AC-3."""
    world = running()
    world.job["spec"]["tasks"][0]["replicas"] = 4
    world.settle()
    assert world.names(POD) == [f"train-worker-{index}" for index in range(4)]


def test_a_job_that_shrinks_loses_the_highest_first_and_marks_them() -> None:
    """XAC-7, with the mark that Volcano forgets."""
    world = running(task("worker", 4), policies=[policy("PodEvicted", "RestartJob")])
    world.job["spec"]["tasks"][0]["replicas"] = 2
    plan = world.look()
    deletes = [step.name for step in plan.steps if isinstance(step, DeleteObject)]
    assert deletes == ["train-worker-3", "train-worker-2"]
    marked = [
        step.name for step in plan.steps if isinstance(step, UpdateObject) and step.kind == POD
    ]
    assert marked == deletes
    world.settle()
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert (world.phase, world.status.get("retryCount", 0)) == ("Running", 0)


def test_a_pod_that_was_marked_and_not_removed_is_removed_later() -> None:
    """XAC-8."""
    world = running()
    world.pods["train-worker-0"]["metadata"]["annotations"][keys.OUT_OF_SYNC] = "true"
    plan = world.look()
    assert [s.name for s in plan.steps if isinstance(s, DeleteObject)] == ["train-worker-0"]


def test_a_group_stays_in_the_queue_that_its_namespace_gave_it() -> None:
    """Admission writes it over `default`, which the Job says where its user chose none."""
    world = World(a_job(queue="default"))
    world.look()
    world.look()
    assert world.group is not None
    world.group["spec"]["queue"] = "research"
    world.settle()
    assert not world.plan()
    assert world.group["spec"]["queue"] == "research"
    assert world.reason[1] == "waiting for the scheduler to let the Job into queue research"
    world.job["spec"]["queue"] = "other"
    world.settle()
    assert world.group["spec"]["queue"] == "other"


def test_a_job_that_shrinks_gives_back_the_config_maps_that_it_needs_no_more() -> None:
    tasks = [task("w" * 60 + str(number), 7_000) for number in range(2)]
    world = World(a_job(*tasks, plugins={"svc": []}))
    world.settle()
    assert world.names(CONFIG_MAP) == ["train-svc", "train-svc-1"]
    world.job["spec"]["tasks"][0]["replicas"] = 2
    plan = world.look()
    kinds = [type(step) for step in plan.steps if getattr(step, "kind", None) == CONFIG_MAP]
    assert kinds == [UpdateObject, DeleteObject], "what is left has moved before the rest goes"
    world.settle()
    assert world.names(CONFIG_MAP) == ["train-svc"]
    assert not world.plan()
    world.job["spec"]["tasks"][0]["replicas"] = 7_000
    world.settle()
    assert world.names(CONFIG_MAP) == ["train-svc", "train-svc-1"]


def test_what_the_user_changes_reaches_the_group() -> None:
    world = running()
    world.job["spec"]["priorityClassName"] = "urgent"
    world.settle()
    assert world.group is not None
    assert world.group["spec"]["priorityClassName"] == "urgent"
    assert world.group["status"]["phase"] == "Inqueue"


def test_a_finished_job_is_deleted_when_its_time_is_over() -> None:
    """GC-1 to GC-5, XGC-3."""
    world = running(ttlSecondsAfterFinished=60)
    world.succeed()
    world.settle()
    assert world.requeues[-1] == 60
    world.now += 59
    assert world.names(JOB) == ["train"]
    world.now += 1
    (step,) = world.plan().steps
    assert isinstance(step, DeleteObject)
    assert (step.kind, step.uid, step.propagation) == (JOB, "u1", "Foreground")
    assert step.resource_version == world.job["metadata"]["resourceVersion"]


def test_an_aborted_job_is_kept_whatever_its_time_to_live() -> None:
    """XGC-1."""
    world = running(ttlSecondsAfterFinished=0)
    world.command("AbortJob")
    world.settle()
    world.now += 1000
    assert list(world.plan().steps) == []


def test_fields_of_the_status_that_are_not_known_survive() -> None:
    world = World(a_job())
    world.job["status"] = {"fieldOfTheFuture": 1}
    world.settle()
    assert world.status["fieldOfTheFuture"] == 1


def test_a_transition_time_moves_only_with_the_phase() -> None:
    world = World(a_job())
    world.settle()
    since = world.status["state"]["lastTransitionTime"]
    world.now += 100
    world.condition("NotEnoughResources", "no room")
    world.settle()
    assert world.status["state"]["reason"] == "NotEnoughResources"
    assert world.status["state"]["lastTransitionTime"] == since


def test_a_job_that_finishes_makes_no_pod_in_the_same_pass() -> None:
    world = running(task("worker", 3), minSuccess=1)
    world.succeed("train-worker-0")
    world.vanish("train-worker-1")
    plan = world.look()
    assert world.phase == "Completed"
    assert not [step for step in plan.steps if isinstance(step, CreateObject)]
