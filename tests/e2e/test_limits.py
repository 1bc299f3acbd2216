"""Three ways to run more than a queue may hold, on the real control plane: none of them works.

Queue `narrow` may hold 4 cpu, and there is room for 32. The user may do anything in the namespace, also change its PodGroups, and bind and
annotate its pods, and has no right outside of it.
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


@pytest.fixture
def user(controlplane: ControlPlane, namespace: str) -> str:
    """The bearer token of a user with all rights in the namespace, and no others."""
    group = "rbac.authorization.k8s.io"
    meta = {"name": "everything", "namespace": namespace}
    role = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    ref = {"apiGroup": group, "kind": "Role", "name": "everything"}
    binding = {"roleRef": ref, "subjects": [account]}
    for kind, plural, rest in (("Role", "roles", role), ("RoleBinding", "rolebindings", binding)):
        manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": meta, **rest}
        path = f"/apis/{group}/v1/namespaces/{namespace}/{plural}"
        status, answer = controlplane.request("POST", path, manifest)
        assert status == 201, answer
    token, pods = controlplane.token("default", namespace), POD.collection(namespace)
    wait_until(
        lambda: controlplane.request("GET", pods, token=token)[0] == 200,
        "the role to be in effect, of which the API server learns by watching",
    )
    return token


def _patch(plane: ControlPlane, path: str, body: Raw, token: str | None = None) -> tuple[int, Raw]:
    patch = "application/merge-patch+json"
    return plane.request("PATCH", path, body, content_type=patch, token=token)


def _group(cluster: Cluster) -> Raw:
    [found] = [
        each for each in cluster.all(POD_GROUP) if each["metadata"]["name"].startswith("first-")
    ]
    return found


def _phase(group: Raw) -> str:
    return str((group.get("status") or {}).get("phase", ""))


def _allocated(cluster: Cluster) -> Raw:
    status, queue = cluster.plane.request("GET", QUEUES.path(NARROW))
    assert status == 200
    found: Raw = queue.get("status", {}).get("allocated") or {}
    return found


def _stays_full(cluster: Cluster, name: str) -> None:
    """Whatever else is submitted gets no place, and is told why.

    It is 4 of 4, or 8 of 4 used or reserved: a gang whose pods were given to another one waits for new ones.
    """
    cluster.submit(name, 4, 4, queue=NARROW)
    told = cluster.await_condition(name, "Unschedulable", " of 4 cpu used")
    assert f"queue {NARROW}: " in told["message"]
    cluster.some_cycles()
    assert len(running(cluster.pods())) == 4
    wait_until(
        lambda: _allocated(cluster).get("cpu") in ("4", "4000m"), "the queue shows what it holds"
    )


def _is_refused(found: tuple[int, Raw], namespace: str) -> None:
    status, answer = found
    assert status == 403, answer
    assert "annotation pumice.dev/queue is written by the scheduler alone" in answer["message"]
    assert f"user system:serviceaccount:{namespace}:default may not" in answer["message"]


def test_a_user_holds_no_more_than_the_queue_under_which_pods_were_bound(
    cluster: Cluster, user: str
) -> None:
    plane = cluster.plane
    pods = cluster.pods()
    assert {each["metadata"]["annotations"][QUEUE] for each in pods.values()} == {NARROW}

    # The PodGroup is to name another queue. Its status says that its pods have places soon after they have them.
    before = _group(cluster)
    name = before["metadata"]["name"]
    path = POD_GROUP.path(name, cluster.name)
    cluster.until(POD_GROUP, lambda groups: _phase(groups[name]) == "Running", "it runs")
    status, answer = _patch(plane, path, {"spec": {"queue": WIDE}}, user)
    assert status == 422, answer
    assert "PG-QUEUE-MOVED" in answer["message"]
    _stays_full(cluster, "second")

    # Its status is to say that they have none. Then it moves, and its pods are charged as before.
    def moved() -> bool:
        _patch(plane, path, {"status": {"phase": "Pending", "running": 0}}, user)
        return _patch(plane, path, {"spec": {"queue": WIDE}}, user)[0] == 200

    wait_until(moved, "the PodGroup to move")
    _stays_full(cluster, "moved")

    # The PodGroup is deleted: it comes back, and takes its pods again.
    since = cluster.revision(POD_GROUP)
    assert plane.request("DELETE", path, token=user)[0] == 200

    def is_back(groups: dict[str, Raw]) -> bool:
        found = groups.get(before["metadata"]["name"])
        is_new = found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]
        return is_new and _phase(found or {}) == "Running"

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
        body = {"metadata": {"annotations": {GROUP_NAME: "other"}}}
        status, answer = _patch(plane, where, body, user)
        assert status == 200, answer
    _stays_full(cluster, "fourth")
    for name in pods:
        where = POD.path(name, cluster.name)
        for value in (WIDE, None):
            change = {"metadata": {"annotations": {QUEUE: value}}}
            for path in (where, f"{where}/status"):
                _is_refused(_patch(plane, path, change, user), cluster.name)

    # A scheduler that is started later knows it, too.
    cluster.installation.restart("scheduler")
    _stays_full(cluster, "fifth")


def test_a_user_who_may_bind_pods_of_a_namespace_charges_none_to_a_queue(
    controlplane: ControlPlane, cluster: Cluster, user: str
) -> None:
    """Neither with the Binding nor with a new pod; another scheduler, which may bind pods of all namespaces, does so."""
    metadata: Raw = {"name": "own", "annotations": {QUEUE: WIDE}}
    spec = {"schedulerName": "own", "containers": [{"name": "main", "image": "busybox"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    pods = POD.collection(cluster.name)
    _is_refused(controlplane.request("POST", pods, pod, token=user), cluster.name)
    status, answer = controlplane.request(
        "POST", pods, pod | {"metadata": {"name": "own"}}, token=user
    )
    assert status == 201, answer

    target = {"apiVersion": "v1", "kind": "Node", "name": "limits-1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    where = f"{POD.path('own', cluster.name)}/binding"
    _is_refused(controlplane.request("POST", where, binding, token=user), cluster.name)
    status, answer = controlplane.request("POST", where, binding)
    assert status == 201, answer
    assert cluster.get(POD, "own")["metadata"]["annotations"][QUEUE] == WIDE
