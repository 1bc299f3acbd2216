"""The real Ray in pods that plugin `ray` has wired: a head, workers that join it, and a client that gives them tasks."""

from __future__ import annotations

from typing import Any

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import pod_spec
from tests.frameworks.programs import TASKS_RAY, file_and
from tests.kit.builders import job, task
from tests.support.pods.wired import wired

PATIENCE = 150.0
"""Seconds; a node of Ray takes some five of CPU to start."""

SMALL = {
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "80000000",
    "RAY_OVERRIDE_RESOURCES": '{"CPU": 1}',
    "RAY_USAGE_STATS_ENABLED": "0",
}


def node() -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in SMALL.items()]
    return {"containers": [{"name": "ray", "image": "ray", "env": env}]}


async def test_a_client_gives_tasks_to_the_head_and_its_workers(run: Run) -> None:
    client = pod_spec("ray", file_and(TASKS_RAY, "exec python3 /tmp/program.py"))
    client["containers"][0]["env"] = [{"name": "HEAD", "value": "rays-head-0.rays:10001"}]
    tasks = [task("head", spec=node()), task("worker", 2, spec=node()), task("client", spec=client)]
    running = run(await wired(job("rays", tasks, plugins={"ray": []})))
    running.start()
    written = running["rays-client-0"].wait(PATIENCE)
    hosts = "rays-head-0 rays-worker-0 rays-worker-1"
    assert f"tasks ran on {hosts}" in written.splitlines()
