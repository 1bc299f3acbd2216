"""The runs of `benchmarks.end_to_end`: a bare loop, many Jobs, one Job from its submission to its end, one huge Job."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from benchmarks.counters import Counters, count
from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, POD, POD_GROUP
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import ApiError
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

__all__ = ["Round", "Runs"]

AT_ONCE = 64
"""Requests under way at once, in the bare loop and when Jobs are submitted."""

UNDER_WAY = 128
"""Last pods of a Job that are waited for; more than the requests that the controller has under way."""

CALM_SECONDS = 6.0
"""A run has ended when nothing has been written for so long; the status of a queue is written after 5 s without a change."""

TURNS = 2
"""How often in a round the loop and the controller create pods in turns, while no scheduler runs."""

LIMIT_SECONDS = 300.0
_BOUND = re.compile(r'^pumice_scheduler_binds_total\{result="bound"\} (\S+)$', re.M)

ONE_JOB = 20
"""Pods of the one Job."""


@dataclass
class Round:
    """Figures of one round.

    Attributes:
        bare: Pods a second that the loop creates and binds.
        ours: Pods a second from the submission of the first Job until the last pod is bound.
        bare_creation: Pods a second that a loop of creates alone achieves, while no component runs.
        creation: Pods a second that the controller creates for one Job that does not fit, while all components run.
        bare_creation_beside: What the loop achieves, while the webhook and the controller run, and no scheduler.
        creation_beside: What the controller achieves then.
        cpu: Processor seconds for 1,000 pods, by process.
        bare_cpu: Those of the API server in the bare loop.
        writes: Writes a pod besides its creation and its binding, by resource, verb and code.
        pod_statuses: Writes of pod statuses by the scheduler.
        one_job: Writes for one Job of 20 pods, from its submission until it has completed.
        one_job_writes: The same by resource, verb and code.
    """

    bare: float = 0.0
    ours: float = 0.0
    bare_creation: float = 0.0
    creation: float = 0.0
    bare_creation_beside: float = 0.0
    creation_beside: float = 0.0
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
    def creation_ratio(self) -> float:
        """Our creations a second by those of the bare loop."""
        return self.creation / self.bare_creation

    @property
    def creation_beside_ratio(self) -> float:
        """Creations a second by those of the bare loop, while the same processes run beside both."""
        return self.creation_beside / self.bare_creation_beside

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
        """The loops, while no component runs."""
        client, pods = self._client, range(self._pods)
        self._found.bare_creation = self._pods / await self._loop("created")

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

    async def creation(self) -> None:
        """One Job of as many pods that no node suits, so that nothing else is under way."""
        async with self._namespace("huge"):
            seconds = await self._follow("huge")
            await self._client.create(JOB, job("huge", self._pods, fits=False), "huge")
            self._found.creation = self._pods / await seconds

    async def creation_without_scheduler(self) -> None:
        """The controller and a loop create the same pods in turns, with the same processes beside both.

        The scheduler is stopped for good.
        """
        assert self._installation is not None
        await asyncio.to_thread(self._installation.stop, "scheduler")
        loop = controller = 0.0
        for turn in range(TURNS):
            await asyncio.sleep(CALM_SECONDS)
            async with self._namespace(name := f"alone-{turn}"):
                seconds = await self._follow(name)
                await self._client.create(JOB, job("huge", self._pods, fits=False), name)
                await self._admit(name)
                controller += await seconds
                model = await self._client.get(POD, "huge-worker-0", name)
            await asyncio.sleep(CALM_SECONDS)
            loop += await self._loop(f"loop-{turn}", model)
        self._found.bare_creation_beside = TURNS * self._pods / loop
        self._found.creation_beside = TURNS * self._pods / controller

    async def _loop(self, namespace: str, model: Object | None = None) -> float:
        """Seconds that a loop of creates takes.

        Args:
            namespace: Where the pods are created.
            model: A pod like which they are, but for their owner; otherwise they are plain ones.
        """
        async with self._namespace(namespace):
            owner = await self._client.create(
                CONFIG_MAP, {"metadata": {"name": "owner"}}, namespace
            )
            pods = [
                like(model, number, owner) if model else pod(number) for number in range(self._pods)
            ]
            start = time.monotonic()
            await together(self._client.create(POD, each, namespace) for each in pods)
            return time.monotonic() - start

    async def _admit(self, namespace: str) -> None:
        """Let the namespace's one gang have its pods, as the scheduler does."""
        patch = {"status": {"phase": "Inqueue"}}
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                for group in (await self._client.list(POD_GROUP, namespace))["items"]:
                    await self._client.patch(POD_GROUP, group["metadata"]["name"], namespace, patch)
                    return
                await asyncio.sleep(0.05)

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

    async def _follow(self, namespace: str) -> asyncio.Task[float]:
        """Measure how long the controller creates pods of the one Job that is about to be submitted.

        A watch shows the first pod and the last ones; pods are created in the order of their indexes. Counting pods by lists
        would take the API server's time, and would see the last pod late: a list waits until the API server's
        cache is up to date.

        Returns:
            Seconds from the first pod to the last.
        """
        last = range(max(1, self._pods - UNDER_WAY), self._pods)
        selector = f"{keys.TASK_INDEX} in ({','.join(map(str, (0, *last)))})"
        version = (await self._client.list(POD, namespace))["metadata"]["resourceVersion"]
        events = self._client.watch(
            POD, namespace, resource_version=version, label_selector=selector
        )

        async def seconds() -> float:
            start, remaining = 0.0, len(last)
            async with asyncio.timeout(LIMIT_SECONDS), aclosing(events):
                async for event, raw in events:
                    if event != "ADDED":
                        continue
                    if msgspec.json.decode(raw)["metadata"]["labels"][keys.TASK_INDEX] == "0":
                        start = time.monotonic()
                    else:
                        remaining -= 1
                    if start and not remaining:
                        return time.monotonic() - start
            raise AssertionError(f"{remaining} pods of {namespace} were not created")

        return asyncio.create_task(seconds())

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


async def together(requests: Iterable[Awaitable[object]]) -> None:
    """Carry requests out, many at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(request: Awaitable[object]) -> None:
        async with gate:
            await request

    await asyncio.gather(*map(one, requests))


def template() -> Object:
    """The pod spec of all pods."""
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": requests}}
    return {"containers": [container], "restartPolicy": "Never"}


def pod(number: int) -> Object:
    """A pod of a loop."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": "bare"}},
        "spec": template() | {"schedulerName": "bare"},
    }


def like(model: Object, number: int, owner: Object) -> Object:
    """A pod as the controller creates it, with another name and an owner that is no Job."""
    meta, uid = model["metadata"], owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"huge-worker-{number}",
            "labels": meta["labels"],
            "annotations": meta["annotations"],
            "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template() | {key: model["spec"][key] for key in ("schedulerName", "nodeSelector")},
    }


def job(name: str, size: int, *, lasts: str = "", fits: bool = True) -> Object:
    """A Job of one task.

    Args:
        name: Its name.
        size: Its pods.
        lasts: How long its pods run; for ever if empty.
        fits: False for one that no node suits.
    """
    spec = template() if fits else template() | {"nodeSelector": {"no": "such-node"}}
    annotations = {"pumice.dev/run-duration": lasts} if lasts else {}
    task = {
        "name": "worker",
        "replicas": size,
        "template": {"metadata": {"annotations": annotations}, "spec": spec},
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": name},
        "spec": {"minAvailable": size, "schedulerName": "volcano", "tasks": [task]},
    }
