"""Where an integration test of the scheduler takes place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.kinds import EVENT, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.scheduler import Config, load_config
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings
from tests.kit.builders import pod, pod_group
from tests.kit.stage import Stage

Raw = dict[str, Any]

PERIOD = 0.05
"""Seconds between two cycles; short, so that a test sees many."""


class SchedulerStage(Stage):
    """One for the scheduler."""

    @asynccontextmanager
    async def scheduler(
        self, client: Client | None = None, config: Config | None = None, **settings: Any
    ) -> AsyncIterator[SchedulerWorker]:
        """A scheduler for as long as the block lasts; it is cancelled without warning. It writes reasons at once."""
        defaults: dict[str, Any] = {"period": PERIOD, "delays": ReportDelays()}
        wanted = WorkerSettings(**(defaults | settings))
        worker = SchedulerWorker(client or self.client, config or load_config(None), wanted)
        async with self.alive(worker):
            yield worker

    def gang(
        self, name: str, size: int, cpu: str = "1", queue: str = "default", **fields: Any
    ) -> None:
        """Create a PodGroup and its pods."""
        group = pod_group(name, size, queue=queue)
        self.store.create(group)
        for number in range(size):
            self.store.create(self.pod(f"{name}-{number}", group=name, cpu=cpu, **fields))

    def pod(self, name: str, **fields: Any) -> Raw:
        """A pod as a user writes it."""
        made = pod(name, **fields)
        del made["status"], made["metadata"]["uid"]
        return made

    def nodes_of(self, name: str) -> list[str]:
        """Nodes of the pods whose name begins so, in the order of their names; empty for none."""
        return [
            each["spec"].get("nodeName", "")
            for each in self.all(POD)
            if each["metadata"]["name"].startswith(f"{name}-")
        ]

    def phase(self, name: str) -> str:
        return str((self.find(POD_GROUP, name).get("status") or {}).get("phase", ""))

    def find_running(self, name: str) -> int:
        """Running pods as the status of a PodGroup says."""
        return int((self.find(POD_GROUP, name).get("status") or {}).get("running", 0))

    def conditions(self, name: str) -> dict[str, Raw]:
        """Conditions of a PodGroup by type."""
        found = (self.find(POD_GROUP, name).get("status") or {}).get("conditions") or []
        return {each["type"]: each for each in found}

    def pod_condition(self, name: str) -> Raw:
        """The condition `PodScheduled` of a pod."""
        conditions = (self.find(POD, name).get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == "PodScheduled"), {})

    def events(self, reason: str) -> list[Raw]:
        return [each for each in self.all(EVENT) if each["reason"] == reason]

    def summary(self) -> str:
        phases = (f"{name} {self.phase(name)}" for name in self.names(POD_GROUP))
        return f"PodGroups: {', '.join(phases) or 'none'}; {super().summary()}"
