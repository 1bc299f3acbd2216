"""The life of a Job that nobody disturbs: from nothing to the end, and as it grows and shrinks."""

import pytest

from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, POD, POD_GROUP, SERVICE
from pumice.api.meta import format_time
from pumice.controller.plan import CreateObject, DeleteObject, UpdateObject
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy, running, words


def test_pods_wait_until_the_scheduler_lets_the_group_enqueue() -> None:
    """XAC-6."""
    cluster = FakeCluster(a_job(plugins={"svc": []}))
    cluster.settle()
    assert (cluster.phase, cluster.names(POD)) == ("Pending", [])
    assert cluster.names(POD_GROUP) == ["train-u1"]
    assert (cluster.names(SERVICE), cluster.names(CONFIG_MAP)) == (["train"], ["train-svc"])
    assert cluster.names(NETWORK_POLICY) == ["train"]
    assert cluster.reason == (
        "PodGroupPending",
        "waiting for the scheduler to let the Job into queue default",
    )
    cluster.admit("Pending")
    cluster.settle()
    assert cluster.names(POD) == []
    cluster.admit()
    cluster.settle()
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert cluster.reason == ("PodsPending", "2 of 2 pods do not run yet")


def test_the_first_pass_writes_the_status_before_anything_is_made() -> None:
    plan = FakeCluster(a_job(plugins={"svc": []})).plan()
    kinds = [type(step).__name__ for step in plan.steps]
    assert kinds == ["PatchStatus", *["CreateObject"] * 4]
    assert [step.kind.kind for step in plan.steps if isinstance(step, CreateObject)][
        -1
    ] == "PodGroup"


def test_a_job_runs_and_completes() -> None:
    cluster = running()
    assert cluster.status["running"] == 2
    assert cluster.status["taskStatusCount"] == {"worker": {"phase": {"Running": 2}}}
    assert cluster.status["minAvailable"] == 2
    assert cluster.reason == ("", "")
    cluster.now += 90
    cluster.succeed()
    cluster.settle()
    assert cluster.phase == "Completed"
    assert cluster.reason == ("PodsSucceeded", "2 of 2 pods succeeded, 0 failed")
    assert cluster.status["runningDuration"] == "1m30s"
    assert [each["status"] for each in cluster.status["conditions"]] == [
        "Pending",
        "Running",
        "Completed",
    ]
    assert words(cluster) == ["Running", "Completed"]


def _moments(cluster: FakeCluster) -> tuple[str | None, str | None]:
    noted = cluster.status["controlledResources"]
    return noted.get("pumice.dev/startTime"), noted.get("pumice.dev/completionTime")


@pytest.mark.parametrize("again", ["RestartJob", "ResumeJob"])
def test_when_a_job_began_is_noted_until_all_of_it_begins_again(again: str) -> None:
    cluster = running(policies=[policy("PodFailed", "RestartPod")])
    began = format_time(cluster.now)
    cluster.now += 10
    cluster.fail("train-worker-0")
    cluster.settle()
    assert cluster.phase == "Pending"
    cluster.run()
    cluster.settle()
    assert (cluster.phase, *_moments(cluster)) == ("Running", began, None)
    if again == "ResumeJob":
        cluster.command("AbortJob")
        cluster.settle()
        assert _moments(cluster) == (began, None)
    cluster.command(again)
    cluster.settle()
    assert (cluster.phase, *_moments(cluster)) == ("Pending", None, None)
    cluster.now += 10
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    began = format_time(cluster.now)
    cluster.now += 10
    cluster.succeed()
    cluster.settle()
    assert _moments(cluster) == (began, format_time(cluster.now))
    assert cluster.status["runningDuration"] == "10s"


@pytest.mark.parametrize("again", ["RestartJob", "ResumeJob"])
def test_a_job_that_did_not_run_again_has_no_running_time(again: str) -> None:
    cluster = running()
    for action in ("AbortJob", again) if again == "ResumeJob" else (again,):
        cluster.command(action)
        cluster.settle()
    cluster.now += 10
    cluster.command("AbortJob", name="again")
    cluster.settle()
    assert cluster.phase == "Aborted"
    assert "runningDuration" not in cluster.status


def test_a_finished_job_counts_the_pods_that_it_keeps() -> None:
    """XAC-10."""
    cluster = running()
    cluster.succeed()
    cluster.settle()
    assert cluster.status["succeeded"] == 2
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert cluster.status["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}


def test_a_finished_job_leaves_nothing_but_finished_pods() -> None:
    """AC-1, AC-24."""
    cluster = running(plugins={"svc": [], "env": []})
    assert {"plugin-env", "plugin-svc"} <= cluster.status["controlledResources"].keys()
    cluster.succeed()
    cluster.settle()
    for kind in (SERVICE, CONFIG_MAP, NETWORK_POLICY, POD_GROUP):
        assert cluster.names(kind) == []
    assert cluster.status["controlledResources"] == {
        "pumice.dev/startTime": format_time(cluster.now),
        "pumice.dev/completionTime": format_time(cluster.now),
        "pumice.dev/succeeded": "worker/0-1",
    }


def test_what_the_plugins_made_stays_until_the_last_pod_is_gone() -> None:
    cluster = running(plugins={"svc": []}, minSuccess=1)
    cluster.succeed("train-worker-0")
    for _ in range(4):
        cluster.look()
    assert (cluster.phase, cluster.status["terminating"]) == ("Completed", 1)
    assert cluster.names(SERVICE) == ["train"]
    cluster.settle()
    assert cluster.names(SERVICE) == []


def test_too_few_successes_fail_the_job_and_spare_the_failed_pods() -> None:
    cluster = running()
    cluster.succeed("train-worker-0")
    cluster.fail("train-worker-1")
    cluster.settle()
    assert cluster.phase == "Failed"
    assert cluster.reason == (
        "TooFewSucceeded",
        (
            "1 of 2 pods succeeded, 1 failed, minAvailable is 2; task worker: pod train-worker-1 failed"
            " with exit code 1"
        ),
    )
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert cluster.events[-1].type == "Warning"


def test_a_job_completed_by_min_success_removes_what_still_runs() -> None:
    cluster = running(minSuccess=1)
    cluster.succeed("train-worker-0")
    cluster.settle()
    assert (cluster.phase, cluster.names(POD)) == ("Completed", ["train-worker-0"])


def test_lost_pods_are_replaced_and_the_job_is_pending_meanwhile() -> None:
    cluster = running()
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert cluster.phase == "Pending"
    cluster.run()
    cluster.settle()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("steps", range(4))
def test_a_pass_over_a_settled_job_does_nothing(steps: int) -> None:
    cluster = FakeCluster(a_job(plugins={"svc": [], "env": []}))
    cluster.settle()
    for happens in (cluster.admit, cluster.run, cluster.succeed)[:steps]:
        happens()
        cluster.settle()
    before = (cluster.writes, len(cluster.events))
    cluster.now += 1000
    assert not cluster.plan()
    cluster.look()
    assert (cluster.writes, len(cluster.events)) == before


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    cluster = running()
    cluster.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert list(cluster.plan().steps) == []


def test_a_job_that_grows_gets_the_next_pods() -> None:
    """AC-3."""
    cluster = running()
    cluster.job["spec"]["tasks"][0]["replicas"] = 4
    cluster.settle()
    assert cluster.names(POD) == [f"train-worker-{index}" for index in range(4)]


def test_a_job_that_shrinks_loses_the_highest_first_and_marks_them() -> None:
    """XAC-7, with the mark that Volcano forgets."""
    cluster = running(task("worker", 4), policies=[policy("PodEvicted", "RestartJob")])
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    plan = cluster.look()
    deletes = [step.name for step in plan.steps if isinstance(step, DeleteObject)]
    assert deletes == ["train-worker-3", "train-worker-2"]
    marked = [
        step.name for step in plan.steps if isinstance(step, UpdateObject) and step.kind == POD
    ]
    assert marked == deletes
    cluster.settle()
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert (cluster.phase, cluster.status.get("retryCount", 0)) == ("Running", 0)


def test_a_restart_does_not_wait_for_a_pod_that_is_scaled_away() -> None:
    policies = [policy("PodFailed", "RestartPod")]
    cluster = running(task("worker", 3), minAvailable=2, policies=policies)
    cluster.evict("train-worker-2")  # its node is dead, so it stays
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    cluster.look()
    cluster.fail("train-worker-0")
    cluster.look()
    cluster.look()
    cluster.reap("train-worker-0")
    cluster.look()
    assert cluster.phase == "Pending"
    cluster.look()
    assert "train-worker-0" in cluster.pods


def test_what_is_said_of_a_job_does_not_count_pods_that_are_scaled_away() -> None:
    cluster = FakeCluster(a_job(task("worker", 4), minAvailable=2))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    cluster.look()
    assert cluster.reason == ("PodsPending", "2 of 2 pods do not run yet")
    cluster.run()
    cluster.settle()
    assert [each.message for each in cluster.events] == ["2 of 2 pods run"]


def test_a_job_is_aborted_only_when_also_pods_that_are_scaled_away_are_gone() -> None:
    cluster = running(task("worker", 3), minAvailable=2)
    cluster.evict("train-worker-2")
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    cluster.command("AbortJob")
    cluster.look()
    cluster.look()
    cluster.reap("train-worker-0", "train-worker-1")
    cluster.look()
    assert cluster.phase == "Aborting"
    cluster.settle()
    assert cluster.phase == "Aborted"


def test_a_pod_that_was_marked_and_not_removed_is_removed_later() -> None:
    """XAC-8."""
    cluster = running()
    cluster.pods["train-worker-0"]["metadata"]["annotations"][keys.OUT_OF_SYNC] = "true"
    plan = cluster.look()
    assert [s.name for s in plan.steps if isinstance(s, DeleteObject)] == ["train-worker-0"]


def test_a_group_stays_in_the_queue_that_its_namespace_gave_it() -> None:
    """Admission writes it over `default`, which the Job says where its user chose none."""
    cluster = FakeCluster(a_job(queue="default"))
    cluster.look()
    cluster.look()
    assert cluster.group is not None
    cluster.group["spec"]["queue"] = "research"
    cluster.settle()
    assert not cluster.plan()
    assert cluster.group["spec"]["queue"] == "research"
    assert cluster.reason[1] == "waiting for the scheduler to let the Job into queue research"
    cluster.job["spec"]["queue"] = "other"
    cluster.settle()
    assert cluster.group["spec"]["queue"] == "other"


def test_a_job_that_shrinks_gives_back_the_config_maps_that_it_needs_no_more() -> None:
    tasks = [task("w" * 60 + str(number), 7_000) for number in range(2)]
    cluster = FakeCluster(a_job(*tasks, plugins={"svc": []}))
    cluster.settle()
    assert cluster.names(CONFIG_MAP) == ["train-svc", "train-svc-1"]
    cluster.job["spec"]["tasks"][0]["replicas"] = 2
    plan = cluster.look()
    kinds = [type(step) for step in plan.steps if getattr(step, "kind", None) == CONFIG_MAP]
    assert kinds == [UpdateObject, DeleteObject], "what is left has moved before the rest goes"
    cluster.settle()
    assert cluster.names(CONFIG_MAP) == ["train-svc"]
    assert not cluster.plan()
    cluster.job["spec"]["tasks"][0]["replicas"] = 7_000
    cluster.settle()
    assert cluster.names(CONFIG_MAP) == ["train-svc", "train-svc-1"]


def test_what_the_user_changes_reaches_the_group() -> None:
    cluster = running()
    cluster.job["spec"]["priorityClassName"] = "urgent"
    cluster.settle()
    assert cluster.group is not None
    assert cluster.group["spec"]["priorityClassName"] == "urgent"
    assert cluster.group["status"]["phase"] == "Inqueue"


def test_a_finished_job_is_deleted_when_its_time_is_over() -> None:
    """GC-1 to GC-5, XGC-3."""
    cluster = running(ttlSecondsAfterFinished=60)
    cluster.succeed()
    cluster.settle()
    assert cluster.requeues[-1] == 60
    cluster.now += 59
    assert cluster.names(JOB) == ["train"]
    cluster.now += 1
    (step,) = cluster.plan().steps
    assert isinstance(step, DeleteObject)
    assert (step.kind, step.uid, step.propagation) == (JOB, "u1", "Foreground")
    assert step.resource_version == cluster.job["metadata"]["resourceVersion"]


def test_an_aborted_job_is_kept_whatever_its_time_to_live() -> None:
    """XGC-1."""
    cluster = running(ttlSecondsAfterFinished=0)
    cluster.command("AbortJob")
    cluster.settle()
    cluster.now += 1000
    assert list(cluster.plan().steps) == []


def test_fields_of_the_status_that_are_not_known_survive() -> None:
    cluster = FakeCluster(a_job())
    cluster.job["status"] = {"fieldOfTheFuture": 1}
    cluster.settle()
    assert cluster.status["fieldOfTheFuture"] == 1


def test_a_transition_time_moves_only_with_the_phase() -> None:
    cluster = FakeCluster(a_job())
    cluster.settle()
    since = cluster.status["state"]["lastTransitionTime"]
    cluster.now += 100
    cluster.condition("NotEnoughResources", "no room")
    cluster.settle()
    assert cluster.status["state"]["reason"] == "NotEnoughResources"
    assert cluster.status["state"]["lastTransitionTime"] == since


def test_a_job_that_finishes_makes_no_pod_in_the_same_pass() -> None:
    cluster = running(task("worker", 3), minSuccess=1)
    cluster.succeed("train-worker-0")
    cluster.vanish("train-worker-1")
    plan = cluster.look()
    assert cluster.phase == "Completed"
    assert not [step for step in plan.steps if isinstance(step, CreateObject)]
