"""Where an integration test of the controller takes place, and the parts that it plays itself."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pumice.api import kinds
from pumice.api.kinds import COMMAND, EVENT, JOB, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.embedded import ApiStatusError
from pumice.plugins import Registry, builtin
from tests.kit.stage import Stage

Raw = dict[str, Any]

LEFT_BEHIND = (
    POD,
    POD_GROUP,
    kinds.SERVICE,
    kinds.CONFIG_MAP,
    kinds.NETWORK_POLICY,
    COMMAND,
    JOB,
)


class ControllerStage(Stage):
    """One for the controller, with a scheduler that says yes to everything."""

    @asynccontextmanager
    async def controller(
        self,
        client: Client | None = None,
        *,
        registry: Registry | None = None,
        **settings: Any,
    ) -> AsyncIterator[ControllerWorker]:
        """A controller for as long as the block lasts; it is cancelled without warning."""
        wanted = ControllerSettings(**{"namespace": self.namespace} | settings)
        worker = ControllerWorker(client or self.client, registry or builtin(), wanted)
        async with self.alive(worker):
            yield worker

    async def schedule(self) -> None:
        """Let every group enqueue and bind every pod, as they come."""
        seen = -1
        while True:
            if self.store.storage.revision != seen:
                seen = self.store.storage.revision
                await self.schedule_once()
            await asyncio.sleep(0.003)

    async def schedule_once(self) -> None:
        """Do so for what there is now."""
        for group in self.all(POD_GROUP):
            if (group.get("status") or {}).get("phase") == "Pending":
                self.admit(group)
        for pod in self.all(POD):
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
                await self.client.bind(self.namespace, pod["metadata"]["name"], "node1")

    def admit(self, group: Raw, phase: str = "Inqueue", **status: Any) -> None:
        group["status"] = {"phase": phase} | status
        try:
            self.store.update(group)
        except ApiStatusError as error:
            if error.code != 409:  # the controller was faster; the next look shows it
                raise

    async def submit(self, manifest: Raw) -> Raw:
        metadata = manifest["metadata"] | {"namespace": self.namespace}
        return await self.client.create(JOB, manifest | {"metadata": metadata})

    async def command(self, action: str, name: str = "train") -> None:
        job = self.job(name)
        target = {"apiVersion": JOB.api_version, "kind": "Job", "name": name}
        await self.client.create(
            COMMAND,
            {
                "apiVersion": COMMAND.api_version,
                "kind": "Command",
                "metadata": {"name": f"{name}-{action.lower()}", "namespace": self.namespace},
                "action": action,
                "target": target | {"uid": job["metadata"]["uid"]},
            },
        )

    def job(self, name: str = "train") -> Raw:
        found = self.find(JOB, name)
        assert found
        return found

    def phase(self, name: str = "train") -> str:
        found = self.find(JOB, name)
        return str(((found.get("status") or {}).get("state") or {}).get("phase", ""))

    def reason(self, name: str = "train") -> tuple[str, str]:
        state = (self.job(name).get("status") or {}).get("state") or {}
        return state.get("reason", ""), state.get("message", "")

    def status(self, count: str, name: str = "train") -> int:
        """One of the counts in a Job's status."""
        return int((self.find(JOB, name).get("status") or {}).get(count) or 0)

    def pod_phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.all(POD)}

    def finish(self, name: str, exit_code: int = 0) -> None:
        """A pod ends by itself."""
        pod = self.find(POD, name)
        pod["status"]["phase"] = "Failed" if exit_code else "Succeeded"
        ended = {"terminated": {"exitCode": exit_code, "reason": "Error"}}
        pod["status"]["containerStatuses"] = [
            {
                "name": "main",
                "ready": False,
                "restartCount": 0,
                "image": "",
                "imageID": "",
                "state": ended,
            }
        ]
        self.store.update_status(pod)

    def events(self) -> list[tuple[str, str]]:
        return [(event["type"], event["reason"]) for event in self.all(EVENT)]

    def summary(self) -> str:
        jobs = (f"{name} {self.phase(name)}" for name in self.names(JOB))
        return f"Jobs: {', '.join(jobs) or 'none'}; {super().summary()}"

    def end(self) -> dict[str, Raw]:
        """Everything that there is, without what differs from one telling to the next."""
        found: dict[str, Raw] = {}
        for kind in LEFT_BEHIND:
            for each in self.all(kind):
                obj = _without_times(copy.deepcopy(each))
                for key in ("uid", "resourceVersion", "namespace", "managedFields", "generation"):
                    obj["metadata"].pop(key, None)
                for owner in obj["metadata"].get("ownerReferences", ()):
                    owner.pop("uid")
                obj["metadata"].get("annotations", {}).pop("scheduling.k8s.io/group-name", None)
                obj["metadata"].get("labels", {}).pop("volcano.sh/job-namespace", None)
                for address in ("podIP", "podIPs"):
                    (obj.get("status") or {}).pop(address, None)
                found[f"{kind.kind} {each['metadata']['name']}"] = obj
        return found


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_times(each)
            for key, each in value.items()
            if not key.endswith(("Time", "Timestamp", "At")) and key != "runningDuration"
        }
    return [_without_times(each) for each in value] if isinstance(value, list) else value
