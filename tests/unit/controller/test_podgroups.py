"""The PodGroup of a Job."""

from typing import Any

import pytest

from pumice.api import keys
from pumice.controller.jobs.job_group import wanted
from pumice.controller.jobs.subject import read
from pumice.controller.podgroups import (
    is_current,
    phase_of,
    update,
)
from tests.kit.builders import job, task
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import merge
from tests.unit.controller.rows import a_job

Raw = dict[str, Any]

CASES: list[Raw] = table("controller/pod-groups")


def _wanted(*tasks: Raw, waiting: tuple[str, ...] = (), **fields: Any) -> Raw:
    return wanted(read(job("job1", list(tasks), uid="u1", **fields)), {}, waiting)


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_a_group_asks_for(case: Raw) -> None:
    group = wanted(read(a_job(case)), {})
    assert group["metadata"]["name"] == case.get("name", "job1-u1")
    if "before" in case:
        stored = _stored(wanted(read(a_job(case["before"])), {}), phase="Running")
        merge(stored, update(stored, group))
        assert update(stored, group) == {}
        assert stored["status"] == {"phase": "Running"}
        group = stored
    assert {key: group["spec"].get(key) for key in case["spec"]} == case["spec"]


@pytest.mark.parametrize(
    ("own", "pods", "found"),
    [
        ("high", ["high", "low"], "low"),
        ("high", ["low", ""], "low"),
        ("low", ["high"], "low"),
        ("high", ["unknown"], "high"),
        ("unknown", ["high", "negative"], "negative"),
        ("high", ["same"], "high"),
        ("", ["low"], None),
    ],
)
def test_its_priority_is_no_higher_than_that_of_the_pods(
    own: str, pods: list[str], found: str | None
) -> None:
    """Quotas limit pods by their priority, and a gang enters its queue before it has pods."""
    tasks = [
        task(f"t{place}", spec={"priorityClassName": name} if name else None)
        for place, name in enumerate(pods)
    ]
    none = task("none", 0, spec={"priorityClassName": "negative"})
    made = read(job("job1", [*tasks, none], uid="u1", priorityClassName=own))
    priorities = {"high": 1000, "same": 1000, "low": 10, "negative": -1}
    assert wanted(made, priorities)["spec"].get("priorityClassName") == found
    strict = wanted(made, priorities, strict=True)
    assert strict["spec"].get("priorityClassName") == (own or None)


def test_labels_and_annotations_of_the_job_are_copied_but_not_kubectls_copy() -> None:
    group = _wanted(task(), annotations={"note": "x", keys.LAST_APPLIED: "{}"})
    assert group["metadata"]["annotations"] == {
        "note": "x",
        "volcano.sh/job-version": "0",
        "pumice.dev/copied": ";note",
    }


def test_labels_and_annotations_that_the_job_no_longer_has_leave_the_group() -> None:
    before = job("job1", [task()], uid="u1", annotations={"old": "1", "kept": "1"})
    before["metadata"]["labels"] = {"team": "a", "stage": "b"}
    stored = _stored(wanted(read(before), {}))
    stored["metadata"]["labels"]["example.com/added"] = "x"
    stored["metadata"]["annotations"]["example.com/added"] = "x"
    after = job("job1", [task()], uid="u1", annotations={"kept": "2"})
    after["metadata"]["labels"] = {"team": "a"}
    merge(stored, update(stored, wanted(read(after), {})))
    assert stored["metadata"]["labels"] == {"team": "a", "example.com/added": "x"}
    assert stored["metadata"]["annotations"] == {
        "kept": "2",
        "example.com/added": "x",
        "volcano.sh/job-version": "0",
        "pumice.dev/copied": "team;kept",
    }
    assert update(stored, wanted(read(after), {})) == {}
    merge(stored, update(stored, wanted(read(job("job1", [task()], uid="u1")), {})))
    assert stored["metadata"]["labels"] == {"example.com/added": "x"}
    assert stored["metadata"]["annotations"] == {
        "example.com/added": "x",
        "volcano.sh/job-version": "0",
    }


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
    """Also what Volcano leaves as it was: queue, topology, stale tasks."""
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
