"""The real Ray in pods that plugin `ray` has wired: a head, workers that join it, and a client that gives them tasks."""

from __future__ import annotations

from typing import Any

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import ENDS_THE_JOB, pod_spec
from tests.frameworks.programs import TASKS_RAY, file_and
from tests.kit.builders import job, task

SMALL = {
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "80000000",
    "RAY_OVERRIDE_RESOURCES": '{"CPU": 1}',
    "RAY_USAGE_STATS_ENABLED": "0",
}


def node() -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in SMALL.items()]
    containers = [{"name": "ray", "image": "ray", "env": env}]
    return {"terminationGracePeriodSeconds": 1, "containers": containers}


def test_a_client_gives_tasks_to_the_head_and_its_workers(run: Run) -> None:
    client = pod_spec("ray", file_and(TASKS_RAY, "exec python3 /tmp/program.py"))
    client["restartPolicy"] = "Never"
    client["containers"][0]["env"] = [{"name": "HEAD", "value": "rays-head-svc:10001"}]
    tasks = [
        task("head", spec=node()),
        task("worker", 2, spec=node()),
        task("client", spec=client, policies=ENDS_THE_JOB),
    ]
    ran = run(job("rays", tasks, plugins={"ray": []}))
    assert ran.output["rays-client-0"][-1] == "tasks ran on rays-head-0 rays-worker-0 rays-worker-1"
