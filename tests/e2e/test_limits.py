"""Three ways to run more than a queue may hold, on the real control plane: none of them works.

Queue `narrow` may hold 4 cpu, and there is room for 16. Whoever is bound to `edit` in a namespace may change its PodGroups and the
annotations of its pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.keys import GROUP_NAME, QUEUE
from pumice.api.kinds import POD, POD_GROUP
from pumice.api.kinds import QUEUE as QUEUES
from tests.e2e.scheduled import Cluster, running
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

Raw = dict[str, Any]

NARROW, WIDE = "limits-narrow", "limits-wide"


@pytest.fixture
def cluster(
    installation: Installation,
    namespace: str,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
) -> Cluster:
    """Four pods that fill their queue, and a Job that waits for room in it."""
    cluster = Cluster(installation, namespace)
    make_queue(NARROW, capability={"cpu": "4"})
    make_queue(WIDE)
    add_node("limits-1", "32")
    cluster.submit("first", 4, 4, queue=NARROW)
    cluster.await_running("first", 4)
    return cluster


def _patch(plane: ControlPlane, path: str, body: Raw) -> tuple[int, Raw]:
    return plane.request("PATCH", path, body, content_type="application/merge-patch+json")


def _group(cluster: Cluster) -> Raw:
    [found] = [
        each for each in cluster.all(POD_GROUP) if each["metadata"]["name"].startswith("first-")
    ]
    return found


def _allocated(cluster: Cluster) -> Raw:
    status, queue = cluster.plane.request("GET", QUEUES.path(NARROW))
    assert status == 200
    found: Raw = queue.get("status", {}).get("allocated") or {}
    return found


def _stays_full(cluster: Cluster, name: str) -> None:
    """Whatever else is submitted gets no place, and is told why."""
    cluster.submit(name, 4, 4, queue=NARROW)
    cluster.await_condition(name, "Unschedulable", f"queue {NARROW}: 4 of 4 cpu used")
    cluster.some_cycles()
    assert len(running(cluster.pods())) == 4
    wait_until(
        lambda: _allocated(cluster).get("cpu") in ("4", "4000m"), "the queue shows what it holds"
    )


def test_a_user_holds_no_more_than_the_queue_under_which_pods_were_bound(cluster: Cluster) -> None:
    plane = cluster.plane
    pods = cluster.pods()
    assert {each["metadata"]["annotations"][QUEUE] for each in pods.values()} == {NARROW}

    # The PodGroup is to name another queue.
    before = _group(cluster)
    path = POD_GROUP.path(before["metadata"]["name"], cluster.name)
    status, answer = _patch(plane, path, {"spec": {"queue": WIDE}})
    assert status == 403 or status == 422, answer
    assert "PG-QUEUE-MOVED" in answer["message"]
    _stays_full(cluster, "second")

    # The PodGroup is deleted: it comes back, and takes its pods again.
    since = cluster.revision(POD_GROUP)
    assert plane.request("DELETE", path)[0] == 200

    def is_back(groups: dict[str, Raw]) -> bool:
        found = groups.get(before["metadata"]["name"])
        is_new = found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]
        return is_new and (found or {}).get("status", {}).get("phase") == "Running"

    cluster.until(POD_GROUP, is_back, "the PodGroup is back and runs", since=since)
    _stays_full(cluster, "third")

    # Pods are to belong to a PodGroup of another queue, and then to be charged to that queue.
    other = {
        "apiVersion": POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "other", "namespace": cluster.name},
        "spec": {"minMember": 1, "queue": WIDE},
    }
    plane.apply(other)
    for name in pods:
        where = POD.path(name, cluster.name)
        status, answer = _patch(plane, where, {"metadata": {"annotations": {GROUP_NAME: "other"}}})
        assert status == 200, answer
    _stays_full(cluster, "fourth")
    for name in pods:
        where = POD.path(name, cluster.name)
        for value in (WIDE, None):
            status, answer = _patch(plane, where, {"metadata": {"annotations": {QUEUE: value}}})
            assert status == 403, answer
            assert "written by the scheduler alone" in answer["message"]

    # A scheduler that is started later knows it, too.
    cluster.installation.restart("scheduler")
    _stays_full(cluster, "fifth")
