"""A dump of a cluster as a trace: when Jobs and gangs started and ended, and what is left out."""

import json
from typing import Any

import pytest

from pumice.traces.cluster_past import read_cluster_past
from pumice.traces.trace import TraceError
from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.kit.traces import ran as ran_trace

Raw = dict[str, Any]


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def created(raw: Raw, seconds: int, **metadata: Any) -> Raw:
    raw["metadata"] |= {"creationTimestamp": at(seconds), "uid": raw["metadata"]["name"]} | metadata
    return raw


def status(phase: str, since: int, running: int | None = None) -> Raw:
    conditions = (
        [] if running is None else [{"status": "Running", "lastTransitionTime": at(running)}]
    )
    return {
        "state": {"phase": phase, "lastTransitionTime": at(since)},
        "conditions": [{"status": "Pending", "lastTransitionTime": at(0)}, *conditions],
    }


def ran(raw: Raw, start: int, end: int | None, phase: str = "Succeeded") -> Raw:
    """A pod that ran from one moment to another."""
    state = (
        {"running": {"startedAt": at(start)}}
        if end is None
        else {"terminated": {"startedAt": at(start), "finishedAt": at(end), "exitCode": 0}}
    )
    raw["status"] = {
        "phase": "Running" if end is None else phase,
        "startTime": at(start),
        "containerStatuses": [{"name": "main", "state": state}],
    }
    return raw


def of_job(name: str, number: int) -> Raw:
    return pod(f"{name}-worker-{number}", group=f"{name}-{name}", cpu="1")


def lasting(annotation: str) -> list[Raw]:
    return [task(cpu="1", annotations={annotation: "1m30s"})]


ITEMS: list[Raw] = [
    node("n1", "4"),
    queue("research"),
    # Jobs that are over and whose pods are gone
    created(job("over", [task(replicas=3, cpu="2")], queue="research", minAvailable=2, status=status("Completed", 90, 30)), 10),
    created(job("failed", status=status("Failed", 50, 20), priorityClassName="high"), 11),
    created(job("never-ran", status=status("Aborted", 50)), 12),
    created(job("undated", status={"state": {"phase": "Completed"}}), 14),
    ran(of_job("undated", 0), 16, 19),
    created(job("timeless", status=status("Completed", 0, 20) | {"state": {"phase": "Completed"}}), 15),
    created(job("old", status=status("Terminated", 70) | {"runningDuration": "20s"}), 13),
    # Jobs of which pods tell more
    created(job("by-pods", [task(replicas=2)], minAvailable=2, status={"state": {"phase": "Running"}}), 20),
    ran(of_job("by-pods", 0), 25, 40),
    ran(of_job("by-pods", 1), 28, 45),
    created(job("runs", status=status("Running", 31, 31)), 21),
    created(job("runs-for", lasting("pumice.dev/duration"), status=status("Running", 32, 32)), 22),
    # Jobs that wait
    created(job("waits", [task(cpu="1", annotations={"pumice.dev/duration": "abc"})]), 23),
    created(job("waits-for", lasting("pumice.dev/run-duration")), 24),
    created(job("says", lasting("pumice.dev/duration")), 24, annotations={"pumice.dev/duration": "5s"}),
    created(job("means", lasting("pumice.dev/run-duration")), 24, annotations={"pumice.dev/duration": "6s"}),
    # Gangs without a Job
    created(pod_group("native", 2, queue="research"), 30),
    ran(pod("native-0", group="native", cpu="1"), 33, 63),
    ran(pod("native-1", group="native", cpu="1"), 35, 66, "Failed"),
    ran(pod("native-2", group="native", cpu="3"), 36, 50),
    created(pod_group("gone", 2), 31),
    created(pod_group("over-over", 2), 10, ownerReferences=[{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "over", "uid": "over"}]),
    # Pods of no gang
    ran(pod("daemon", node="n1", cpu="1"), 1, None),
    ran(pod("done", node="n1", cpu="1"), 1, 2),
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "of-class"}, "spec": {"priorityClassName": "high", "priority": 7}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
    {"apiVersion": "example.com/v1", "kind": "Own"}, {"kind": 7}, {},
    # What stays
    {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "rack"}, "spec": {"tier": 1}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}},
]  # fmt: skip


def test_what_a_dump_tells() -> None:
    trace = read_cluster_past(json.dumps({"kind": "List", "items": ITEMS}).encode())
    assert trace.zero == 1767225610.0  # the creation of the first Job
    found = {each.name: each for each in trace.jobs}
    times = {name: (each.submit, each.scheduled, each.duration) for name, each in found.items()}
    assert times == {
        "over": (0, 20, 60),
        "failed": (1, 10, 30),
        "old": (3, 40, 20),
        "undated": (4, 6, 3),
        "by-pods": (10, 18, 17),
        "runs": (11, 21, None),
        "runs-for": (12, 22, 90),
        "waits-for": (14, None, 90),
        "says": (14, None, 5),
        "means": (14, None, 6),
        "native": (20, 25, 31),
    }
    assert [each.why for each in trace.skipped if each.is_bad] == []
    left = [each.why.split(":")[0] for each in trace.skipped]
    assert left == ["default/never-ran", "default/timeless", "default/waits", "default/gone"]
    over = found["over"]
    assert (over.queue, over.replicas, over.min, over.requests) == ("research", 3, 2, {"cpu": "2"})
    assert [each.name for each in trace.jobs if each.fails] == ["failed", "native"]
    native = found["native"].manifest
    assert native is not None
    assert (native["spec"]["minAvailable"], native["spec"]["queue"]) == (2, "research")
    assert [each["replicas"] for each in native["spec"]["tasks"]] == [2, 1]
    objects = trace.objects
    assert [each.metadata.name for each in objects.nodes] == ["n1"]
    assert [each.metadata.name for each in objects.pods] == ["daemon"]
    assert [(each.metadata.name, each.value) for each in objects.priority_classes] == [("high", 7)]
    assert [each.metadata.name for each in objects.hyper_nodes] == ["rack"]
    assert [each.metadata.labels for each in objects.namespaces] == [{"a": "b"}]
    left_out, ignored = trace.remarks
    assert ignored.startswith(
        'annotation pumice.dev/duration of Job default/waits is ignored: time: invalid duration "abc"; '
    )
    assert left_out == (
        "left out 4 objects of kinds that are not read here (1 ConfigMap, 1 Own, 2 without a kind); "
        "quotas, budgets, volumes and RuntimeClasses are read with --state"
    )
    turned = json.dumps({"kind": "List", "items": ITEMS[::-1]})
    assert read_cluster_past(f"\ufeff{turned}".encode()).jobs == trace.jobs


def test_a_past_runs_again() -> None:
    """A closed queue, another scheduler's name, retries of a Job that failed, and a pod whose Job is not in the dump."""
    again = [{"event": "PodFailed", "action": "RestartJob"}]
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "z", "uid": "z"}
    items = [
        node("n1", "2"),
        queue("default") | {"status": {"state": "Closed"}},
        created(job("failed", [task(cpu="1", policies=again, spec={"schedulerName": "other"})], policies=again, schedulerName="other", status=status("Failed", 50, 20)), 10),
        created(job("large", [task(cpu="2")], status=status("Completed", 90, 60)), 11),
        created(pod_group("z-z", 1), 1, ownerReferences=[owner]),
        ran(pod("z-main-0", group="z-z", cpu="1", node="n1"), 1, None),
    ]  # fmt: skip
    trace = read_cluster_past(json.dumps({"items": items}).encode())
    assert trace.remarks == [
        "1 pod of Jobs that are not in the dump, or were left out: they stay on their nodes"
    ]
    failed, large = ran_trace(trace.jobs, trace.objects).jobs
    assert (failed.outcome, failed.end) == ("Failed", 30)
    assert (large.outcome, large.start) == ("Waiting", None)


@pytest.mark.parametrize(
    ("dump", "why"),
    [
        (b"{", "not JSON: "),
        (b"[" * 100_000, "not JSON: "),
        (b'{"items": ["\xff"]}', "not JSON: "),
        (b'{"kind": "Job"}', "expected a List with items"),
        (b'{"items": 7}', "expected a List with items"),
        (json.dumps({"items": [job("undated")]}).encode(), "1 of 1 objects cannot be read.* default/undated: metadata.creationTimestamp is missing"),
        (b'{"items": [5]}', "1 of 1 objects cannot be read.* object 1: it is not a JSON object"),
        (json.dumps({"items": [node("n") | {"status": 7}]}).encode(), "1 of 1 objects cannot be read.* Node default/n: Expected"),
    ],
)  # fmt: skip
def test_what_is_no_dump(dump: bytes, why: str) -> None:
    with pytest.raises(TraceError, match=why):
        read_cluster_past(dump)


def test_fields_of_wrong_types_raise_nothing() -> None:
    """Each field of a Job and of a pod in turn is something else."""
    wrong: tuple[Any, ...] = (None, 7, "x", [7], {"a": 7})
    whole = created(
        job("a", [task(replicas=2)], minAvailable=1, status=status("Completed", 9, 3)), 1
    )
    member = ran(pod("b", group="g", cpu="1"), 1, 2)
    for raw in (whole, member):
        for path in paths(raw):
            for value in wrong:
                copy = json.loads(json.dumps(raw))
                here = copy
                for name in path[:-1]:
                    here = here[name]
                here[path[-1]] = value
                items = [copy, created(pod_group("g", 1), 1)]
                try:
                    read_cluster_past(json.dumps({"items": items}).encode())
                except TraceError as error:
                    assert "cannot be read" in str(error)  # noqa: PT017 # most of them are read


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each field below a value."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [found for name, each in inner for found in [(*path, name), *paths(each, (*path, name))]]
