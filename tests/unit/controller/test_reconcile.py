"""The life of a Job, told as scenarios: something happens, the controller looks, this is how it stands."""

from typing import Any

import pytest

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import COMMAND, CONFIG_MAP, JOB, NETWORK_POLICY, POD, POD_GROUP, SERVICE
from pumice.controller.observed import Trouble
from pumice.controller.plan import CreateObject, DeleteObject, UpdateObject
from pumice.plugins import JobPlugin, PodEdits, Values, builtin
from tests.builders import job, task
from tests.unit.controller.world import START, World

Raw = dict[str, Any]


def _job(*tasks: Raw, **fields: Any) -> Raw:
    return job("train", list(tasks) or [task("worker", 2, cpu="1")], uid="u1", **fields)


def _running(*tasks: Raw, **fields: Any) -> World:
    """A Job whose pods all run."""
    world = World(_job(*tasks, **fields))
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert world.phase == "Running"
    return world


def _policy(event: str, action: str, **fields: Any) -> Raw:
    return {"event": event, "action": action} | fields


def _words(world: World) -> list[str]:
    return [event.reason for event in world.events]


# From nothing to the end


def test_pods_wait_until_the_scheduler_lets_the_group_enqueue() -> None:
    """XAC-6."""
    world = World(_job(plugins={"svc": []}))
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
    plan = World(_job(plugins={"svc": []})).plan()
    kinds = [type(step).__name__ for step in plan.steps]
    assert kinds == ["PatchStatus", *["CreateObject"] * 4]
    assert [step.kind.kind for step in plan.steps if isinstance(step, CreateObject)][
        -1
    ] == "PodGroup"


def test_a_job_runs_and_completes() -> None:
    world = _running()
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
    assert _words(world) == ["Running", "Completed"]


def test_a_finished_job_counts_the_pods_that_it_keeps() -> None:
    """XAC-10."""
    world = _running()
    world.succeed()
    world.settle()
    assert world.status["succeeded"] == 2
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.status["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}


def test_a_finished_job_leaves_nothing_but_finished_pods() -> None:
    """AC-1, AC-24."""
    world = _running(plugins={"svc": [], "env": []})
    assert world.status["controlledResources"] == {"plugin-env": "env", "plugin-svc": "svc"}
    world.succeed()
    world.settle()
    for kind in (SERVICE, CONFIG_MAP, NETWORK_POLICY, POD_GROUP):
        assert world.names(kind) == []
    assert "controlledResources" not in world.status


def test_what_the_plugins_made_stays_until_the_last_pod_is_gone() -> None:
    world = _running(plugins={"svc": []}, minSuccess=1)
    world.succeed("train-worker-0")
    for _ in range(4):
        world.look()
    assert (world.phase, world.status["terminating"]) == ("Completed", 1)
    assert world.names(SERVICE) == ["train"]
    world.settle()
    assert world.names(SERVICE) == []


def test_too_few_successes_fail_the_job_and_spare_the_failed_pods() -> None:
    world = _running()
    world.succeed("train-worker-0")
    world.fail("train-worker-1")
    world.settle()
    assert world.phase == "Failed"
    assert world.reason == ("TooFewSucceeded", "1 of 2 pods succeeded, 1 failed, minAvailable is 2")
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.events[-1].type == "Warning"


def test_a_job_completed_by_min_success_removes_what_still_runs() -> None:
    world = _running(minSuccess=1)
    world.succeed("train-worker-0")
    world.settle()
    assert (world.phase, world.names(POD)) == ("Completed", ["train-worker-0"])


def test_lost_pods_are_replaced_and_the_job_is_pending_meanwhile() -> None:
    world = _running()
    world.vanish("train-worker-1")
    world.settle()
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.phase == "Pending"
    world.run()
    world.settle()
    assert world.phase == "Running"


@pytest.mark.parametrize("steps", range(4))
def test_a_pass_over_a_settled_job_does_nothing(steps: int) -> None:
    world = World(_job(plugins={"svc": [], "env": []}))
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
    world = _running()
    world.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert list(world.plan().steps) == []


# Size


def test_a_job_that_grows_gets_the_next_pods() -> None:
    """AC-3."""
    world = _running()
    world.job["spec"]["tasks"][0]["replicas"] = 4
    world.settle()
    assert world.names(POD) == [f"train-worker-{index}" for index in range(4)]


def test_a_job_that_shrinks_loses_the_highest_first_and_marks_them() -> None:
    """XAC-7, with the mark that Volcano forgets."""
    world = _running(task("worker", 4), policies=[_policy("PodEvicted", "RestartJob")])
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
    world = _running()
    world.pods["train-worker-0"]["metadata"]["annotations"][keys.OUT_OF_SYNC] = "true"
    plan = world.look()
    assert [s.name for s in plan.steps if isinstance(s, DeleteObject)] == ["train-worker-0"]


def test_what_the_user_changes_reaches_the_group() -> None:
    world = _running()
    world.job["spec"]["priorityClassName"] = "urgent"
    world.settle()
    assert world.group is not None
    assert world.group["spec"]["priorityClassName"] == "urgent"
    assert world.group["status"]["phase"] == "Inqueue"


# Why it waits


def test_the_schedulers_reason_reaches_the_job() -> None:
    """AC-17."""
    world = World(_job())
    world.settle()
    world.condition("NotEnoughResources", "2/2 tasks in gang unschedulable: 0/3 nodes fit")
    world.settle()
    message = "2/2 tasks in gang unschedulable: 0/3 nodes fit"
    assert world.reason == ("NotEnoughResources", message)
    assert _words(world) == ["PodGroupPending"]
    assert world.events[0].message == f"PodGroup default:train unschedulable: {message}"


def test_a_name_that_somebody_else_has_is_reported_and_not_touched() -> None:
    world = World(_job(plugins={"svc": []}))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "train"},
        "spec": {"x": 1},
    }
    foreign = world.put(service)
    before = dict(foreign)
    world.settle()
    assert world.objects[SERVICE, "train"] == before
    word, sentence = world.reason
    assert word == "NameConflict"
    assert "Service train exists and does not belong to this Job" in sentence
    assert world.names(POD_GROUP) == []  # it would take a place in the queue for nothing
    assert _words(world) == ["NameConflict"]
    assert world.requeues
    del world.objects[SERVICE, "train"]
    world.settle()
    assert world.names(POD_GROUP) == ["train-u1"]


def test_no_pods_are_made_while_their_service_is_somebody_elses() -> None:
    """Their names would not resolve to them."""
    world = _running(plugins={"svc": []})
    del world.objects[SERVICE, "train"]
    world.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}})
    world.vanish("train-worker-1")
    world.settle()
    assert (world.reason[0], world.names(POD)) == ("NameConflict", ["train-worker-0"])


def test_a_pod_name_that_another_job_has_is_reported() -> None:
    """Job `a` with task `b-c` and Job `a-b` with task `c` want the same names."""
    world = World(_job())
    world.settle()
    world.admit()
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-worker-1",
            "labels": {keys.JOB_NAME: "train"},
            "ownerReferences": [{"kind": "Job", "name": "other", "uid": "u9", "controller": True}],
        },
    }
    world.put(stranger)
    world.settle()
    assert world.names(POD) == ["train-worker-0", "train-worker-1"]
    assert world.reason[0] == "NameConflict"
    assert "Pod train-worker-1" in world.reason[1]
    assert "Job other" in world.reason[1]
    assert world.status["pending"] == 1


def test_a_pod_of_an_earlier_job_that_is_leaving_is_waited_for() -> None:
    world = World(_job())
    world.settle()
    world.admit()
    metadata = {
        "name": "train-worker-1",
        "labels": {keys.JOB_NAME: "train"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    world.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    world.look()
    world.look()
    assert world.reason[0] == "PodsPending"
    world.reap()
    world.settle()
    assert world.status["pending"] == 2


def test_what_the_api_server_refuses_stands_in_the_status() -> None:
    world = World(_job())
    world.settle()
    world.trouble = Trouble("FailedCreate", "pods are forbidden: exceeded quota")
    world.settle()
    assert world.reason == ("FailedCreate", "pods are forbidden: exceeded quota")
    assert _words(world) == ["FailedCreate"]
    world.trouble = None
    world.settle()
    assert world.reason[0] == "PodGroupPending"


def test_an_unknown_plugin_stops_the_job_before_it_takes_anything() -> None:
    world = World(_job(plugins={"tensorflw": []}))
    world.settle()
    assert world.reason[0] == "PluginError"
    assert "tensorflw" in world.reason[1]
    assert world.names(POD_GROUP) == []
    assert _words(world) == ["PluginError"]


def test_doubtful_arguments_are_told_once() -> None:
    """W-01: Volcano writes them to its log."""
    world = World(_job(plugins={"svc": ["--publish-not-ready-addresses=maybe"]}))
    world.settle()
    (event,) = world.events
    assert (event.type, event.reason) == ("Warning", "PluginArgument")
    assert event.message.startswith("spec.plugins.svc[0]: ")
    assert world.names(POD_GROUP) == ["train-u1"]


class _Stumbling(JobPlugin):
    """A plugin with a mistake in it, where it is asked for objects or for edits."""

    name = "stumbling"
    summary = "Divides by zero."

    def __init__(self, where: str) -> None:
        self.where = where

    def objects(self, job: Job, values: Values) -> list[Raw]:
        return [{"oops": 1 // 0}] if self.where == "objects" else []

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        return PodEdits(labels={"share": str(1 // 0)})


@pytest.mark.parametrize("where", ["objects", "edits"])
def test_a_plugin_that_stumbles_is_reported(where: str) -> None:
    registry = builtin().with_plugin(_Stumbling(where), "here")
    world = World(_job(plugins={"stumbling": []}), registry=registry)
    world.settle()
    if where == "edits":
        world.admit()
        world.settle()
    word, sentence = world.reason
    assert word == "PluginError"
    assert sentence.startswith("a plugin failed with ZeroDivisionError: ")
    assert world.names(POD) == []


def test_a_job_that_cannot_be_used_says_so_once() -> None:
    world = World(_job() | {"spec": {"tasks": []}})
    world.settle()
    assert world.phase == "Pending"
    assert world.reason[0] == "InvalidJob"
    assert _words(world) == ["InvalidJob"]
    assert list(world.objects) == [(JOB, "train")]


def test_a_task_that_waits_for_another_gets_its_pods_later() -> None:
    """XAC-6 to 8 of the launch order; the gang counts only what may start."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    world = World(_job(task("master", 1), worker))
    world.settle()
    assert world.group is not None
    assert world.group["spec"]["minMember"] == 1
    world.admit()
    world.settle()
    assert world.names(POD) == ["train-master-0"]
    assert world.reason == ("DependsOn", "task worker waits for task master (0 of 1 pods ready)")
    world.run()
    world.settle()
    assert len(world.pods) == 4
    assert world.group["spec"]["minMember"] == 4
    assert world.group["spec"]["minTaskMember"] == {"master": 1, "worker": 3}
    world.run()
    world.settle()
    assert world.phase == "Running"


def test_a_task_that_has_started_counts_even_if_what_it_waited_for_is_gone() -> None:
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    world = _running(task("master", 1), worker, minAvailable=1)
    world.run()
    world.settle()
    world.vanish("train-master-0")
    world.vanish("train-worker-2")
    world.look()
    world.look()
    assert world.names(POD) == ["train-master-0", "train-worker-0", "train-worker-1"]
    assert world.group is not None
    assert world.group["spec"]["minTaskMember"] == {"master": 1, "worker": 3}


# Commands


def test_abort_and_resume() -> None:
    world = _running(plugins={"svc": []})
    world.succeed("train-worker-0")
    world.command("AbortJob", message="tired of it")
    world.settle()
    assert world.phase == "Aborted"
    assert world.reason == ("AbortJob", "Command train-abortjob: tired of it")
    assert (world.names(POD), world.names(POD_GROUP), world.names(SERVICE)) == (
        ["train-worker-0"],
        [],
        [],
    )
    assert world.names(COMMAND) == []
    assert _words(world)[-2:] == ["CommandIssued", "Aborted"]

    assert "runningDuration" in world.status
    world.command("ResumeJob")
    world.settle()
    assert world.phase == "Pending"
    assert world.status["retryCount"] == 1
    assert "runningDuration" not in world.status
    assert world.names(POD) == ["train-worker-0"]
    assert world.names(SERVICE) == ["train"]
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, world.status["succeeded"], world.status["running"]) == ("Running", 1, 1)


@pytest.mark.parametrize(
    ("action", "phase"), [("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_ends_by_command(action: str, phase: str) -> None:
    world = _running()
    world.command(action)
    world.settle()
    assert (world.phase, world.names(POD)) == (phase, [])
    assert world.reason == (action, f"Command train-{action.lower()}")


def test_an_intention_is_written_before_anything_is_removed() -> None:
    world = _running()
    world.command("AbortJob")
    first = world.look()
    assert [type(step).__name__ for step in first.steps] == [
        "PatchStatus",
        "RecordEvent",
        "DeleteObject",
    ]
    assert (world.phase, world.names(COMMAND), len(world.pods)) == ("Aborting", [], 2)


def test_commands_are_carried_out_one_after_the_other() -> None:
    world = _running()
    world.command("AbortJob", "first")
    world.command("ResumeJob", "second")
    world.settle()
    assert world.phase == "Pending"
    assert world.status["retryCount"] == 1


def test_a_command_without_effect_is_told_and_deleted() -> None:
    world = _running()
    world.command("ResumeJob")
    world.settle()
    assert (world.phase, world.names(COMMAND)) == ("Running", [])
    assert "no effect" in world.events[-1].message


def test_a_command_that_is_refused_is_told_and_deleted() -> None:
    world = _running()
    world.command("Explode")
    world.settle()
    assert world.names(COMMAND) == []
    assert (world.events[-1].type, world.events[-1].reason) == ("Warning", "CommandRefused")


def test_an_abort_during_a_restart_is_obeyed() -> None:
    """XAC-10 of the state machine: Volcano forgets it."""
    world = _running()
    world.command("RestartJob")
    world.look()
    assert world.phase == "Restarting"
    world.command("AbortJob")
    world.settle()
    assert world.phase == "Aborted"
    assert "pumice.dev/restart" not in world.status["controlledResources"]


# Policies


def test_a_failed_pod_restarts_the_job() -> None:
    world = _running(policies=[_policy("PodFailed", "RestartJob")], plugins={"svc": []})
    service = world.objects[SERVICE, "train"]["metadata"]["uid"]
    group = world.objects[POD_GROUP, "train-u1"]["metadata"]["uid"]
    first = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.fail("train-worker-0", exit_code=3)
    world.settle()
    assert world.phase == "Pending"
    assert (world.status["version"], world.status["retryCount"]) == (1, 1)
    assert world.names(POD) == []  # the group must enqueue anew
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
    world = _running(policies=[_policy("PodFailed", "RestartJob")])
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
    world = _running(policies=[_policy("PodFailed", "RestartJob")], maxRetry=1)
    world.fail("train-worker-0")
    world.settle()
    assert world.phase == "Failed"
    assert world.reason == ("RetriesExhausted", "restarted 1 times, maxRetry is 1")
    assert world.names(POD) == ["train-worker-0"]


def test_exit_codes_choose() -> None:
    policies = [{"exitCode": 3, "action": "AbortJob"}, _policy("PodFailed", "RestartJob")]
    world = _running(policies=policies)
    world.fail("train-worker-0", exit_code=3)
    world.settle()
    assert world.phase == "Aborted"


def test_a_failure_that_was_dealt_with_does_not_strike_again_after_a_resume() -> None:
    world = _running(policies=[_policy("PodFailed", "AbortJob")])
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
        policies=[_policy("PodFailed", action)],
    )
    world = _running(task("ps", 1), worker)
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    world.fail("train-worker-0")
    world.settle()
    if action == "RestartJob":
        world.admit()
        world.settle()
    assert len(world.pods) == 5
    kept = [name for name, pod in world.pods.items() if pod["metadata"]["uid"] == before[name]]
    assert kept == survivors
    assert world.status["retryCount"] == 1


def test_an_evicted_pod_counts_once() -> None:
    policies = [_policy("PodEvicted", "RestartPod")]
    world = _running(policies=policies)
    world.evict("train-worker-0")
    for _ in range(6):
        world.look()
    assert world.status["retryCount"] == 1
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, world.status["retryCount"]) == ("Running", 1)


def test_a_pod_that_vanished_was_evicted_too() -> None:
    world = _running(policies=[_policy("PodEvicted", "TerminateJob")])
    world.vanish("train-worker-0")
    world.settle()
    assert world.phase == "Terminated"


def test_the_controllers_own_removals_are_no_evictions() -> None:
    world = _running(
        policies=[_policy("PodEvicted", "TerminateJob"), _policy("PodFailed", "RestartJob")]
    )
    world.fail("train-worker-0")
    world.settle()
    assert world.phase == "Pending"


def test_a_restarted_pod_that_takes_its_time_to_end_is_no_eviction() -> None:
    policies = [_policy("PodEvicted", "TerminateJob"), _policy("PodFailed", "RestartPod")]
    world = _running(minAvailable=1, policies=policies)
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
    chief = task("chief", 1, policies=[_policy("TaskCompleted", "CompleteJob")])
    world = _running(chief, task("worker", 2))
    world.succeed("train-chief-0")
    world.settle()
    assert (world.phase, world.names(POD)) == ("Completed", ["train-chief-0"])
    assert world.reason == ("CompleteJob", "task chief is complete (spec.tasks[0].policies[0])")


def test_containers_that_restart_too_often_fail_their_task() -> None:
    """XEV-5."""
    world = _running(policies=[_policy("TaskFailed", "TerminateJob")])
    statuses = world.pods["train-worker-0"]["status"]["containerStatuses"]
    statuses[0]["restartCount"] = 2
    world.settle()
    assert world.phase == "Running"
    world.pods["train-worker-1"]["status"]["initContainerStatuses"] = [{"restartCount": 1}]
    world.settle()
    assert world.phase == "Terminated"


def test_a_gang_that_is_torn_restarts() -> None:
    """XPO-8, and only once: Volcano's policy never fires after the first restart."""
    world = _running(policies=[_policy("Unknown", "RestartJob")], maxRetry=5)
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
    world = World(_job(policies=[_policy("PodPending", "AbortJob", timeout="10s")]))
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

    calm = World(_job(policies=[_policy("PodPending", "AbortJob", timeout="10s")]))
    calm.settle()
    calm.admit()
    calm.settle()
    calm.run()
    calm.now += 1000
    calm.settle()
    assert calm.phase == "Running"


# The end of the end


def test_a_finished_job_is_deleted_when_its_time_is_over() -> None:
    """GC-1 to GC-5, XGC-3."""
    world = _running(ttlSecondsAfterFinished=60)
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
    world = _running(ttlSecondsAfterFinished=0)
    world.command("AbortJob")
    world.settle()
    world.now += 1000
    assert list(world.plan().steps) == []


def test_fields_of_the_status_that_are_not_known_survive() -> None:
    world = World(_job())
    world.job["status"] = {"fieldOfTheFuture": 1}
    world.settle()
    assert world.status["fieldOfTheFuture"] == 1


def test_a_transition_time_moves_only_with_the_phase() -> None:
    world = World(_job())
    world.settle()
    since = world.status["state"]["lastTransitionTime"]
    world.now += 100
    world.condition("NotEnoughResources", "no room")
    world.settle()
    assert world.status["state"]["reason"] == "NotEnoughResources"
    assert world.status["state"]["lastTransitionTime"] == since
