"""What a pass over a Job of many pods costs, in calls of functions: times differ from machine to machine."""

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.api.meta import format_time
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Limits
from pumice.plugins import builtin
from tests.kit.builders import task
from tests.kit.counting import calls
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy

Raw = dict[str, Any]
Happens = Callable[[FakeCluster], None]

CALLS = 50
"""Of a pass, for a pod that exists. With so many a pass over 10,000 pods takes less than 100 ms."""

EVENTS = 75
"""Of a pass in which a policy concerns every pod."""


def _cluster(size: int, policies: list[Raw], *, run: bool = True) -> FakeCluster:
    plugins: dict[str, list[str]] = {"svc": [], "env": []}
    cluster = FakeCluster(a_job(task("worker", size), policies=policies, plugins=plugins))
    cluster.limits = Limits(window=size)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    if run:
        cluster.run()
        cluster.settle()
    return cluster


def _cost(cluster: FakeCluster) -> int:
    observed, registry = cluster.observed(), builtin()
    return calls(lambda: reconcile(observed, registry=registry, now=cluster.now))


def _end(cluster: FakeCluster, phase: str, code: int, ran: float) -> None:
    end = {"exitCode": code, "finishedAt": format_time(cluster.now)}
    end["startedAt"] = format_time(cluster.now - ran)
    containers = [{"name": "main", "state": {"terminated": end}}]
    for pod in cluster.of(POD):
        pod["status"] = {"phase": phase, "containerStatuses": containers}


def _nothing(_: FakeCluster) -> None:
    pass


def _succeed(cluster: FakeCluster) -> None:
    _end(cluster, "Succeeded", 0, 60)


def _fail(cluster: FakeCluster) -> None:
    _end(cluster, "Failed", 1, 60)


def _fail_again(cluster: FakeCluster) -> None:
    size = len(list(cluster.of(POD)))
    notes = cluster.status["controlledResources"]
    notes["pumice.dev/retries"] = f"task/worker=1/1 pod/worker/0-{size - 1}=1/1"
    _fail(cluster)


def _restart(cluster: FakeCluster) -> None:
    _fail(cluster)
    cluster.look()
    assert cluster.phase == "Restarting"


def _evict(cluster: FakeCluster) -> None:
    for pod in cluster.of(POD):
        pod["metadata"]["deletionTimestamp"] = format_time(cluster.now)


def _go(cluster: FakeCluster) -> None:
    for pod in list(cluster.of(POD)):
        cluster.vanish(pod["metadata"]["name"])


def _go_and_come(cluster: FakeCluster) -> None:
    """The pods are evicted and created again, and do not run yet."""
    _go(cluster)
    for _ in range(4):
        cluster.look()
    assert cluster.pods


@pytest.mark.parametrize(
    ("happens", "bound", "rule"),
    [
        pytest.param(happens, bound, rule, id=f"{happens.__name__[1:]}: {rule['action']}")
        for happens, bound, rule in (
            (_nothing, 33, policy("PodFailed", "RestartPod")),
            (_succeed, CALLS, policy("PodFailed", "RestartPod")),
            (_fail, EVENTS, policy("PodFailed", "RestartTask")),
            (_fail, EVENTS, policy("PodFailed", "RestartPod")),
            (_fail_again, EVENTS, policy("PodFailed", "RestartTask")),
            (_fail_again, EVENTS, policy("PodFailed", "RestartPod")),
            (_restart, 48, policy("PodFailed", "RestartPod")),
            (_evict, CALLS, policy("PodEvicted", "RestartTask")),
            (_evict, EVENTS, policy("PodEvicted", "RestartPod")),
            (_go, CALLS, policy("PodEvicted", "RestartPod")),
            (_go, CALLS, policy("PodEvicted", "RestartPod", timeout="10m")),
            (_go_and_come, EVENTS, policy("PodEvicted", "RestartTask", timeout="10m")),
        )
    ],
)
def test_a_pass_costs_little_for_each_pod(happens: Happens, bound: int, rule: Raw) -> None:
    """Whatever happens to all pods of a Job at once."""
    costs = []
    for size in (100, 600):
        cluster = _cluster(size, [rule])
        happens(cluster)
        costs.append(_cost(cluster))
    assert (costs[1] - costs[0]) / 500 < bound


def test_pods_that_wait_cost_little() -> None:
    policies = [policy("PodFailed", "RestartPod"), policy("PodEvicted", "RestartTask")]
    few, many = (_cost(_cluster(size, policies, run=False)) for size in (100, 600))
    assert (many - few) / 500 < CALLS
