"""Jobs of several kinds, each from its creation to its deletion, and what each must come to on the way.

A scenario waits for as long as it takes; what it waits for is shown if it is not over in time. Where something must happen
a certain number of times, the number is checked.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pumice.api.kinds import COMMAND, JOB, POD
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.errors import NotFound
from tests.kill.parts import Gate
from tests.kill.pod_history import PodHistories
from tests.kit.builders import job, task

Raw = dict[str, Any]

RETRIES = "pumice.dev/retries"


@dataclass
class ScenarioContext:
    """What all scenarios share.

    Attributes:
        client: Session with the API server.
        namespace: Of all Jobs.
        jobs: The Jobs.
        histories: The pods.
        gate: Every write passes it.
        violations: What must not happen and did.
    """

    client: Client
    namespace: str
    jobs: WatchCache[Raw]
    histories: PodHistories
    gate: Gate
    violations: list[str] = field(default_factory=list)


class JobScenario:
    """One Job, from its creation to its deletion.

    Attributes:
        name: Its name.
        random: Decides what is left to chance.
        awaits: What it waits for.
    """

    def __init__(self, context: ScenarioContext, name: str, seed: str) -> None:
        self.name = name
        self.random = random.Random(seed)
        self.awaits = "its turn"
        self._context = context

    # What it sees

    @property
    def job(self) -> Raw:
        return self._context.jobs.get(self.name, self._context.namespace) or {}

    @property
    def status(self) -> Raw:
        return self.job.get("status") or {}

    @property
    def phase(self) -> str:
        return str((self.status.get("state") or {}).get("phase", ""))

    @property
    def retries(self) -> str:
        return str((self.status.get("controlledResources") or {}).get(RETRIES, ""))

    def living(self) -> dict[str, str]:
        """Pods that are there and run, uids by name."""
        return {
            each.name: uid
            for uid, each in self._context.histories.pods.items()
            if each.job == self.name and each.ran is not None and not (each.gone or each.ended)
        }

    def existing(self) -> int:
        """Number of pods that are there."""
        return sum(not each.gone for each in self._context.histories.of(self.name))

    def described(self) -> str:
        """Its status and all its pods, for a Job that is stuck."""
        pods = "\n".join(map(str, self._context.histories.of(self.name)))
        return f"{json.dumps(self.status)}\n{pods}"

    def expect(self, holds: bool, what: str) -> None:
        """Note a violation unless something holds."""
        if not holds:
            self._context.violations.append(f"Job {self.name}: {what}")

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        self.awaits = what
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def reaches(self, phase: str, **counts: int) -> None:
        """Wait for a phase with counts."""

        def reached() -> bool:
            found = {key: self.status.get(key) or 0 for key in counts}
            return self.phase == phase and found == counts

        await self.until(f"{phase} with {counts}", reached)

    # What it does

    async def submit(self, *tasks: Raw, **spec: Any) -> None:
        """Create the Job."""
        manifest = job(
            self.name, list(tasks), plugins={"svc": [], "env": []}, queue="default", **spec
        )
        del manifest["metadata"]["namespace"]
        async with self._context.gate.passed():
            await self._context.client.create(JOB, manifest, self._context.namespace)
        await self.until("the Job to be seen", lambda: bool(self.job))

    async def patch(self, patch: Raw | list[Raw]) -> None:
        """Change the Job."""
        async with self._context.gate.passed():
            await self._context.client.patch(JOB, self.name, self._context.namespace, patch)

    async def scale(self, replicas: int) -> None:
        """Change the number of pods of the only task."""
        tasks = self.job["spec"]["tasks"]
        await self.patch({"spec": {"tasks": [tasks[0] | {"replicas": replicas}]}})

    async def command(self, action: str) -> None:
        """Send a Command."""
        uid = self.job["metadata"]["uid"]
        target = {"apiVersion": JOB.api_version, "kind": "Job", "name": self.name, "uid": uid}
        head = {"apiVersion": COMMAND.api_version, "kind": "Command"}
        metadata = {"name": f"{self.name}-{action.lower()}"}
        command = head | {"metadata": metadata, "action": action, "target": target}
        async with self._context.gate.passed():
            await self._context.client.create(COMMAND, command, self._context.namespace)

    async def remove(self, pod: str, uid: str) -> None:
        """Delete a pod, as an eviction does."""
        async with self._context.gate.passed():
            await self._context.client.delete(POD, pod, self._context.namespace, uid=uid)

    async def delete(self) -> None:
        """Delete the Job, and wait until its pods have gone."""
        context = self._context
        try:
            async with context.gate.passed():
                await context.client.delete(
                    JOB, self.name, context.namespace, propagation="Background"
                )
        except NotFound:
            self.expect(False, "is gone although nothing has deleted it")
        await self.until("its deletion", lambda: not self.job)
        await self.until("its pods to go", lambda: not self.existing())

    def count(self, expected: dict[str, int]) -> None:
        """Check how many pods of each name there have been."""
        found = dict(self._context.histories.incarnations(self.name))
        self.expect(found == expected, f"had pods {found} instead of {expected}")

    def follows(self, earlier: str, later: str) -> None:
        """Check that a task was created only when all pods of another one ran."""
        pods = self._context.histories.of(self.name)
        began = [each.created for each in pods if each.task == later]
        ran = [each.ran for each in pods if each.task == earlier]
        known = [moment for moment in ran if moment is not None]
        in_order = len(known) == len(ran) and max(known, default=0) < min(began, default=0)
        self.expect(in_order, f"task {later} began at {began}, and task {earlier} ran at {ran}")


def _worker(replicas: int, seconds: float | None = None, code: int = 0, name: str = "w") -> Raw:
    """A task; its pods run forever without seconds."""
    annotations = {"pumice.dev/exit-code": str(code)}
    if seconds is not None:
        annotations["pumice.dev/run-duration"] = f"{int(seconds * 1000)}ms"
    return task(name, replicas, cpu="1", memory="1Gi", annotations=annotations)


async def completes(scenario: JobScenario) -> None:
    size = scenario.random.randint(2, 6)
    await scenario.submit(_worker(size, scenario.random.uniform(0.2, 3)), minAvailable=size)
    await scenario.reaches("Completed", succeeded=size)
    scenario.count({f"{scenario.name}-w-{index}": 1 for index in range(size)})


async def fails(scenario: JobScenario) -> None:
    size = scenario.random.randint(1, 3)
    await scenario.submit(_worker(size, 0.5, code=3), minAvailable=size)
    await scenario.reaches("Failed", failed=size)
    scenario.count({f"{scenario.name}-w-{index}": 1 for index in range(size)})


def _restarting(action: str, message: str, good: int) -> Callable[[JobScenario], Awaitable[None]]:
    """A pod fails each time, and its restarts are counted."""

    async def restarts(scenario: JobScenario) -> None:
        policies = [{"event": "PodFailed", "action": action}]
        bad = _worker(1, 0.3, code=1, name="bad")
        partition = {"partitionPolicy": {"totalPartitions": 1, "partitionSize": 1}}
        tasks = [bad | partition if action == "RestartPartition" else bad, _worker(2, name="good")]
        await scenario.submit(*tasks, minAvailable=3, maxRetry=2, policies=policies)
        await scenario.until("Failed", lambda: scenario.phase == "Failed")
        found = scenario.status["state"].get("message", "")
        wanted = message.format(name=scenario.name)
        scenario.expect(wanted in found, f"has the message {found!r} instead of {wanted!r}")
        expected = {f"{scenario.name}-bad-0": 2}
        scenario.count(expected | {f"{scenario.name}-good-{index}": good for index in range(2)})

    return restarts


async def is_evicted(scenario: JobScenario) -> None:
    policies = [{"event": "PodEvicted", "action": "RestartTask"}]
    await scenario.submit(_worker(3), minAvailable=3, policies=policies)
    await scenario.reaches("Running", running=3)
    first = scenario.living()
    name = scenario.random.choice(sorted(first))
    await scenario.remove(name, first[name])
    await scenario.until(
        "three other pods to run",
        lambda: (
            len(scenario.living()) == 3
            and not set(first.values()) & set(scenario.living().values())
        ),
    )
    await scenario.reaches("Running", running=3)
    await asyncio.sleep(scenario.random.uniform(0, 3))
    scenario.expect(
        scenario.retries.startswith("task/w=1/"), f"counts {scenario.retries!r} restarts"
    )
    scenario.count(dict.fromkeys(first, 2))


async def is_scaled(scenario: JobScenario) -> None:
    """Pods that are removed by scaling are not evicted."""
    policies = [{"event": "PodEvicted", "action": "TerminateJob"}]
    await scenario.submit(_worker(2) | {"minAvailable": 1}, minAvailable=1, policies=policies)
    await scenario.reaches("Running", running=2)
    await scenario.scale(5)
    await scenario.reaches("Running", running=5)
    await scenario.scale(1)
    await scenario.reaches("Running", running=1)
    await scenario.until("one pod", lambda: scenario.existing() == 1)
    scenario.expect(
        list(scenario.living()) == [f"{scenario.name}-w-0"], f"kept pods {list(scenario.living())}"
    )
    scenario.count({f"{scenario.name}-w-{index}": 1 for index in range(5)})


async def starts_in_stages(scenario: JobScenario) -> None:
    later = {"b": "a", "c": "b"}
    tasks = [
        _worker(1 + (name == "b"), name=name)
        | ({"dependsOn": {"name": [later[name]]}} if name in later else {})
        for name in "abc"
    ]
    await scenario.submit(*tasks, minAvailable=4)
    await scenario.reaches("Running", running=4)
    scenario.follows("a", "b")
    scenario.follows("b", "c")
    scenario.count({f"{scenario.name}-{pod}": 1 for pod in ("a-0", "b-0", "b-1", "c-0")})


async def is_deleted(scenario: JobScenario) -> None:
    await scenario.submit(_worker(4), minAvailable=4)
    await asyncio.sleep(scenario.random.uniform(0, 3))


async def is_aborted(scenario: JobScenario) -> None:
    await scenario.submit(_worker(3), minAvailable=3)
    await scenario.reaches("Running", running=3)
    await scenario.command("AbortJob")
    await scenario.until("Aborted", lambda: scenario.phase == "Aborted")
    await scenario.until("no pod", lambda: not scenario.existing())
    await scenario.command("ResumeJob")
    await scenario.reaches("Running", running=3)
    scenario.count({f"{scenario.name}-w-{index}": 2 for index in range(3)})


JOB_SCENARIOS: dict[str, Callable[[JobScenario], Awaitable[None]]] = {
    "completes": completes,
    "fails": fails,
    "restarts-pod": _restarting("RestartPod", "attempts of pod {name}-bad-0 used: 2 of 2", good=1),
    "restarts-task": _restarting("RestartTask", "attempts of task bad used: 2 of 2", good=1),
    "restarts-partition": _restarting(
        "RestartPartition", "attempts of partition 0 of task bad used: 2 of 2", good=1
    ),
    "restarts-job": _restarting("RestartJob", "attempts used: 2 of 2", good=2),
    "is-evicted": is_evicted,
    "is-scaled": is_scaled,
    "starts-in-stages": starts_in_stages,
    "is-deleted": is_deleted,
    "is-aborted": is_aborted,
}

PASSING = ("completes", "fails")
"""Scenarios whose pods all end by themselves. Few of the others run at once, so that they do not wait for each other."""
