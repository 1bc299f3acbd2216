"""`pumice explain`: no numbers contradict what the scheduler says of pods that are left to another one, nor those of a queue each other."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live.explanation_text import list_text, text_of
from pumice.cli.live.explanations import events_about, of_job, of_pod, waiting_gangs
from pumice.cli.live.failed_pods import attempts_used
from pumice.cli.live.job_rows import job_rows
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Follower, simulated
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from tests.kit.builders import job, node, pod, pod_group, task
from tests.kit.counting import calls

WHY = (
    "Not enough valid tasks; 1 pod names schedulerName other; this scheduler places pods of volcano"
)
NAME = "train-u"


@pytest.fixture
def seen() -> ReadableCluster:
    """A gang of one pod that would have room."""
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "OtherScheduler",
        "message": WHY,
    }
    group = pod_group(NAME, phase="Inqueue")
    group["status"]["conditions"] = [condition]
    stranger = pod("train-w-0", group=NAME, labels={"volcano.sh/job-name": "train"}, cpu="1")
    stranger["spec"]["schedulerName"] = "other"
    objects = ClusterObjects(
        nodes=msgspec.convert([node()], list[Node]),
        pod_groups=msgspec.convert([group], list[PodGroup]),
        pods=msgspec.convert([stranger], list[Pod]),
    )
    return ReadableCluster("default", objects)


def assert_explained(found: dict[str, Any]) -> None:
    assert (found["summary"], found["fits"], found["enough"]) == (WHY, False, [])


def test_a_job(seen: ReadableCluster) -> None:
    status = {"state": {"phase": "Pending", "message": WHY}}
    found = of_job(
        msgspec.convert(job(uid="u", status=status), Job),
        seen,
        Follower(load_config(None)).follow,
        0.0,
    )
    assert found["message"] == f"Job default/train waits: {WHY}"
    assert_explained(found)


def test_a_pod(seen: ReadableCluster) -> None:
    assert_explained(of_pod(seen.objects.pods[0], seen, Follower(load_config(None)).follow, 0.0))


def test_what_is_not_acted_on_yet_is_said_of_a_job_and_a_pod(seen: ReadableCluster) -> None:
    tasks = [task("w", topologyPolicy="restricted")]
    found = of_job(
        msgspec.convert(job(tasks=tasks), Job), seen, Follower(load_config(None)).follow, 0.0
    )
    (text,) = found["notHereYet"]
    assert text.startswith("spec.tasks[0].topologyPolicy is not acted on yet: nodes are chosen")
    assert f"\n\n{text}\n" in text_of(found)

    claiming = msgspec.convert(pod("p", resourceClaims=[{"name": "gpu"}]), Pod)
    (told,) = of_pod(claiming, seen, Follower(load_config(None)).follow, 0.0)["notHereYet"]
    assert told.startswith("spec.resourceClaims is not acted on yet: devices of claims")


def test_the_list(seen: ReadableCluster) -> None:
    [found] = waiting_gangs(seen, simulated(seen, load_config(None), 0.0))
    assert (found["summary"], found["message"], found["numbers"]) == (WHY, WHY, {})


@pytest.mark.parametrize(
    ("owners", "owner", "shown"),
    [
        ([], None, f"default/{NAME}"),
        (
            [{"kind": "Job", "name": "train", "controller": True}],
            "Job/train",
            "default/train (Job)",
        ),
        ([{"kind": "Job", "name": "train"}], None, f"default/{NAME}"),
        (
            [{"kind": "ReplicaSet", "name": "web-5", "controller": True}],
            "ReplicaSet/web-5",
            "default/web-5 (ReplicaSet)",
        ),
    ],
)
def test_the_list_names_what_users_have_made(
    owners: list[dict[str, Any]], owner: str | None, shown: str
) -> None:
    raw = pod_group(NAME, phase="Pending")
    raw["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "uid": "u", **each} for each in owners
    ]
    cluster = ReadableCluster(
        "default", ClusterObjects(pod_groups=[msgspec.convert(raw, PodGroup)])
    )
    gangs = waiting_gangs(cluster, simulated(cluster, load_config(None), 0.0))
    assert [each["owner"] for each in gangs] == [owner]
    assert list_text({"waiting": gangs, "notAllowed": []}).splitlines()[1].startswith(f"{shown}  ")


def _surplus() -> tuple[Job, ReadableCluster]:
    """A gang of three pods with a minimum of two, for which there is room, and a Job that says so."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pods = [
        pod(f"train-w-{number}", group=NAME, labels={"volcano.sh/job-name": "train"}, cpu="1")
        for number in range(4)
    ]
    for each in pods[:2]:
        each["spec"]["nodeName"] = "n"
        each["status"]["phase"] = "Running"
    pods[2]["status"]["conditions"] = [condition | {"message": "0/1 nodes are unavailable"}]
    group = pod_group(NAME, 2, phase="Running")
    now = {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready"}
    group["status"]["conditions"] = [UNSCHEDULABLE | {"status": "False"}, now]
    status = {
        "state": {"phase": "Running", "message": "2 of 4 pods do not run yet"},
        "running": 2,
        "pending": 2,
    }
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "2")], list[Node]),
        pod_groups=msgspec.convert([group], list[PodGroup]),
        pods=msgspec.convert(pods, list[Pod]),
    )
    owner = msgspec.convert(job(tasks=[task("w", 4)], uid="u", status=status), Job)
    return owner, ReadableCluster("default", objects)


UNSCHEDULABLE = {"type": "Unschedulable", "reason": "NotEnoughResources", "message": "no room"}


def test_pods_beyond_the_minimum_of_a_gang_that_runs_do_not_wait_for_it() -> None:
    owner, seen = _surplus()
    found = of_job(owner, seen, Follower(load_config(None)).follow, 0.0)
    ours = "its gang runs with its minimum of 2 without this pod; another one waits: 0/1 nodes are unavailable"
    assert [each["message"] for each in found["pods"]] == [
        "",
        "",
        "0/1 nodes are unavailable",
        ours,
    ]
    told = of_pod(seen.objects.pods[3], seen, Follower(load_config(None)).follow, 0.0)
    assert told["message"] == f"Pod default/train-w-3 waits: {ours}"
    text = text_of(found)
    assert "waits for its gang" not in text
    assert "at least 2 pods\n  Scheduled=True tasks in gang are ready\n" in text
    assert "Unschedulable=" not in text


def test_a_job_that_runs_without_some_of_its_pods_has_a_reason_in_the_list() -> None:
    owner, seen = _surplus()
    [row] = job_rows([owner], seen, None, 0.0)
    assert row["reason"].startswith("2 of 4 pods wait beyond the minimum of 2: needs 2 × 1 cpu;")
    assert (row["waiting"], row["position"]) == (False, None)
    [row] = job_rows([owner], None, None, 0.0)
    assert row["reason"] == "2 of 4 pods do not run yet"


def test_events_of_one_second_are_in_the_order_in_which_they_were_written() -> None:
    def event(reason: str, version: str | None, second: int = 1) -> dict[str, Any]:
        about = {"uid": "u", "kind": "Job", "name": "train"}
        time = f"2026-01-01T00:00:0{second}Z"
        meta = {"resourceVersion": version}
        return {
            "metadata": meta,
            "involvedObject": about,
            "reason": reason,
            "lastTimestamp": time,
        }

    events = [
        event("Failed", "10"),
        event("ExecuteAction", "9"),
        event("Running", "11", 0),
        event("?", None, 2),
    ]
    told = events_about(events, {"u"})
    assert [each["reason"] for each in told] == ["Running", "ExecuteAction", "Failed", "?"]


def test_an_evicted_pod_is_told_though_another_of_its_name_is_there() -> None:
    def event(pod: str, uid: str, time: str, reason: str = "Preempted") -> dict[str, Any]:
        about = {"kind": "Pod", "name": pod, "namespace": "default", "uid": uid}
        return {"involvedObject": about, "reason": reason, "message": uid, "lastTimestamp": time}

    raw = job("train", tasks=[task("w")])
    raw["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    owner = msgspec.convert(raw, Job)
    events = [
        event("train-w-0", "preempted", "2026-01-01T00:00:01Z"),
        event("train-w-1", "evicted", "2026-01-01T00:00:02Z", "Evict"),
        event("train-w-0", "of an earlier Job", "2025-12-31T23:59:59Z"),
        event("train-w-0", "not evicted", "2026-01-01T00:00:03Z", "Scheduled"),
        event("train-w-x-0", "of another Job", "2026-01-01T00:00:03Z"),
        event("other-w-0", "of a third", "2026-01-01T00:00:03Z"),
    ]
    seen = ReadableCluster("default", ClusterObjects(), events=events)
    found = of_job(owner, seen, Follower(load_config(None)).follow, 0.0)
    assert [each["message"] for each in found["events"]] == ["preempted", "evicted"]


def test_gangs_that_run_by_another_scheduler_name_do_not_stand_before_one_that_waits() -> None:
    running = pod("other-0", group="other", cpu="1", node="n", phase="Running")
    running["spec"]["schedulerName"] = "default-scheduler"
    waiting = msgspec.convert(pod("large-0", group="large", cpu="9"), Pod)
    groups = [pod_group("large", phase="Pending"), pod_group("other", phase="Running")]
    for each, day in zip(groups, ("02", "01"), strict=True):
        each["metadata"]["creationTimestamp"] = f"2026-01-{day}T00:00:00Z"
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4")], list[Node]),
        pod_groups=msgspec.convert(groups, list[PodGroup]),
        pods=[msgspec.convert(running, Pod), waiting],
    )
    found = of_pod(
        waiting, ReadableCluster("default", objects), Follower(load_config(None)).follow, 0.0
    )
    assert found["ahead"] == []
    assert "the largest free place is 3 cpu" in found["summary"]


def test_a_pod_without_a_gang_waits_for_what_its_last_warning_says() -> None:
    raw = pod("train-0")
    raw["metadata"]["uid"] = "u"
    waiting = msgspec.convert(raw, Pod)
    events = [
        {"involvedObject": {"uid": "u"}, "type": type_, "message": message}
        for type_, message in (
            ("Warning", "cannot create PodGroup: no such queue"),
            ("Normal", "x"),
        )
    ]
    seen = ReadableCluster("default", ClusterObjects(), events=events)
    found = of_pod(waiting, seen, Follower(load_config(None)).follow, 0.0)
    assert found["message"] == "Pod default/train-0 waits: cannot create PodGroup: no such queue"


def _failed(name: str, *, message: str = "", code: int = 137) -> Pod:
    raw = pod(name, labels={"volcano.sh/job-name": "train"}, node="n", phase="Failed")
    raw["metadata"]["annotations"] = {"volcano.sh/task-spec": "worker"}
    end = {"exitCode": code, "reason": "OOMKilled", "message": message}
    raw["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": end}}]
    return msgspec.convert(raw, Pod)


def test_a_job_of_a_controller_that_says_nothing_about_failed_pods() -> None:
    """As Volcano's does; what pods, notes and events say is put together."""
    pods = [_failed(f"train-worker-{number}") for number in range(2)]
    status = {
        "state": {"phase": "Running"},
        "retryCount": 1,
        "controlledResources": {"pumice.dev/retries": "pod/worker/0=2/1"},
    }
    owner = msgspec.convert(job("train", uid="u", status=status), Job)
    event = {
        "involvedObject": {"kind": "Job", "name": "train", "uid": "u"},
        "reason": "ExecuteAction",
        "message": "RestartPod: pod train-worker-0 failed (spec.policies[0])",
    }
    seen = ReadableCluster("default", ClusterObjects(pods=pods), events=[event])
    found = of_job(owner, seen, Follower(load_config(None)).follow, 0.0)
    [failure] = found["failures"]
    assert failure == {
        "task": "worker",
        "pods": ["train-worker-0", "train-worker-1"],
        "container": "main",
        "exitCode": 137,
        "meaning": "OOMKilled: out of memory",
        "reason": "OOMKilled",
        "message": "",
        "text": "task worker: 2 pods (train-worker-0, train-worker-1) failed with exit code 137 (OOMKilled: out of memory)",
    }
    text = text_of(found | {"logs": [LOG]})
    assert (
        "\nFailed pods:\n"
        "  task worker: 2 pods (train-worker-0, train-worker-1) failed with exit code 137 (OOMKilled: out of memory)\n"
        "Attempts used: 1 of 3 (maxRetry); attempts of pod train-worker-0 used: 2 of 3 (maxRetry)\n"
        "Last action: RestartPod: pod train-worker-0 failed (spec.policies[0])\n"
        "\n"
        "Last lines of train-worker-0, container main:\n"
        "  step 7\n"
    ) in text


LOG = {
    "pod": "train-worker-0",
    "container": "main",
    "previous": False,
    "lines": ["step 7"],
    "error": "",
}


def test_what_the_first_sentence_says_is_not_said_again() -> None:
    gone = _failed("train-worker-0")
    message = "task worker: pod train-worker-0 failed with exit code 137 (OOMKilled: out of memory)"
    status = {"state": {"phase": "Failed", "message": f"1 of 2; {message}"}}
    owner = msgspec.convert(job("train", uid="u", status=status), Job)
    seen = ReadableCluster("default", ClusterObjects(pods=[gone]))
    text = text_of(of_job(owner, seen, Follower(load_config(None)).follow, 0.0))
    assert text.startswith(f"Job default/train is Failed: 1 of 2; {message}; its pods were on n")
    assert "Failed pods" not in text


def test_a_pod_that_failed() -> None:
    gone = _failed("train-worker-0", message="\x1b[31mno data")
    seen = ReadableCluster("default", ClusterObjects(pods=[gone]))
    found = of_pod(gone, seen, Follower(load_config(None)).follow, 0.0)
    assert found["message"] == (
        "Pod default/train-worker-0 is on node n (Failed): failed with exit code 137"
        ' (OOMKilled: out of memory): "no data"'
    )


def test_attempts_of_as_many_pods_as_a_number_can_say_are_told_at_once() -> None:
    notes = "task/other=9/1 task/worker=2/1 pod/worker/0-999999999=3/1 pod/worker/7=2/1 pod/odd/1=8/1 pod/worker/x=8/1"
    raw = job(
        "train",
        [task("worker", 2**31 - 1)],
        status={"controlledResources": {"pumice.dev/retries": notes}},
    )
    told: list[str] = []
    used = calls(lambda: told.append(attempts_used(msgspec.convert(raw, Job))))
    assert told == ["attempts of pod train-worker-0 used: 3 of 3 (maxRetry)"]
    assert used < 1000
