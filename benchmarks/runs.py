"""The runs of `benchmarks.end_to_end`: a bare loop, many Jobs, one Job from its submission to its end, one huge Job."""

import asyncio
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.counters import Counters, count
from benchmarks.creations import LIMIT_SECONDS, Turn, follow, loop, owner_in, together, turn
from benchmarks.manifests import job, pod
from pumice.api.kinds import JOB, POD
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import ApiError
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

__all__ = ["JOB_TURN", "LOOP", "LOOP_BEFORE", "ONE_JOB", "Round", "Runs"]

CALM_SECONDS = 6.0
"""A run has ended when nothing has been written for so long; the status of a queue is written after 5 s without a change."""

LOOP_BEFORE, LOOP, JOB_TURN = "plain pods before Pumice", "loop", "job"
"""What creates pods in turns: a loop before Pumice is installed; a loop and the controller while all components run."""

_BOUND = re.compile(r'^pumice_scheduler_binds_total\{result="bound"\} (\S+)$', re.M)

ONE_JOB = 20
"""Pods of the one Job."""


@dataclass
class Round:
    """Figures of one round.

    Attributes:
        bare: Pods a second that the loop creates and binds.
        ours: Pods a second from the submission of the first Job until the last pod is bound.
        turns: Creation of pods by the loops and by the controller, for one Job that does not fit.
        cpu: Processor seconds for 1,000 pods, by process.
        bare_cpu: Those of the API server in the bare loop.
        writes: Writes a pod besides its creation and its binding, by resource, verb and code.
        pod_statuses: Writes of pod statuses by the scheduler.
        one_job: Writes for one Job of 20 pods, from its submission until it has completed.
        one_job_writes: The same by resource, verb and code.
    """

    bare: float = 0.0
    ours: float = 0.0
    turns: list[Turn] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    bare_cpu: float = 0.0
    writes: dict[str, float] = field(default_factory=dict)
    pod_statuses: int = 0
    one_job: int = 0
    one_job_writes: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Our pods a second by those of the bare loop."""
        return self.ours / self.bare

    def creation_rate(self, by: str) -> float:
        """Pods a second in all turns of one kind."""
        return statistics.harmonic_mean([each.rate for each in self.turns if each.by == by])

    @property
    def beside(self) -> float:
        """Writes a pod besides its creation and its binding."""
        return sum(self.writes.values())

    @property
    def our_cpu(self) -> float:
        """Processor seconds of our three processes for 1,000 pods."""
        return sum(seconds for name, seconds in self.cpu.items() if name != "kube-apiserver")


class Runs:
    """The runs of one round, on a control plane of its own."""

    def __init__(
        self,
        plane: ControlPlane,
        client: Client,
        found: Round,
        installation: Installation | None,
        *,
        jobs: int,
        size: int,
        created: int,
    ) -> None:
        """Describe them.

        Args:
            plane: The control plane.
            client: An administrator's session with it.
            found: Where their figures go.
            installation: The components, if they run.
            jobs: Jobs that are submitted at once.
            size: Pods of each.
            created: Pods that a turn of creations takes.
        """
        self._plane = plane
        self._client = client
        self._found = found
        self._installation = installation
        self._jobs = jobs
        self._size = size
        self._pods = jobs * size
        self._created = created

    async def bare(self, nodes: int, turns: int) -> None:
        """The loops, while no component runs; the one that only creates takes so many turns."""
        client, pods = self._client, range(self._pods)
        for number in range(turns):
            async with self._namespace(name := f"plain-{number}"):
                await self._turn(LOOP_BEFORE, name, {})

        async def place(number: int) -> None:
            await client.create(POD, pod(number), "bare")
            await client.bind("bare", f"pod-{number}", f"node-{number % nodes:05}")

        async with self._namespace("bare"):
            before = await count(client)
            start = time.monotonic()
            await together(map(place, pods))
            self._found.bare = self._pods / (time.monotonic() - start)
            await asyncio.sleep(CALM_SECONDS)
            used = (await self._calm())[0].since(before)
        self._found.bare_cpu = used.cpu["kube-apiserver"] / self._pods * 1000

    async def gangs(self) -> None:
        """All Jobs at once."""
        client = self._client
        async with self._namespace("gangs"):
            await self._first("gangs")
            await self._bound(1)
            _, before = await self._calm()
            start = time.monotonic()
            await together(
                client.create(JOB, job(f"train-{number}", self._size), "gangs")
                for number in range(self._jobs)
            )
            await self._bound(self._pods + 1)
            self._found.ours = self._pods / (time.monotonic() - start)
            await asyncio.sleep(CALM_SECONDS)
            used = (await self._calm())[0].since(before)
        self._found.cpu = {name: each / self._pods * 1000 for name, each in used.cpu.items()}
        beside = besides(used, self._pods)
        self._found.writes = {sort: number / self._pods for sort, number in beside.items()}
        self._found.pod_statuses = used.pod_statuses

    async def one_job(self) -> None:
        """One Job from its submission until it has completed."""
        async with self._namespace("one"):
            _, before = await self._calm()
            await self._client.create(JOB, job("train", ONE_JOB, lasts="3s"), "one")
            phase = ""
            async with asyncio.timeout(LIMIT_SECONDS):
                while phase != "Completed":
                    await asyncio.sleep(0.1)
                    found = await self._client.get(JOB, "train", "one")
                    phase = found.get("status", {}).get("state", {}).get("phase", "")
            await asyncio.sleep(CALM_SECONDS)
            used = (await self._calm())[0].since(before)
        self._found.one_job_writes = dict(besides(used, ONE_JOB))
        self._found.one_job = ONE_JOB + sum(self._found.one_job_writes.values())

    async def creation(self, turns: int) -> None:
        """The controller and a loop create the same pods in turns, while all components run.

        The pods are those of one Job that no node suits, so that nothing else is under way.
        """
        kinds = [JOB_TURN, LOOP]
        model: Object = {}
        for number in range(turns):
            for by in kinds:
                async with self._namespace(name := f"{by}-{number}"):
                    await self._turn(by, name, model)
                    if by == JOB_TURN:
                        model = await self._client.get(POD, "huge-worker-0", name)
            kinds.reverse()

    async def _turn(self, by: str, namespace: str, model: Object) -> None:
        """A turn in which a Job's pods are created, or pods like the model, or plain ones if that is empty."""
        await asyncio.sleep(CALM_SECONDS)
        if by == JOB_TURN:
            seconds = self._one_huge_job(namespace)
        else:
            owner = await owner_in(self._client, namespace)
            seconds = loop(self._client, namespace, self._created, owner, model)
        self._found.turns.append(await turn(by, self._client, self._created, seconds))

    async def _one_huge_job(self, namespace: str) -> float:
        """Seconds from the first pod of a Job to its last."""
        seconds = await follow(self._client, namespace, self._created)
        await self._client.create(JOB, job("huge", self._created, fits=False), namespace)
        return await seconds

    async def _bound(self, pods: int) -> None:
        """Wait until the scheduler has bound so many pods in all, as it counts them."""
        assert self._installation is not None
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                text = await asyncio.to_thread(self._installation.metrics, "scheduler")
                bound = _BOUND.search(text)
                if bound is not None and float(bound[1]) >= pods:
                    return
                await asyncio.sleep(0.1)

    async def _first(self, namespace: str) -> None:
        """Submit a Job of one pod; it is refused until the API server reaches the webhook and the queues exist."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                with suppress(ApiError):
                    await self._client.create(JOB, job("first", 1), namespace)
                    return
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def _namespace(self, name: str) -> AsyncIterator[None]:
        """A namespace that pods can be created in; in the end its Jobs and pods are removed."""
        await asyncio.to_thread(self._plane.add_namespace, name)
        yield
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for kind in (JOB, POD):
            await self._client.raw("DELETE", kind.collection(name), options)
        async with asyncio.timeout(LIMIT_SECONDS):
            while (await self._client.list(POD, name))["items"]:  # noqa: ASYNC110
                await asyncio.sleep(0.5)

    async def _calm(self) -> tuple[Counters, Counters]:
        """The counters once nothing is written any more: as they were first, and now.

        Reading them costs the API server as much as dozens of writes, so it is done seldom.
        """
        last = await count(self._client, self._installation)
        while True:
            await asyncio.sleep(CALM_SECONDS)
            found = await count(self._client, self._installation)
            if found.writes == last.writes:
                return last, found
            last = found


def besides(used: Counters, pods: int) -> Counter[str]:
    """Writes besides those of the user and of kwok, and the creation and the binding of each pod.

    Args:
        used: What happened.
        pods: The pods.
    """
    found = Counter(
        {f"{each.verb} {each.resource} {each.code}": n for each, n in used.writes.items()}
    )
    found.subtract({"POST pods 201": pods, "POST pods/binding 201": pods})
    for sort in ("POST jobs 201", *(sort for sort in found if " pods/status " in sort)):
        del found[sort]
    found["PATCH pods/status"] = used.pod_statuses
    return +found
