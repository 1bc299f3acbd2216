"""What a pass over a Job of many pods costs, in calls of functions: times differ from machine to machine."""

import pytest

from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Limits
from pumice.plugins import builtin
from tests.kit.builders import task
from tests.kit.counting import calls
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy

CALLS = 50
"""Of a pass, for a pod that exists. With so many a pass over 10,000 pods takes less than 100 ms."""


def _cost(size: int, *, run: bool) -> int:
    policies = [policy("PodFailed", "RestartPod"), policy("PodEvicted", "RestartTask")]
    plugins: dict[str, list[str]] = {"svc": [], "env": []}
    cluster = FakeCluster(a_job(task("worker", size), policies=policies, plugins=plugins))
    cluster.limits = Limits(window=size)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    if run:
        cluster.run()
    observed, registry = cluster.observed(), builtin()
    return calls(lambda: reconcile(observed, registry=registry, now=cluster.now))


@pytest.mark.parametrize("run", [False, True], ids=["all wait", "all have begun to run"])
def test_a_pass_costs_little_for_each_pod(run: bool) -> None:
    few, many = (_cost(size, run=run) for size in (100, 600))
    assert (many - few) / 500 < CALLS
