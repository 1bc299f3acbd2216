"""The runs of `benchmarks.end_to_end`: a bare loop, many Jobs, one Job from its submission to its end."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.counters import Counters, count
from benchmarks.manifests import job, pod
from pumice.api.kinds import JOB, POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

CALM_SECONDS = 6.0
"""A run has ended when nothing has been written for so long; the status of a queue is written after 5 s without a change."""

LIMIT_SECONDS = 300.0

AT_ONCE = 64
"""Requests under way at once, in the bare loop and when Jobs are submitted."""

_BOUND = re.compile(r'^pumice_scheduler_binds_total\{result="bound"\} (\S+)$', re.M)

ONE_JOB = 20
"""Pods of the one Job."""


@dataclass
class Round:
    """Figures of one round.

    Attributes:
        bare: Pods a second that the loop creates and binds.
        ours: Pods a second from the submission of the first Job until the last pod is bound.
        cpu: Processor seconds for 1,000 pods, by process.
        bare_cpu: Those of the API server in the bare loop.
        writes: Writes a pod besides its creation and its binding, by resource, verb and code.
        pod_statuses: Writes of pod statuses by the scheduler.
        one_job: Writes for one Job of 20 pods, from its submission until it has completed.
        one_job_writes: The same by resource, verb and code.
    """

    bare: float = 0.0
    ours: float = 0.0
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
    ) -> None:
        """Describe them.

        Args:
            plane: The control plane.
            client: An administrator's session with it.
            found: Where their figures go.
            installation: The components, if they run.
            jobs: Jobs that are submitted at once.
            size: Pods of each.
        """
        self._plane = plane
        self._client = client
        self._found = found
        self._installation = installation
        self._jobs = jobs
        self._size = size
        self._pods = jobs * size

    async def bare(self, nodes: int) -> None:
        """A loop creates and binds as many pods, while no component runs."""
        client, pods = self._client, range(self._pods)

        async def place(number: int) -> None:
            await client.create(POD, pod(number), "bare")
            await client.bind("bare", f"pod-{number}", f"node-{number % nodes:05}")

        async with namespace(self._plane, client, "bare"):
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
        async with namespace(self._plane, client, "gangs"):
            await first_job(client, "gangs")
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
        async with namespace(self._plane, self._client, "one"):
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


async def first_job(client: Client, namespace: str) -> None:
    """Submit a Job of one pod; it is refused until the API server reaches the webhook and the queues exist."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            with suppress(ApiError):
                await client.create(JOB, job("first", 1), namespace)
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def namespace(plane: ControlPlane, client: Client, name: str) -> AsyncIterator[None]:
    """A namespace that pods can be created in; in the end its Jobs, PodGroups and pods are removed."""
    await asyncio.to_thread(plane.add_namespace, name)
    yield
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for kind in (JOB, POD_GROUP, POD):
        await client.raw("DELETE", kind.collection(name), options)
    async with asyncio.timeout(LIMIT_SECONDS):
        while (await client.list(POD, name))["items"]:  # noqa: ASYNC110
            await asyncio.sleep(0.5)


async def together(requests: Iterable[Awaitable[object]]) -> None:
    """Carry requests out, many at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(request: Awaitable[object]) -> None:
        async with gate:
            await request

    await asyncio.gather(*map(one, requests))
