"""Jobs that are as large as the API server takes them, shaped to be dear to plan: a pass over one stops the others for a moment only."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from pumice.controller.jobs.reconcile import reconcile
from pumice.plugins import builtin
from tests.kit.builders import task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job

Raw = dict[str, Any]

PASS_SECONDS = 2.0
"""Of a processor, for a pass: the Lease is renewed in less, and a machine that does other things, too, needs more than a fast one."""

HOSTILE: dict[str, tuple[int, Callable[[int], list[Raw]]]] = {
    "tasks": (6_000, lambda count: [task(f"t{each}") for each in range(count)]),
    "tasks of which each pod is told": (
        1_500,
        lambda count: [task(f"t{each}") for each in range(count)],
    ),
    "tasks that wait for the one before": (
        6_000,
        lambda count: [
            task(f"t{each}", dependsOn={"name": [f"t{each - 1}"]} if each else None)
            for each in range(count)
        ],
    ),
    "tasks that wait for all before": (
        500,
        lambda count: [
            task(f"t{each}", dependsOn={"name": [f"t{other}" for other in range(each)]})
            for each in range(count)
        ],
    ),
    "a task that waits for the last one many times": (
        3_000,
        lambda count: [
            task("first", dependsOn={"name": [f"t{count - 1}"] * 20 * count}),
            *(task(f"t{each}") for each in range(count)),
        ],
    ),
}
"""Tasks, each for a number of them."""

PLUGINS: dict[str, Raw] = {"tasks of which each pod is told": {"svc": []}}

POLICIES = [
    {"event": "PodEvicted", "action": "RestartJob", "timeout": "1h"},
    {"event": "TaskCompleted", "action": "CompleteJob"},
    *({"exitCode": code, "action": "RestartPod"} for code in range(1, 500)),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pass_over_a_hostile_job_takes_no_longer_than_the_lease(name: str) -> None:
    count, tasks = HOSTILE[name]
    cluster = FakeCluster(a_job(*tasks(count), policies=POLICIES, plugins=PLUGINS.get(name, {})))
    registry = builtin()
    for admit in (False, True):
        if admit:
            cluster.settle()
            cluster.admit()
        observed = cluster.observed()
        started = time.process_time()
        plan = reconcile(observed, registry=registry, now=cluster.now)
        assert time.process_time() - started < PASS_SECONDS
        assert any(plan.steps)
