"""Pods that are deleted while they run, on a real API server; the test is the kubelet that ends them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD, QUEUE
from pumice.api.meta import format_time
from tests.e2e.scheduled import Cluster
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.installation import Installation

Raw = dict[str, Any]

HOLD = "example.com/kubelet"
"""While a pod has this finalizer, kwok leaves its end to the test."""
MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster(installation: Installation, namespace: str, add_node: Callable[..., str]) -> Cluster:
    add_node(f"{namespace}-n")
    wait_until(
        lambda: installation.plane.request("GET", QUEUE.path("default"))[0] == 200,
        "the scheduler to create the default queue",
    )
    return Cluster(installation, namespace)


class Kubelet:
    """Ends a pod as kubelet does."""

    def __init__(self, cluster: Cluster, pod: str) -> None:
        self._plane = cluster.plane
        self._path = POD.path(pod, cluster.name)
        self._patch({"metadata": {"finalizers": [HOLD]}})

    def report_success(self) -> None:
        """The container has exited 0 now."""
        ended = {"exitCode": 0, "finishedAt": format_time(time.time())}
        statuses = [{"name": "main", "image": "x", "imageID": "", "ready": False}]
        statuses[0] |= {"restartCount": 0, "state": {"terminated": ended}}
        self._patch({"status": {"phase": "Succeeded", "containerStatuses": statuses}}, "/status")

    def delete(self, grace: int) -> None:
        """Request the removal; with 0 kubelet finishes it."""
        status, answer = self._plane.request("DELETE", self._path, {"gracePeriodSeconds": grace})
        assert status < 300, answer

    def forget(self) -> None:
        """The pod is gone."""
        self._patch({"metadata": {"finalizers": None}})

    def _patch(self, patch: Raw, part: str = "") -> None:
        status, answer = self._plane.request("PATCH", self._path + part, patch, content_type=MERGE)
        assert status == 200, answer


def _next_second() -> None:
    time.sleep(1.1 - time.time() % 1.0)


def _started(cluster: Cluster, policies: list[Raw]) -> str:
    """A Job of two pods that run; the uid of the first one."""
    one = task(
        "w", 2, cpu="1", spec={"nodeSelector": {"kubernetes.io/hostname": f"{cluster.name}-n"}}
    )
    cluster.plane.apply(
        job("train", [one], namespace=cluster.name, minAvailable=2, policies=policies)
    )
    pods = cluster.await_running("train", 2)
    cluster.until(
        JOB,
        lambda found: "w/0-1" in str(found["train"]["status"].get("controlledResources")),
        "both pods are noted",
    )
    return str(pods["train-w-0"]["metadata"]["uid"])


@contextmanager
def _stopped(installation: Installation) -> Iterator[None]:
    """The controller does not run for a while; its watches go on where they were."""
    pid = installation.processes["controller"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def _killed(installation: Installation) -> Iterator[None]:
    """The controller dies, and another one sees only what is left."""
    installation.stop_leader("controller")
    try:
        yield
    finally:
        installation.start("controller")


@contextmanager
def _working(installation: Installation) -> Iterator[None]:
    yield


@pytest.mark.parametrize("controller", [_working, _stopped, _killed])
def test_a_pod_that_exits_0_because_it_is_deleted_was_evicted(
    cluster: Cluster, controller: Callable[[Installation], Any]
) -> None:
    """The request for its removal is known, or the last state alone is, or only that the pod is gone."""
    first = _started(cluster, [{"event": "PodEvicted", "action": "RestartPod"}])
    kubelet = Kubelet(cluster, "train-w-0")
    with controller(cluster.installation):
        kubelet.delete(30)
        _next_second()
        kubelet.report_success()
        _next_second()
        kubelet.delete(0)
        if controller is not _killed:
            kubelet.forget()
    if controller is _killed:
        kubelet.forget()

    pods = cluster.await_running("train", 2)
    assert pods["train-w-0"]["metadata"]["uid"] != first
    status = cluster.get(JOB, "train")["status"]
    assert status["controlledResources"]["pumice.dev/retries"] == "pod/w/0=1/0"
    assert "succeeded" not in status


@pytest.mark.parametrize("controller", [_working, _stopped])
def test_a_pod_that_had_succeeded_is_not_run_again(
    cluster: Cluster, controller: Callable[[Installation], Any]
) -> None:
    _started(cluster, [{"event": "PodEvicted", "action": "RestartPod"}])
    kubelet = Kubelet(cluster, "train-w-0")
    with controller(cluster.installation):
        kubelet.report_success()
        _next_second()
        kubelet.delete(0)
        kubelet.forget()

    cluster.until(
        JOB, lambda found: found["train"]["status"].get("succeeded") == 1, "the pod counts"
    )
    assert cluster.names(POD) == ["train-w-1"]
    assert "pumice.dev/retries" not in cluster.get(JOB, "train")["status"]["controlledResources"]
