"""What the components take, beside what the chart asks for them.

The figures in `values.yaml` and in the performance page were measured like this, with 200 Jobs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.quantities import parse_milli
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import CHART, COMPONENTS, Installation

JOBS, IDLE_SECONDS = 40, 5


def requested(component: str) -> dict[str, int]:
    """The chart's requests, in thousandths of a processor and of a byte."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    requests = values[component]["resources"]["requests"]
    return {name: parse_milli(amount) for name, amount in requests.items()}


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def worked(
    controlplane: ControlPlane,
    installation: Installation,
    namespace: str,
    add_node: Callable[..., str],
) -> Installation:
    """An installation that has brought Jobs of five pods each to run."""
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
    for number in range(5):
        add_node(f"wide-{number}", "64")

    def admitted(name: str) -> bool:
        manifest = job(name, [task("w", 5, cpu="1")], plugins={"svc": [], "env": []})
        del manifest["metadata"]["namespace"]
        return controlplane.request("POST", path, manifest)[0] == 201

    wait_until(lambda: admitted("train-0"), "the API server to reach the webhook", 60)
    assert all(admitted(f"train-{number}") for number in range(1, JOBS))

    def running() -> bool:
        _, found = controlplane.request("GET", path)
        phases = [each.get("status", {}).get("state", {}).get("phase") for each in found["items"]]
        return phases == ["Running"] * JOBS

    wait_until(running, "all Jobs to run", 60)
    return installation


def test_what_the_chart_requests_is_what_is_needed(worked: Installation) -> None:
    pids = {name: process.pid for name, process in worked.processes.items()}
    assert set(pids) == set(COMPONENTS)
    for pid in pids.values():  # not forked from a process that has imported more
        assert b"\0-m\0pumice\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    time.sleep(1)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    time.sleep(IDLE_SECONDS)
    found = {
        name: {
            "memory": peak_bytes(pid) * 1000,
            "cpu": round((cpu_seconds(pid) - before[name]) / IDLE_SECONDS * 1000),
        }
        for name, pid in pids.items()
    }
    for name in COMPONENTS:
        wanted = requested(name)
        for resource, amount in found[name].items():
            assert amount <= wanted[resource], f"{name}: {json.dumps(found)}"
