"""A Job that waits or cannot go on says why, and touches nothing that is not its own."""

import msgspec
import pytest

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import JOB, POD, POD_GROUP, SERVICE
from pumice.api.meta import format_time
from pumice.api.queues import Queue
from pumice.controller.jobs.situation import PlanFailure
from pumice.controller.jobs.sync import CONFLICT_SECONDS
from pumice.plugins import JobPlugin, PodEdits, Values, builtin
from tests.kit.builders import queue, task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import Raw, a_job, running, words


def test_the_schedulers_reason_reaches_the_job() -> None:
    """AC-17."""
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.condition("NotEnoughResources", "2/2 tasks in gang unschedulable: 0/3 nodes fit")
    cluster.settle()
    message = "2/2 tasks in gang unschedulable: 0/3 nodes fit"
    assert cluster.reason == ("NotEnoughResources", message)
    assert words(cluster) == ["PodGroupPending"]
    assert cluster.events[0].message == f"PodGroup default:train unschedulable: {message}"


def test_a_name_that_another_owner_has_is_reported_and_not_touched() -> None:
    cluster = FakeCluster(a_job(plugins={"svc": []}))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "train"},
        "spec": {"x": 1},
    }
    foreign = cluster.put(service)
    before = dict(foreign)
    cluster.settle()
    assert cluster.objects[SERVICE, "train"] == before
    word, sentence = cluster.reason
    assert word == "NameConflict"
    assert "Service train exists and does not belong to this Job" in sentence
    assert cluster.names(POD_GROUP) == []  # it would take a place in the queue for nothing
    assert words(cluster) == ["NameConflict"]
    assert cluster.requeues
    del cluster.objects[SERVICE, "train"]
    cluster.settle()
    assert cluster.names(POD_GROUP) == ["train-u1"]


def test_no_pods_are_made_while_their_service_is_another_owners() -> None:
    """Their names would not resolve to them."""
    cluster = running(plugins={"svc": []})
    del cluster.objects[SERVICE, "train"]
    cluster.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}})
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert (cluster.reason[0], cluster.names(POD)) == ("NameConflict", ["train-worker-0"])


def test_a_pod_name_that_another_job_has_is_reported() -> None:
    """Job `a` with task `b-c` and Job `a-b` with task `c` want the same names."""
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.admit()
    pod_of_other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-worker-1",
            "labels": {keys.JOB_NAME: "train"},
            "ownerReferences": [{"kind": "Job", "name": "other", "uid": "u9", "controller": True}],
        },
    }
    cluster.put(pod_of_other)
    cluster.settle()
    assert cluster.names(POD) == ["train-worker-0", "train-worker-1"]
    assert cluster.reason[0] == "NameConflict"
    assert "Pod train-worker-1" in cluster.reason[1]
    assert "Job other" in cluster.reason[1]
    assert cluster.status["pending"] == 1


def test_a_pod_of_an_earlier_job_that_is_leaving_is_waited_for() -> None:
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.admit()
    metadata = {
        "name": "train-worker-1",
        "labels": {keys.JOB_NAME: "train"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    cluster.look()
    cluster.look()
    assert cluster.reason[0] == "PodsPending"
    cluster.reap()
    cluster.settle()
    assert cluster.status["pending"] == 2


def test_what_the_api_server_refuses_stands_in_the_status() -> None:
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.trouble = PlanFailure("FailedCreate", "pods are forbidden: exceeded quota")
    cluster.settle()
    assert cluster.reason == ("FailedCreate", "pods are forbidden: exceeded quota")
    assert words(cluster) == ["FailedCreate"]
    cluster.trouble = None
    cluster.settle()
    assert cluster.reason[0] == "PodGroupPending"


def test_an_unknown_plugin_stops_the_job_before_it_takes_anything() -> None:
    cluster = FakeCluster(a_job(plugins={"tensorflw": []}))
    cluster.settle()
    assert cluster.reason[0] == "PluginError"
    assert "tensorflw" in cluster.reason[1]
    assert cluster.names(POD_GROUP) == []
    assert words(cluster) == ["PluginError"]


def test_doubtful_arguments_are_reported_once() -> None:
    """Volcano writes them to its log."""
    cluster = FakeCluster(a_job(plugins={"svc": ["--publish-not-ready-addresses=maybe"]}))
    cluster.settle()
    (event,) = cluster.events
    assert (event.type, event.reason) == ("Warning", "PluginArgument")
    assert event.message.startswith("spec.plugins.svc[0]: ")
    assert cluster.names(POD_GROUP) == ["train-u1"]


def test_doubtful_arguments_stay_to_be_seen_as_long_as_the_job() -> None:
    """Events are gone after an hour, and `vcctl job view` shows no reason of a state."""
    cluster = FakeCluster(a_job(plugins={"svc": ["--publish-not-ready-addresses=maybe"]}))
    cluster.settle()
    noted = cluster.status["controlledResources"]["pumice.dev/plugin-warnings"]
    assert noted == cluster.events[0].message
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert (cluster.phase, cluster.reason) == ("Running", ("", ""))
    assert cluster.status["controlledResources"]["pumice.dev/plugin-warnings"] == noted
    cluster.command("RestartJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.status["controlledResources"]["pumice.dev/plugin-warnings"] == noted
    cluster.succeed()
    cluster.settle()
    assert cluster.phase == "Completed"
    kept = cluster.status["controlledResources"]
    assert kept["pumice.dev/plugin-warnings"] == noted
    assert "plugin-svc" not in kept


def test_many_doubts_are_cut() -> None:
    words = [f"--nonsense-{number}={'x' * 300}" for number in range(20)]
    cluster = FakeCluster(a_job(plugins={"svc": words}))
    cluster.settle()
    noted = cluster.status["controlledResources"]["pumice.dev/plugin-warnings"]
    assert len(noted) <= 1000
    assert noted.startswith("spec.plugins.svc[0]: unknown argument --nonsense-0 is ignored")
    assert noted.endswith(f"; and {len(words) - noted.count('spec.plugins')} more")


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
    cluster = FakeCluster(a_job(plugins={"stumbling": []}), registry=registry)
    cluster.settle()
    if where == "edits":
        cluster.admit()
        cluster.settle()
    word, sentence = cluster.reason
    assert word == "PluginError"
    assert sentence.startswith('plugin "stumbling" of here failed with ZeroDivisionError: ')
    assert cluster.names(POD) == []


def test_a_job_that_cannot_be_used_says_so_once() -> None:
    cluster = FakeCluster(a_job() | {"spec": {"tasks": []}})
    cluster.settle()
    assert cluster.phase == "Pending"
    assert cluster.reason[0] == "InvalidJob"
    assert words(cluster) == ["InvalidJob"]
    assert list(cluster.objects) == [(JOB, "train")]


@pytest.mark.parametrize("phase", ["Running", "Restarting", "Aborted"])
def test_a_job_that_becomes_unreadable_keeps_its_phase(phase: str) -> None:
    cluster = running()
    since = "2027-01-15T08:00:00Z"
    cluster.status["state"] = {"phase": phase, "lastTransitionTime": since}
    cluster.job["spec"]["tasks"] = "none"
    cluster.settle()
    state = cluster.status["state"]
    assert (state["phase"], state["reason"], state["lastTransitionTime"]) == (
        phase,
        "InvalidJob",
        since,
    )
    assert "the Job cannot be read" in state["message"]
    assert words(cluster).count("InvalidJob") == 1
    assert len(cluster.pods) == 2


def test_a_job_whose_queue_lets_other_clusters_take_its_pods_says_so() -> None:
    """16.2 of Volcano's behaviour: the annotation is written once, and a user's value stays."""
    spread = queue("default", extendClusters=[{"name": "east", "weight": 1, "capacity": {}}])
    cluster = FakeCluster(a_job())
    cluster.queue = msgspec.convert(spread, Queue)
    cluster.settle()
    annotations = cluster.job["metadata"]["annotations"]
    assert annotations[keys.JOB_FORWARDING] == "true"
    assert cluster.group is not None
    assert cluster.group["metadata"]["annotations"][keys.JOB_FORWARDING] == "true"
    annotations[keys.JOB_FORWARDING] = "false"
    cluster.settle()
    assert cluster.job["metadata"]["annotations"][keys.JOB_FORWARDING] == "false"


def test_labels_and_annotations_that_a_job_no_longer_has_leave_its_group_and_later_pods() -> None:
    manifest = a_job(annotations={keys.PREEMPTABLE: "true", "note": "x"})
    cluster = FakeCluster(manifest)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.job["metadata"]["annotations"] = {}
    cluster.settle()
    assert cluster.group is not None
    assert not {"note", keys.PREEMPTABLE} & cluster.group["metadata"]["annotations"].keys()
    cluster.vanish("train-worker-1")
    cluster.settle()
    assert keys.PREEMPTABLE in cluster.pods["train-worker-0"]["metadata"]["annotations"]
    assert keys.PREEMPTABLE not in cluster.pods["train-worker-1"]["metadata"]["annotations"]


def test_a_task_that_waits_for_another_gets_its_pods_later() -> None:
    """XAC-6 to 8 of the launch order; the gang counts only what may start."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    cluster = FakeCluster(a_job(task("master", 1), worker))
    cluster.settle()
    assert cluster.group is not None
    assert cluster.group["spec"]["minMember"] == 1
    cluster.admit()
    cluster.settle()
    assert cluster.names(POD) == ["train-master-0"]
    assert cluster.reason == ("DependsOn", "task worker waits for task master (0 of 1 pods ready)")
    cluster.run()
    cluster.settle()
    assert len(cluster.pods) == 4
    assert cluster.group["spec"]["minMember"] == 4
    assert cluster.group["spec"]["minTaskMember"] == {"master": 1, "worker": 3}
    cluster.run()
    cluster.settle()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("event", ["Unknown", "*"])
def test_a_stage_that_waits_for_room_tears_nothing(event: str) -> None:
    """The scheduler calls a gang torn that runs in part, also when the rest has never run."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    policies = [{"event": event, "action": "RestartJob"}]
    cluster = FakeCluster(a_job(task("master", 1), worker, policies=policies))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert len(cluster.pods) == 4
    cluster.admit("Unknown")
    cluster.settle()
    assert (cluster.phase, cluster.status.get("retryCount", 0)) == ("Pending", 0)
    assert len(cluster.pods) == 4
    cluster.run("train-worker-0", "train-worker-1")
    cluster.settle()
    assert cluster.status["retryCount"] == 1  # now a part of the stage runs without the rest


@pytest.mark.parametrize(
    ("later", "counted", "retries"), [(1, 4, 0), (0, 1, 0), (0, 4, 1), (-1, 1, 1)]
)
def test_a_gang_that_was_torn_before_its_pods_were_placed_is_torn_no_more(
    later: int, counted: int, retries: int
) -> None:
    """Pods are bound one after the other, and the phase of their group is written last."""
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    policies = [{"event": "Unknown", "action": "RestartJob"}]
    cluster = FakeCluster(a_job(task("master", 1), worker, policies=policies))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    cluster.admit("Unknown")
    cluster.condition("NotEnoughResources", "1/4 tasks in gang unschedulable")
    assert cluster.group is not None
    cluster.group["status"]["conditions"][0]["lastTransitionTime"] = format_time(cluster.now)
    cluster.group["status"]["running"] = counted
    for name in ("train-worker-0", "train-worker-1"):
        placed = {"type": "PodScheduled", "status": "True"}
        placed["lastTransitionTime"] = format_time(cluster.now + later)
        cluster.pods[name]["spec"]["nodeName"] = "n1"
        cluster.pods[name]["status"] = {"phase": "Pending", "conditions": [placed]}
        cluster.touch(cluster.pods[name])
    cluster.settle()
    assert cluster.status.get("retryCount", 0) == retries


def test_a_task_that_has_started_counts_even_if_what_it_waited_for_is_gone() -> None:
    worker = task("worker", 3, dependsOn={"name": ["master"]})
    cluster = running(task("master", 1), worker, minAvailable=1)
    cluster.run()
    cluster.settle()
    cluster.vanish("train-master-0")
    cluster.vanish("train-worker-2")
    cluster.look()
    cluster.look()
    assert cluster.names(POD) == ["train-master-0", "train-worker-0", "train-worker-1"]
    assert cluster.group is not None
    assert cluster.group["spec"]["minTaskMember"] == {"master": 1, "worker": 3}


def test_a_name_whose_holder_is_being_removed_is_tried_again() -> None:
    """No watch shows the holder, which has no label of the Job, so that its end brings nothing."""
    cluster = FakeCluster(a_job())
    cluster.settle()
    cluster.admit()
    meta = {"name": "train-worker-0", "namespace": "default", "uid": "x"}
    holder = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta | {"deletionTimestamp": format_time(cluster.now)},
    }
    assert cluster.plan(found=[holder]).wake == CONFLICT_SECONDS


def test_negative_replicas_do_not_make_room_for_more_pods_than_a_job_may_have() -> None:
    cluster = FakeCluster(a_job(task("a", 2_000_000_000), task("b", -1_999_999_999)))
    cluster.look()
    assert cluster.reason[1] == "spec.tasks[1].replicas: expected at least 0, found -1999999999"
