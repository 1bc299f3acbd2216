"""Rounds: once a second the leader of the controller or of the scheduler is killed or stopped, under load."""

import asyncio
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pumice.api import kinds
from pumice.api.kinds import JOB, LEASE, POD
from pumice.api.pods import Pod
from pumice.api.quantities import parse_milli
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Backoff
from tests.kill.components import COMPONENTS, Component, Member
from tests.kill.job_scenarios import JOB_SCENARIOS, PASSING, JobScenario, ScenarioContext
from tests.kill.parts import Gate, Parts
from tests.kill.pod_history import PodHistories
from tests.kit.builders import job
from tests.kit.waiting import followed, until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.edit_users import EditUser, edit_user
from tests.support.hostile import Hostile, Sizes
from tests.support.installation import Installation, installed

Raw = dict[str, Any]

NODES = 6
ROOM = {"cpu": "4", "memory": "16Gi", "pods": "30"}
SCENARIOS_AT_ONCE = 10
LASTING_AT_ONCE = 4
STOPPED_SHARE = 0.15
"""Share of the rounds in which the leader is stopped, and goes on a few seconds later, instead of killed."""

LEADER_SECONDS = 60.0
"""How long a component may be without a leader."""

NAMESPACE = "kill"
HOSTILE = "hostile"
"""Namespace of a hostile tenant, and the node of its pods: it attacks the components, not the room of the others."""

ATTACK = Sizes(
    flows=3,
    repelling=150,
    labels=2000,
    annotations=2**16,
    copies=5,
    jobs=4,
    pods=50,
    held=50,
    dependencies=60,
)
"""What it submits: components with a lease of one second are to lead again and again beside it."""

ATTACK_SECONDS = 15.0
"""How long its Jobs are there."""

LEFT_BEHIND = (
    kinds.JOB,
    kinds.POD,
    kinds.POD_GROUP,
    kinds.SERVICE,
    kinds.SECRET,
    kinds.NETWORK_POLICY,
    kinds.CONFIG_MAP,
    kinds.COMMAND,
)


Report = Callable[[str], None]
"""Takes a line about what has just been done."""


@dataclass
class Summary:
    """What became of a run.

    Attributes:
        rounds: Rounds.
        seed: What decided the order of things.
        seconds: How long the rounds took.
        settled: How long it took until all Jobs were as they should be, once nothing was killed any more.
        killed: Leaders that were killed, by component.
        stopped: Leaders that were stopped and went on, by component.
        leaderless: Longest time in seconds without a leader, by component.
        parts: Parts that were killed: the webhook, etcd, the API server.
        away: Longest time in seconds from the death of a part until it was ready again.
        leaderless_after: Longest time in seconds from then until both components had renewed their Leases.
        attacks: How often a hostile tenant submitted all that it has, and deleted it.
        jobs: Jobs by kind.
        pods: Pods that were created.
        bound: Pods that were bound.
        fullest: The largest share of a node's processors that was in use.
        violations: What must not happen and did.
    """

    rounds: int
    seed: str
    seconds: float = 0.0
    settled: float = 0.0
    killed: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)
    leaderless: dict[str, float] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    away: dict[str, float] = field(default_factory=dict)
    leaderless_after: dict[str, float] = field(default_factory=dict)
    attacks: int = 0
    jobs: dict[str, int] = field(default_factory=dict)
    pods: int = 0
    bound: int = 0
    fullest: float = 0.0
    violations: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


class Load:
    """Job scenarios, several at a time."""

    def __init__(self, context: ScenarioContext, seed: str) -> None:
        self._context = context
        self._random = random.Random(f"{seed} lives")
        self.begun: Counter[str] = Counter()
        self.alive: dict[str, JobScenario] = {}
        self.over = False

    async def run(self) -> None:
        """Run several scenarios at a time until `over`, and wait for their end."""
        async with asyncio.TaskGroup() as group:
            for number in range(SCENARIOS_AT_ONCE):
                group.create_task(self._run_scenarios(number))

    async def _run_scenarios(self, number: int) -> None:
        choose = random.Random(f"{self._random.random()} {number}")
        passing = number >= LASTING_AT_ONCE
        names = [name for name in JOB_SCENARIOS if (name in PASSING) == passing]
        while True:
            for kind in choose.sample(names, len(names)):
                if self.over:
                    return
                await self._run_scenario(kind)

    async def _run_scenario(self, kind: str) -> None:
        self.begun[kind] += 1
        name = f"{kind}-{self.begun[kind]}"
        scenario = self.alive[name] = JobScenario(self._context, name, f"{self._random.random()}")
        await JOB_SCENARIOS[kind](scenario)
        await scenario.delete()
        del self.alive[name]


async def run(
    plane: ControlPlane,
    rounds: int,
    seed: str,
    *,
    each: int,
    settle: float,
    report: Report,
) -> Summary:
    """Kill leaders under load, and what they depend on.

    Args:
        plane: A control plane with our CRDs and nothing else on it.
        rounds: How often a leader is killed.
        seed: Decides which leader is killed or stopped when, and what Jobs do.
        each: After so many rounds a part is killed, too: the webhook, etcd and the API server in turn.
        settle: Seconds in which all must be well once nothing is killed any more.
        report: Takes a line for each round.
    """
    summary = Summary(rounds, seed)
    async with _cluster(plane) as names, AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(plane.kubeconfig))
        await _collects(client)
        installation = stack.enter_context(_webhook(plane))
        pods = WatchCache(client, POD, Pod, backoff=_soon())
        jobs: WatchCache[Raw] = WatchCache(client, JOB, dict, namespace=NAMESPACE, backoff=_soon())
        leases: WatchCache[Raw] = WatchCache(
            client, LEASE, dict, namespace="default", backoff=_soon()
        )
        room = {name: parse_milli(amount) for name, amount in ROOM.items()}
        histories = PodHistories(pods, dict.fromkeys(names, room))
        gate = Gate()
        context = ScenarioContext(client, NAMESPACE, jobs, histories, gate)
        components = [Component(name, plane.kubeconfig, plane.folder) for name in COMPONENTS]
        for component in components:
            component.follow(leases)
        await stack.enter_async_context(followed(pods, jobs, leases))
        parts = Parts(plane, installation, gate)
        with _running(components):
            hostile = await stack.enter_async_context(edit_user(plane, HOSTILE))
            attacks = asyncio.create_task(_attack(hostile, summary))
            load = Load(context, seed)
            work = asyncio.create_task(load.run())
            start = time.monotonic()
            await _kill(components, parts, each, summary, report, work)
            summary.seconds = time.monotonic() - start
            load.over = True
            attacks.cancel()
            await asyncio.wait([attacks])
            start = time.monotonic()
            while not work.done() and time.monotonic() < start + settle:
                await asyncio.wait([work], timeout=5)
                report(
                    f"     {len(load.alive)} Jobs left: "
                    + ", ".join(
                        f"{name} {scenario.awaits}" for name, scenario in load.alive.items()
                    )
                )
            summary.violations += [
                f"Job {name} waits for {scenario.awaits}: {scenario.described()}"
                for name, scenario in load.alive.items()
            ]
            if work.done():
                work.result()
            else:
                work.cancel()
            if not load.alive:
                summary.violations += await _left_behind(client, settle)
            summary.settled = time.monotonic() - start
            for component in components:
                summary.leaderless[component.name] = round(component.longest, 2)
                summary.violations += component.faults()
            summary.violations += parts.faults()
        summary.parts, summary.away = dict(parts.killed), parts.away
        summary.leaderless_after = parts.leaderless
        summary.jobs = dict(sorted(load.begun.items()))
    summary.violations += histories.violations + context.violations
    mine = [pod for pod in histories.pods.values() if pod.namespace == NAMESPACE]
    summary.pods, summary.bound = len(mine), histories.bound
    summary.fullest = round(histories.fullest, 3)
    return summary


async def _kill(
    components: list[Component],
    parts: Parts,
    each: int,
    summary: Summary,
    report: Report,
    work: asyncio.Task[None],
) -> None:
    """The rounds."""
    choose = random.Random(f"{summary.seed} rounds")
    killed: Counter[str] = Counter()
    stopped: Counter[str] = Counter()
    going_on: set[asyncio.Task[None]] = set()
    for component in components:
        await _leader(component)
    for number in range(summary.rounds):
        if work.done():
            work.result()
        begun = time.monotonic()
        component = components[number % len(components)]
        leader = await _leader(component)
        if choose.random() < STOPPED_SHARE:
            component.stop(leader)
            stopped[component.name] += 1
            pause = choose.uniform(2, 4)
            going_on.add(asyncio.create_task(_go_on(leader, pause)))
            done = "stopped"
        else:
            component.kill(leader)
            killed[component.name] += 1
            done = "killed"
        component.fill_up()
        report(f"{number + 1:>4} of {summary.rounds}: {leader.process.name} {done}")
        await asyncio.sleep(max(0.0, begun + 1 - time.monotonic()))
        if (number + 1) % each == 0:
            for component in components:
                await _leader(component)
            report(f"     {await parts.kill(components)} killed")
    await asyncio.gather(*going_on)
    summary.killed, summary.stopped = dict(killed), dict(stopped)


async def _attack(hostile: EditUser, summary: Summary) -> None:
    """Have a hostile tenant beside the load, over and over."""
    spec = {"nodeSelector": {"kubernetes.io/hostname": HOSTILE}}
    attacker = Hostile(hostile.client, hostile.namespace, spec)
    try:
        while True:
            await attacker.attack(ATTACK)
            await asyncio.sleep(ATTACK_SECONDS)
            await attacker.clear()
            summary.attacks += 1
    finally:
        await attacker.clear()


def _soon() -> Backoff:
    """Pauses of the watches here: they see again soon what goes on once the API server is there again."""
    return Backoff(base=0.02, cap=0.1, seed="kill")


async def _leader(component: Component) -> Member:
    """The process that leads, once one does."""
    found = await until(lambda: component.leader, f"a {component.name} to lead", LEADER_SECONDS)
    assert isinstance(found, Member)
    return found


async def _go_on(member: Member, seconds: float) -> None:
    """Let a stopped process go on."""
    await asyncio.sleep(seconds)
    member.send(signal.SIGCONT)


async def _collects(client: Client) -> None:
    """Wait until the garbage collector knows our kinds: it looks for new ones every 30 seconds."""
    owner = await client.create(JOB, job("owner", namespace=NAMESPACE), NAMESPACE)
    uid = owner["metadata"]["uid"]
    reference = {"apiVersion": JOB.api_version, "kind": "Job", "name": "owner", "uid": uid}
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    await client.create(kinds.CONFIG_MAP, owned, NAMESPACE)
    await client.delete(JOB, "owner", NAMESPACE)

    async def collected() -> bool:
        found = await client.list(kinds.CONFIG_MAP, NAMESPACE)
        return all(each["metadata"]["name"] != "owned" for each in found["items"])

    await until(collected, "the garbage collector to know Jobs")


async def _left_behind(client: Client, seconds: float) -> list[str]:
    """What is there although all Jobs were deleted; the garbage collector takes its time."""
    deadline = time.monotonic() + seconds
    while True:
        found = [
            f"{kind.kind} {each['metadata']['name']} was left behind"
            for kind in LEFT_BEHIND
            for each in (await client.list(kind, NAMESPACE))["items"]
            if each["metadata"]["name"] != "kube-root-ca.crt"
        ]
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


@asynccontextmanager
async def _cluster(plane: ControlPlane) -> AsyncIterator[list[str]]:
    """Have nodes and a namespace within the block; gives the names of the nodes."""
    names = [f"kill-{number}" for number in range(NODES)]
    try:
        for name in names:
            amounts = (ROOM["cpu"], ROOM["memory"], ROOM["pods"])
            await asyncio.to_thread(plane.add_node, name, *amounts)
        await asyncio.to_thread(plane.add_node, HOSTILE, "64", "256Gi", "2000")
        for namespace in (NAMESPACE, HOSTILE):
            await asyncio.to_thread(plane.add_namespace, namespace)
        yield names
    finally:
        for namespace in (NAMESPACE, HOSTILE):
            await asyncio.to_thread(plane.remove_namespace, namespace)
        for name in (*names, HOSTILE):
            await asyncio.to_thread(plane.remove_node, name)


@contextmanager
def _webhook(plane: ControlPlane) -> Iterator[Installation]:
    """Have the chart installed, of whose components only the webhook runs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        installed(plane, Path(folder), components=("webhook",), forked=True) as installation,
    ):
        yield installation


@contextmanager
def _running(components: list[Component]) -> Iterator[None]:
    """Have processes within the block."""
    try:
        for component in components:
            component.fill_up()
        yield
    finally:
        for component in components:
            component.end()
