"""How fast the controller creates the pods of one Job, beside a loop that creates the same pods.

    python -m benchmarks.creations [--pods N] [--nodes N] [--rounds N] [--turns N] [--json FILE]

Each round has a control plane of its own. In a first part of the round, a loop creates plain pods without Pumice. Then all
components run, and the controller and the loop create the same pods in turns: those of a Job that no node suits, so that
nothing else is under way. The loop's pods have a PodGroup too. Everything shares the machine with the control plane.

Once in a few thousand pods the API server collects garbage, which takes it up to a second of processor time, as much as
hundreds of pods. So a turn takes thousands of pods, its collections are counted, and the turns alternate.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from benchmarks.counters import cpu_seconds
from benchmarks.hand_over import add_nodes
from benchmarks.manifests import job, like, pod
from benchmarks.report import MACHINE, spread, write
from benchmarks.runs import CALM_SECONDS, LIMIT_SECONDS, first_job, namespace, together
from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, POD, POD_GROUP
from pumice.cluster.client import Client, Object
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process
from tests.support.controlplane.start import started
from tests.support.installation import installed

PLAIN, LOOP, ONE_JOB = "loop of plain pods, no Pumice", "loop of the Job's pods", "one Job"
KINDS = (PLAIN, LOOP, ONE_JOB)
"""What creates pods in turns."""

UNDER_WAY = 128
"""Last pods of a Job that are waited for; more than the requests that the controller has under way."""

SETTLE_SECONDS = 2.0
"""How long after the last pod the work of the API server still counts as caused by the pods: watches, the Job's status."""

_SAMPLE = re.compile(
    r"^(go_gc_cycles_total_gc_cycles_total|go_memstats_alloc_bytes_total) (\S+)$", re.M
)


@dataclass
class Turn:
    """Creation of pods, once.

    Attributes:
        by: What created them: `PLAIN`, `LOOP` or `ONE_JOB`.
        rate: Pods a second.
        collections: Garbage collections of the API server.
        allocated: KB of memory that the API server allocated for a pod; unlike times the same on a busy machine.
        cpu: Processor milliseconds for a pod, by process; `loop` is that of the loop.
    """

    by: str
    rate: float
    collections: int
    allocated: float
    cpu: dict[str, float]


class Turns:
    """The turns of one round, on a control plane of its own."""

    def __init__(
        self, plane: ControlPlane, client: Client, pods: int, components: Mapping[str, Process]
    ) -> None:
        """Describe them.

        Args:
            plane: The control plane.
            client: An administrator's session with it.
            pods: Pods of each turn.
            components: Pumice's processes by name.
        """
        self._plane = plane
        self._processes = {each.name: each.pid for each in plane.processes}
        self._processes |= {name: each.pid for name, each in components.items()}
        self._client = client
        self._pods = pods
        self._model: Object = {}
        self._group: Object = {}

    async def take(self, by: str, number: int) -> Turn:
        """Measure one turn; the first turn of the Job shows how its pods look."""
        client, pods, name = self._client, self._pods, f"{by.split()[-1].lower()}-{number}"
        await asyncio.sleep(CALM_SECONDS)
        async with namespace(self._plane, client, name):
            create = self._job(name) if by == ONE_JOB else await self._loop(by, name)
            cycles, allocated = await _memory(client)
            before = self._cpu()
            rate = pods / await create
            await asyncio.sleep(SETTLE_SECONDS)
            cpu = {name: (now - before[name]) / pods * 1e3 for name, now in self._cpu().items()}
            cycles_after, allocated_after = await _memory(client)
            if by == ONE_JOB:
                self._model = await client.get(POD, "huge-worker-0", name)
                self._group = await client.get(POD_GROUP, self._group_name, name)
                del cpu["loop"]
        kilobytes = (allocated_after - allocated) / pods / 1e3
        return Turn(by, rate, int(cycles_after - cycles), kilobytes, cpu)

    @property
    def _group_name(self) -> str:
        """Name of the PodGroup to which the Job's pods belong."""
        return str(self._model["metadata"]["annotations"][keys.GROUP_NAME])

    def _cpu(self) -> dict[str, float]:
        """Processor seconds of every process until now."""
        found = {name: cpu_seconds(pid) for name, pid in self._processes.items()}
        return {"loop": time.process_time(), **found}

    async def _job(self, name: str) -> float:
        """Seconds from the first pod of a Job to its last."""
        seconds = await follow(self._client, name, self._pods)
        await self._client.create(JOB, job("huge", self._pods, fits=False), name)
        return await seconds

    async def _loop(self, by: str, name: str) -> Awaitable[float]:
        """Prepare a loop of creates, which returns the seconds that it takes."""
        client = self._client
        if by == PLAIN:
            pods = [pod(each) for each in range(self._pods)]
        else:
            owner = await client.create(CONFIG_MAP, {"metadata": {"name": "owner"}}, name)
            group = {key: self._group[key] for key in ("apiVersion", "kind", "spec")}
            await client.create(POD_GROUP, group | {"metadata": {"name": self._group_name}}, name)
            pods = [like(self._model, each, owner) for each in range(self._pods)]

        async def seconds() -> float:
            start = time.monotonic()
            await together(client.create(POD, each, name) for each in pods)
            return time.monotonic() - start

        return seconds()


async def _memory(client: Client) -> tuple[float, float]:
    """Garbage collections and allocated bytes of the API server until now."""
    found = dict(_SAMPLE.findall((await client.raw("GET", "/metrics")).decode()))
    return (
        float(found["go_gc_cycles_total_gc_cycles_total"]),
        float(found["go_memstats_alloc_bytes_total"]),
    )


async def follow(client: Client, namespace: str, number: int) -> asyncio.Task[float]:
    """Measure how long the controller creates pods of the one Job that is about to be submitted.

    A watch shows the first pod and the last ones; pods are created in the order of their indexes. Counting pods by lists
    would take the API server's time, and would see the last pod late: a list waits until the API server's
    cache is up to date.

    Returns:
        Seconds from the first pod to the last.
    """
    last = range(max(1, number - UNDER_WAY), number)
    selector = f"{keys.TASK_INDEX} in ({','.join(map(str, (0, *last)))})"
    listed: str = (await client.list(POD, namespace))["metadata"]["resourceVersion"]

    async def added() -> AsyncGenerator[str, None]:
        """Indexes of new pods. The API server may end a watch at any time; it is renewed then."""
        version = listed
        while True:
            watch = client.collection(POD, namespace, selector).watch(version)
            async with aclosing(watch):
                async for event, raw in watch:
                    meta = msgspec.json.decode(raw)["metadata"]
                    version = meta["resourceVersion"]
                    if event == "ADDED":
                        yield meta["labels"][keys.TASK_INDEX]

    async def seconds() -> float:
        start, remaining = 0.0, len(last)
        async with asyncio.timeout(LIMIT_SECONDS), aclosing(added()) as indexes:
            async for index in indexes:
                if index == "0":
                    start = time.monotonic()
                else:
                    remaining -= 1
                if start and not remaining:
                    break
        return time.monotonic() - start

    return asyncio.create_task(seconds())


def measure(options: argparse.Namespace) -> list[Turn]:
    """One round."""
    with started(Builder().ensure()) as plane, tempfile.TemporaryDirectory() as folder:
        plane.establish()
        plain = asyncio.run(take(plane, options, [PLAIN] * options.turns, {}))
        with installed(plane, Path(folder)) as installation:
            order = ([ONE_JOB, LOOP, LOOP, ONE_JOB] * options.turns)[: 2 * options.turns]
            return plain + asyncio.run(take(plane, options, order, installation.processes))


async def take(
    plane: ControlPlane,
    options: argparse.Namespace,
    order: Sequence[str],
    components: Mapping[str, Process],
) -> list[Turn]:
    """Take turns in an order."""
    async with Client.connect(plane.kubeconfig) as client:
        if PLAIN in order:
            await add_nodes(client, options.nodes)
        else:
            await first_job(client, "default")
        turns = Turns(plane, client, options.pods, components)
        return [await turns.take(by, number) for number, by in enumerate(order)]


def table(rounds: Sequence[Sequence[Turn]]) -> Iterator[tuple[str, ...]]:
    """Lines of the table of turns: what, and a figure for each kind."""

    def line(what: str, digits: int, figure: Callable[[Turn], float | None]) -> tuple[str, ...]:
        found = (
            [figure(each) for turns in rounds for each in turns if each.by == by] for by in KINDS
        )
        known = ([each for each in figures if each is not None] for figures in found)
        return what, *(spread(figures, digits) if figures else "" for figures in known)

    yield ("", *KINDS)
    yield line("creations/s", 0, lambda each: each.rate)
    yield line("KB that kube-apiserver allocates a pod", 0, lambda each: each.allocated)
    yield line("its garbage collections in a turn", 0, lambda each: each.collections)
    names = dict.fromkeys(name for turns in rounds for each in turns for name in each.cpu)
    yield line("CPU ms a pod, all processes", 2, lambda each: sum(each.cpu.values()))
    for name in names:
        yield line(f"  {name}", 2, lambda each: each.cpu.get(name))  # noqa: B023


def ratios(rounds: Sequence[Sequence[Turn]]) -> Iterator[tuple[str, str, str]]:
    """Lines about the rate of a Job by that of a loop in the same round: what, figures, aim."""

    def rate(turns: Sequence[Turn], by: str) -> float:
        return statistics.harmonic_mean([each.rate for each in turns if each.by == by])

    for other, aim in ((LOOP, ">= 0.8"), (PLAIN, "")):
        found = [rate(turns, ONE_JOB) / rate(turns, other) for turns in rounds]
        yield f"creations/s, {ONE_JOB} by {other}", spread(found, 2), aim


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pods", type=int, default=5000, help="pods of a turn")
    parser.add_argument("--nodes", type=int, default=1000, help="one at least for 8 pods")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3, help="turns of each kind in a round")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = [measure(options) for _ in range(options.rounds)]
    print(f"{options.pods} pods in a turn, {options.nodes} nodes")
    for what, *figures in table(rounds):
        print(f"{what:<40}", *(f"{each:>29}" for each in figures))
    for what, figure, aim in ratios(rounds):
        print(f"{what:<60} {figure:>18} {aim:>8}")
    print(MACHINE)
    rows = [
        asdict(each) | {"round": number} for number, turns in enumerate(rounds) for each in turns
    ]
    write(options.json, rows, pods=options.pods, nodes=options.nodes, turns=options.turns)


if __name__ == "__main__":
    main()
