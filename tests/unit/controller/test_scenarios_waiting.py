"""A Job that waits or cannot go on says why, and touches nothing that is not its own."""

import msgspec
import pytest

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import JOB, POD, POD_GROUP, SERVICE
from pumice.api.meta import format_time
from pumice.api.queues import Queue
from pumice.controller.jobs.observed import PlanFailure
from pumice.controller.jobs.sync import CONFLICT_SECONDS
from pumice.plugins import JobPlugin, PodEdits, Values, builtin
from tests.kit.builders import queue, task
from tests.unit.controller.scenes import Raw, a_job, running, words
from tests.unit.controller.world import World


def test_the_schedulers_reason_reaches_the_job() -> None:
    """AC-17."""
    world = World(a_job())
    world.settle()
    world.condition("NotEnoughResources", "2/2 tasks in gang unschedulable: 0/3 nodes fit")
    world.settle()
    message = "2/2 tasks in gang unschedulable: 0/3 nodes fit"
    assert world.reason == ("NotEnoughResources", message)
    assert words(world) == ["PodGroupPending"]
    assert world.events[0].message == f"PodGroup default:train unschedulable: {message}"


def test_a_name_that_another_owner_has_is_reported_and_not_touched() -> None:
    world = World(a_job(plugins={"svc": []}))
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
    assert words(world) == ["NameConflict"]
    assert world.requeues
    del world.objects[SERVICE, "train"]
    world.settle()
    assert world.names(POD_GROUP) == ["train-u1"]


def test_no_pods_are_made_while_their_service_is_another_owners() -> None:
    """Their names would not resolve to them."""
    world = running(plugins={"svc": []})
    del world.objects[SERVICE, "train"]
    world.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}})
    world.vanish("train-worker-1")
    world.settle()
    assert (world.reason[0], world.names(POD)) == ("NameConflict", ["train-worker-0"])


def test_a_pod_name_that_another_job_has_is_reported() -> None:
    """Job `a` with task `b-c` and Job `a-b` with task `c` want the same names."""
    world = World(a_job())
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
    world = World(a_job())
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
    world = World(a_job())
    world.settle()
    world.trouble = PlanFailure("FailedCreate", "pods are forbidden: exceeded quota")
    world.settle()
    assert world.reason == ("FailedCreate", "pods are forbidden: exceeded quota")
    assert words(world) == ["FailedCreate"]
    world.trouble = None
    world.settle()
    assert world.reason[0] == "PodGroupPending"


def test_an_unknown_plugin_stops_the_job_before_it_takes_anything() -> None:
    world = World(a_job(plugins={"tensorflw": []}))
    world.settle()
    assert world.reason[0] == "PluginError"
    assert "tensorflw" in world.reason[1]
    assert world.names(POD_GROUP) == []
    assert words(world) == ["PluginError"]


def test_doubtful_arguments_are_reported_once() -> None:
    """Volcano writes them to its log."""
    world = World(a_job(plugins={"svc": ["--publish-not-ready-addresses=maybe"]}))
    world.settle()
    (event,) = world.events
    assert (event.type, event.reason) == ("Warning", "PluginArgument")
    assert event.message.startswith("spec.plugins.svc[0]: ")
    assert world.names(POD_GROUP) == ["train-u1"]


def test_doubtful_arguments_stay_to_be_seen_as_long_as_the_job() -> None:
    """Events are gone after an hour, and `vcctl job view` shows no reason of a state."""
    world = World(a_job(plugins={"svc": ["--publish-not-ready-addresses=maybe"]}))
    world.settle()
    noted = world.status["controlledResources"]["pumice.dev/plugin-warnings"]
    assert noted == world.events[0].message
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, world.reason) == ("Running", ("", ""))
    assert world.status["controlledResources"]["pumice.dev/plugin-warnings"] == noted
    world.command("RestartJob")
    world.settle()
    world.admit()
    world.settle()
    assert world.status["controlledResources"]["pumice.dev/plugin-warnings"] == noted
    world.succeed()
    world.settle()
    assert world.phase == "Completed"
    kept = world.status["controlledResources"]
    assert kept["pumice.dev/plugin-warnings"] == noted
    assert "plugin-svc" not in kept


def test_many_doubts_are_cut() -> None:
    words = [f"--nonsense-{number}={'x' * 300}" for number in range(20)]
    world = World(a_job(plugins={"svc": words}))
    world.settle()
    noted = world.status["controlledResources"]["pumice.dev/plugin-warnings"]
    assert len(noted) == 1000
    assert noted.endswith("…")


class _Stumbling(JobPlugin):
    """A plugin with a mistake in it, wherever it is asked for something."""

    name = "stumbling"
    summary = "Divides by zero."

    def __init__(self, where: str) -> None:
        self.where = where

    def objects(self, job: Job, values: Values) -> list[Raw]:
        return [{"oops": 1 // 0}] if self.where == "objects" else []

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        return PodEdits(labels={"share": str(1 // 0)})

    def job_annotations(self, job: Job, values: Values) -> dict[str, str]:
        return {"share": str(1 // 0)} if self.where == "annotations" else {}


@pytest.mark.parametrize("where", ["objects", "edits", "annotations"])
def test_a_plugin_that_stumbles_is_reported(where: str) -> None:
    registry = builtin().with_plugin(_Stumbling(where), "here")
    world = World(a_job(plugins={"stumbling": []}), registry=registry)
    world.settle()
    if where == "edits":
        world.admit()
        world.settle()
    word, sentence = world.reason
    assert word == "PluginError"
    assert sentence.startswith('plugin "stumbling" of here failed with ZeroDivisionError: ')
    assert world.names(POD) == []


def test_a_job_that_cannot_be_used_says_so_once() -> None:
    world = World(a_job() | {"spec": {"tasks": []}})
    world.settle()
    assert world.phase == "Pending"
    assert world.reason[0] == "InvalidJob"
    assert words(world) == ["InvalidJob"]
    assert list(world.objects) == [(JOB, "train")]


@pytest.mark.parametrize("phase", ["Running", "Restarting", "Aborted"])
def test_a_job_that_becomes_unreadable_keeps_its_phase(phase: str) -> None:
    world = running()
    since = "2027-01-15T08:00:00Z"
    world.status["state"] = {"phase": phase, "lastTransitionTime": since}
    world.job["spec"]["tasks"] = "none"
    world.settle()
    state = world.status["state"]
    assert (state["phase"], state["reason"], state["lastTransitionTime"]) == (
        phase,
        "InvalidJob",
        since,
    )
    assert "the Job cannot be read" in state["message"]
    assert words(world).count("InvalidJob") == 1
    assert len(world.pods) == 2


def test_a_job_whose_queue_lets_other_clusters_take_its_pods_says_so() -> None:
    """16.2 of Volcano's behaviour: the annotation is written once, and a user's value stays."""
    spread = queue("default", extendClusters=[{"name": "east", "weight": 1, "capacity": {}}])
    world = World(a_job())
    world.queue = msgspec.convert(spread, Queue)
    world.settle()
    annotations = world.job["metadata"]["annotations"]
    assert annotations[keys.JOB_FORWARDING] == "true"
    assert world.group is not None
    assert world.group["metadata"]["annotations"][keys.JOB_FORWARDING] == "true"
    annotations[keys.JOB_FORWARDING] = "false"
    world.settle()
    assert world.job["metadata"]["annotations"][keys.JOB_FORWARDING] == "false"


def test_labels_and_annotations_that_a_job_no_longer_has_leave_its_group_and_later_pods() -> None:
    manifest = a_job(annotations={keys.PREEMPTABLE: "true", "note": "x"})
    world = World(manifest)
    world.settle()
    world.admit()
    world.settle()
    world.job["metadata"]["annotations"] = {}
    world.settle()
    assert world.group is not None
    assert not {"note", keys.PREEMPTABLE} & world.group["metadata"]["annotations"].keys()
    world.vanish("train-worker-1")
    world.settle()
    assert keys.PREEMPTABLE in world.pods["train-worker-0"]["metadata"]["annotations"]
    assert keys.PREEMPTABLE not in world.pods["train-worker-1"]["metadata"]["annotations"]


def test_a_task_that_waits_for_another_gets_its_pods_later() -> None:
    """XAC-6 to 8 of the launch order; the gang counts only what may start."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    world = World(a_job(task("master", 1), worker))
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


@pytest.mark.parametrize("event", ["Unknown", "*"])
def test_a_stage_that_waits_for_room_tears_nothing(event: str) -> None:
    """The scheduler calls a gang torn that runs in part, also when the rest has never run."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    policies = [{"event": event, "action": "RestartJob"}]
    world = World(a_job(task("master", 1), worker, policies=policies))
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert len(world.pods) == 4
    world.admit("Unknown")
    world.settle()
    assert (world.phase, world.status.get("retryCount", 0)) == ("Pending", 0)
    assert len(world.pods) == 4
    world.run("train-worker-0", "train-worker-1")
    world.settle()
    assert world.status["retryCount"] == 1  # now a part of the stage runs without the rest


@pytest.mark.parametrize(
    ("later", "counted", "retries"), [(1, 4, 0), (0, 1, 0), (0, 4, 1), (-1, 1, 1)]
)
def test_a_gang_that_was_torn_before_its_pods_were_placed_is_torn_no_more(
    later: int, counted: int, retries: int
) -> None:
    """Pods are bound one after the other, and the phase of their group is written last."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    policies = [{"event": "Unknown", "action": "RestartJob"}]
    world = World(a_job(task("master", 1), worker, policies=policies))
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    world.admit("Unknown")
    world.condition("NotEnoughResources", "1/4 tasks in gang unschedulable")
    assert world.group is not None
    world.group["status"]["conditions"][0]["lastTransitionTime"] = format_time(world.now)
    world.group["status"]["running"] = counted
    for name in ("train-worker-0", "train-worker-1"):
        placed = {"type": "PodScheduled", "status": "True"}
        placed["lastTransitionTime"] = format_time(world.now + later)
        world.pods[name]["spec"]["nodeName"] = "n1"
        world.pods[name]["status"] = {"phase": "Pending", "conditions": [placed]}
        world.touch(world.pods[name])
    world.settle()
    assert world.status.get("retryCount", 0) == retries


def test_a_task_that_has_started_counts_even_if_what_it_waited_for_is_gone() -> None:
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    world = running(task("master", 1), worker, minAvailable=1)
    world.run()
    world.settle()
    world.vanish("train-master-0")
    world.vanish("train-worker-2")
    world.look()
    world.look()
    assert world.names(POD) == ["train-master-0", "train-worker-0", "train-worker-1"]
    assert world.group is not None
    assert world.group["spec"]["minTaskMember"] == {"master": 1, "worker": 3}


def test_a_name_whose_holder_is_being_removed_is_tried_again() -> None:
    """No watch shows the holder, which has no label of the Job, so that its end brings nothing."""
    world = World(a_job())
    world.settle()
    world.admit()
    meta = {"name": "train-worker-0", "namespace": "default", "uid": "x"}
    holder = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta | {"deletionTimestamp": format_time(world.now)},
    }
    assert world.plan(found=[holder]).wake == CONFLICT_SECONDS


def test_negative_replicas_do_not_make_room_for_more_pods_than_a_job_may_have() -> None:
    world = World(a_job(task("a", 2_000_000_000), task("b", -1_999_999_999)))
    world.look()
    assert world.reason[1] == "spec.tasks[1].replicas: expected at least 0, found -1999999999"
