"""The PodGroup of a Job."""

from typing import Any

import pytest

from pumice.controller.podgroups import (
    LAST_APPLIED,
    condition_of,
    is_current,
    phase_of,
    update,
    wanted,
)
from pumice.controller.subject import read
from tests.builders import job, task

Raw = dict[str, Any]


def _wanted(*tasks: Raw, waiting: tuple[str, ...] = (), **fields: Any) -> Raw:
    return wanted(read(job("job1", list(tasks), uid="u1", **fields)), {}, waiting)


def _partitioned(**policy: Any) -> Raw:
    return task("task1", 6, partitionPolicy={"totalPartitions": 2, "partitionSize": 3} | policy)


def _stored(group: Raw, **status: Any) -> Raw:
    metadata = group["metadata"] | {"uid": "g1", "resourceVersion": "7"}
    return group | {"metadata": metadata, "status": status}


def test_it_is_the_jobs_and_asks_for_its_minimum() -> None:
    group = _wanted(
        task("ps", 2, cpu="1"),
        task("worker", 4, cpu="2", minAvailable=3),
        queue="research",
        priorityClassName="high",
    )
    assert group["metadata"]["name"] == "job1-u1"
    assert group["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert group["status"] == {"phase": "Pending"}
    assert group["spec"] == {
        "minMember": 5,
        "minTaskMember": {"ps": 2, "worker": 3},
        "queue": "research",
        "priorityClassName": "high",
        "minResources": {"cpu": "8", "requests.cpu": "8", "pods": "5", "count/pods": "5"},
    }


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [({}, 6), ({"minPartitions": 1}, 3), ({"minPartitions": 2}, 6)],
    ids=["AC-12", "AC-13", "both"],
)
def test_partitions_count_towards_the_minimum(policy: Raw, minimum: int) -> None:
    assert _wanted(_partitioned(**policy))["spec"]["minTaskMember"] == {"task1": minimum}


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, {"mode": "hard", "highestTierAllowed": 1}),
        ({"mode": "soft", "highestTierName": "rack"}, {"mode": "soft", "highestTierName": "rack"}),
        ({}, {"mode": "hard"}),
    ],
)
def test_network_topology_of_the_job_and_of_partitions(topology: Raw, expected: Raw) -> None:
    """AC-26."""
    policy = _partitioned(minPartitions=1, networkTopology=topology)
    spec = _wanted(policy, networkTopology=topology)["spec"]
    assert spec["networkTopology"] == expected
    assert spec["subGroupPolicy"] == [
        {
            "name": "task1",
            "subGroupSize": 3,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "task1"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": expected,
        }
    ]


def test_no_minimum_of_partitions_is_said_as_zero() -> None:
    """AC-28."""
    assert _wanted(_partitioned())["spec"]["subGroupPolicy"][0]["minSubGroups"] == 0


def test_labels_and_annotations_of_the_job_are_copied_but_not_kubectls_copy() -> None:
    group = _wanted(task(), annotations={"note": "x", LAST_APPLIED: "{}"})
    assert group["metadata"]["annotations"] == {"note": "x", "volcano.sh/job-version": "0"}


def test_tasks_that_must_wait_are_not_counted() -> None:
    group = _wanted(task("master", 1, cpu="1"), task("worker", 4, cpu="1"), waiting=("worker",))
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["minTaskMember"] == {"master": 1}
    assert group["spec"]["minResources"]["pods"] == "1"


def test_a_group_that_is_as_wanted_needs_no_update() -> None:
    group = _wanted(task(cpu="1"), annotations={"note": "x"})
    metadata = group["metadata"]["annotations"] | {"somebody.else/note": "y"}
    stored = _stored(group, phase="Running")
    stored["metadata"]["annotations"] = metadata
    assert update(stored, group) == {}


def test_an_update_changes_what_differs_and_spares_the_status() -> None:
    """AC-10, and what Volcano leaves as it was: queue, topology, stale tasks."""
    stored = _stored(_wanted(task("old", 2), task("kept", 1), queue="a"), phase="Running")
    target = _wanted(task("kept", 3), queue="b", priorityClassName="new", networkTopology={})
    patch = update(stored, target)
    assert patch["metadata"] == {"uid": "g1", "resourceVersion": "7"}
    assert "status" not in patch
    assert patch["spec"]["minTaskMember"] == {"kept": 3, "old": None}
    assert patch["spec"]["queue"] == "b"
    assert patch["spec"]["priorityClassName"] == "new"
    assert patch["spec"]["networkTopology"] == {"mode": "hard"}
    assert "minMember" not in patch["spec"]


def test_a_new_incarnation_sends_the_group_back_to_pending() -> None:
    stored = _stored(_wanted(task()), phase="Running", running=1)
    target = _wanted(task(), status={"version": 1})
    assert not is_current(stored, target)
    assert update(stored, target) == {
        "metadata": {
            "annotations": {"volcano.sh/job-version": "1"},
            "uid": "g1",
            "resourceVersion": "7",
        },
        "status": {"phase": "Pending", "conditions": None},
    }


@pytest.mark.parametrize(
    ("status", "phase"),
    [({}, "Pending"), ({"phase": ""}, "Pending"), ({"phase": "Inqueue"}, "Inqueue")],
)
def test_a_group_without_a_phase_is_pending(status: Raw, phase: str) -> None:
    assert phase_of({"status": status}) == phase


def _condition(type_: str, at: str, status: str = "True") -> Raw:
    return {
        "type": type_,
        "status": status,
        "reason": f"{type_}Reason",
        "message": f"{type_} message",
        "lastTransitionTime": at,
    }


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
UNFIT = ("UnschedulableReason", "Unschedulable message")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([_condition("Unschedulable", EARLY)], UNFIT),
        ([_condition("Scheduled", EARLY), _condition("Unschedulable", LATE)], UNFIT),
        ([_condition("Unschedulable", EARLY), _condition("Scheduled", LATE)], None),
        ([_condition("Unschedulable", EARLY), _condition("Scheduled", EARLY)], None),
        ([_condition("Unschedulable", LATE, "False")], None),
    ],
    ids=["AC-16", "AC-17", "AC-18", "AC-19", "same second", "no longer"],
)
def test_the_newest_condition_says_whether_the_group_fits(
    conditions: list[Raw], expected: tuple[str, str] | None
) -> None:
    assert condition_of({"status": {"conditions": conditions}}) == expected
