"""A namespace whose Jobs an installed scheduler places: its configuration, and what its users see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pumice.api.kinds import EVENT, POD, POD_GROUP
from tests.kit.builders import job, task
from tests.kit.namespaces import Namespace
from tests.kit.waiting import wait_until
from tests.support.forked import run
from tests.support.installation import Installation

Raw = dict[str, Any]

PLACING = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}]
"""
"""Gangs are placed, and no pods are evicted for them."""


class Cluster(Namespace):
    """A namespace, and the installation that schedules its pods."""

    def __init__(self, installation: Installation, name: str) -> None:
        super().__init__(installation.plane, name)
        self.installation = installation

    def configure(self, text: str) -> None:
        """Change the scheduler's configuration, and wait until it says that it is in effect."""
        loaded = self.count('config_reads_total{result="loaded"}')
        self.installation.configure_scheduler(f"# for {self.name}\n{text}")
        wait_until(lambda: self.count('config_reads_total{result="loaded"}') > loaded)

    def count(self, name: str) -> float:
        """A number among the metrics of the scheduler; 0 while there is none."""
        for line in self.installation.metrics("scheduler").splitlines():
            if line.startswith(f"pumice_scheduler_{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def some_cycles(self) -> None:
        """Wait until the scheduler has had the time to decide otherwise."""
        before = self.count("cycles_total")
        wait_until(
            lambda: self.count("cycles_total") >= before + 2, "a cycle that began after this"
        )

    def submit(self, name: str, replicas: int, minimum: int, cpu: str = "1", **spec: Any) -> None:
        """Apply a Job of one task."""
        tasks = [task("w", replicas, cpu=cpu, minAvailable=minimum)]
        self.plane.apply(job(name, tasks, namespace=self.name, minAvailable=minimum, **spec))

    def await_running(self, name: str, count: int) -> dict[str, Raw]:
        """Wait until a Job has so many running pods.

        Returns:
            All of its pods by name.
        """

        def found(pods: dict[str, Raw]) -> dict[str, Raw]:
            mine = {key: pods[key] for key in pods if key.startswith(f"{name}-")}
            return mine if len(running(mine)) == count else {}

        pods: dict[str, Raw] = self.until(POD, found, f"{count} pods of {name} run")
        return pods

    def await_condition(self, name: str, type: str, text: str, status: str = "True") -> Raw:  # noqa: A002
        """Wait until the PodGroup of a Job has a condition whose message has that text."""

        def found(groups: dict[str, Raw]) -> Raw | None:
            for key, group in groups.items():
                for each in (group.get("status") or {}).get("conditions") or ():
                    said = (each["type"], each["status"]) == (type, status)
                    if key.startswith(f"{name}-") and said and text in each.get("message", ""):
                        return dict(each)
            return None

        condition: Raw = self.until(POD_GROUP, found, f"{name} is {type} with {text!r}")
        return condition

    def explain(self, *words: str) -> str:
        """What `pumice explain` prints about an object of this namespace."""
        config = self.installation.scheduler_config
        given = [f"--namespace={self.name}", f"--kubeconfig={self.plane.kubeconfig}"]
        ran = run("explain", *words, *given, f"--config={config}")
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def simulate(self, state: Path) -> Raw:
        """What `pumice simulate` prints about a state, with the scheduler's configuration."""
        config = self.installation.scheduler_config
        ran = run("simulate", f"--state={state}", "--output=json", f"--config={config}")
        assert ran.stdout, ran.stderr
        found: Raw = json.loads(ran.stdout)
        return found

    def group_of(self, name: str) -> str:
        """The name of the PodGroup of a Job."""
        (group,) = (each for each in self.names(POD_GROUP) if each.startswith(f"{name}-"))
        return f"{self.name}/{group}"

    def told(self, pods: Sequence[str], since: str) -> list[str]:
        """What victims were told, in the order in which they are named."""

        def found(events: dict[str, Raw]) -> list[str]:
            told = {
                each["involvedObject"]["name"]: str(each["message"])
                for each in events.values()
                if each["reason"] == "Preempted"
            }
            return [told[name] for name in pods] if set(pods) <= set(told) else []

        messages: list[str] = self.until(EVENT, found, f"events of {pods}", since=since)
        return messages


def running(pods: dict[str, Raw]) -> set[str]:
    """The uids of pods that run and are not about to end."""
    return {
        each["metadata"]["uid"]
        for each in pods.values()
        if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    }
