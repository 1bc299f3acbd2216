"""A component whose main event loop is blocked for longer than its lease lasts.

The component runs in a thread of its own, so that the API server, which is in the loop of the test, goes on. It has the
threads that a process has.
"""

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge

from pumice.api.kinds import CONFIG_MAP, LEASE
from pumice.cli.processes import components
from pumice.cli.processes.components import serving_health
from pumice.cluster.client import Client
from pumice.cluster.elected import ElectedWorker, ElectionSettings, Heartbeat
from pumice.cluster.errors import Unavailable
from pumice.cluster.kubeconfig import find_connection
from pumice.cluster.leader import LeaseTimes
from pumice.cluster.lifecycle import run_until_stopped
from pumice.cluster.side_loop import call_in, side_loop
from pumice.embedded import EmbeddedCluster
from tests.kit.stage import quick_cluster
from tests.kit.waiting import until

TIMES = LeaseTimes(lease_duration=1.0, renew_deadline=0.7, retry_period=0.1)
RENEWALS = 12
"""More than fit into a lease: by then it would have run out."""


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge("leading", "1 while this process works.", registry=self.registry)
        self.events_dropped = Counter("dropped", "Events.", ["reason"], registry=self.registry)


def sleeping(ends: threading.Event) -> None:
    """Block the loop in a call that lets other threads run."""
    ends.wait(60)


def computing(ends: threading.Event) -> None:
    """Block the loop in Python code, as a scheduling cycle does."""
    while not ends.is_set():
        sum(range(1000))


class Part(ElectedWorker[ElectionSettings, Metrics]):
    """Blocks its loop when it is told to, and writes as soon as it turns again."""

    component = "pumice-part"

    def __init__(
        self, client: Client, name: str, block: Callable[[threading.Event], None], stall: float
    ) -> None:
        settings = ElectionSettings(
            lease_name="part",
            identity=name,
            leader_elect=True,
            lease_times=TIMES,
            stall_seconds=stall,
        )
        super().__init__(client, settings, Metrics(), [])
        self.main = asyncio.get_running_loop()
        self.block = block
        self.blocks = asyncio.Event()
        self.ends = threading.Event()
        self.blocked = False
        self.leaderships: list[str] = []
        self.wrote: list[bool] = []

    async def work(self) -> None:
        self.leaderships.append("begun")
        try:
            await self.blocks.wait()
            self.blocks.clear()
            self.blocked = True
            self.block(self.ends)
            self.blocked = False
            await self.write()
            await asyncio.Event().wait()
        finally:
            self.leaderships.append("ended")

    async def write(self) -> None:
        name = f"{self.settings.identity}-{len(self.wrote)}"
        written = {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": name, "namespace": "default"},
        }
        with suppress(Unavailable):
            await self.client.create(CONFIG_MAP, written)
            self.wrote.append(True)
            return
        self.wrote.append(False)


class Place:
    """An API server, and the processes that stand for its one Lease."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.store = cluster.store
        self._url = cluster.url
        self.renewals = 0
        self.store.storage.listen(self._note)

    def _note(self, change: Any) -> None:
        self.renewals += change.resource[1] == "leases"

    @property
    def lease(self) -> dict[str, Any]:
        return copy.deepcopy(self.store.get(LEASE, "part", "default") or {"spec": {}})

    @property
    def holder(self) -> str:
        return str(self.lease["spec"].get("holderIdentity", ""))

    async def renewed(self) -> None:
        """Wait until the Lease was renewed for longer than it lasts."""
        goal = self.renewals + RENEWALS
        await until(lambda: self.renewals >= goal, "renewals")

    @asynccontextmanager
    async def part(
        self,
        name: str = "a",
        block: Callable[[threading.Event], None] = sleeping,
        stall: float = 60.0,
    ) -> AsyncIterator[Part]:
        """A process in a thread; what blocks it ends with the block."""

        async def begin() -> tuple[Part, "asyncio.Task[None]"]:
            part = Part(Client(await find_connection(server=self._url)), name, block, stall)
            return part, asyncio.create_task(run_until_stopped(part.tasks(), signals=()))

        async def end() -> None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await part.client.close()

        async with side_loop(f"main of {name}") as main:
            part, running = await call_in(main, begin)
            try:
                await until(lambda: self.holder, f"{name} or another one to lead")
                yield part
            finally:
                part.ends.set()
                await call_in(main, end)

    async def blocked(self, part: Part) -> None:
        """Wait until a process that leads has blocked its loop."""
        await until(part.started.is_set, "the term")
        part.main.call_soon_threadsafe(part.blocks.set)
        await until(lambda: part.blocked, "the loop to be blocked")


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with quick_cluster() as cluster:
        yield Place(cluster)


@pytest.mark.parametrize("block", [sleeping, computing])
async def test_a_blocked_leader_keeps_its_lease_and_writes_afterwards(
    place: Place, block: Callable[[threading.Event], None]
) -> None:
    async with place.part(block=block) as part:
        await place.blocked(part)
        await place.renewed()
        assert part.leads()
        part.ends.set()
        await until(lambda: part.wrote)
    assert (part.wrote, part.leaderships) == ([True], ["begun", "ended"])
    assert place.lease["spec"]["leaseTransitions"] == 0
    assert place.store.get(CONFIG_MAP, "a-0", "default") is not None
    assert place.holder == "", "the Lease is released at the end"


async def test_a_leader_that_loses_its_lease_while_it_is_blocked_writes_nothing(
    place: Place,
) -> None:
    async with place.part() as part:
        await place.blocked(part)
        taken = place.lease
        taken["spec"]["holderIdentity"] = "other"
        place.store.update(taken)
        await until(lambda: not part.leads(), "the loss to be noticed")
        assert part.leaderships == ["begun"], "nothing can be cancelled yet"
        part.ends.set()
        await until(lambda: part.leaderships == ["begun", "ended"])
        assert part.wrote in ([], [False]), "the write is refused, or cancelled before it begins"
        assert not part.started.is_set()
        assert place.holder == "other"
    assert place.store.list(CONFIG_MAP, "default") == []


async def test_a_leader_whose_server_does_not_answer_stops_leading_while_it_is_blocked(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise Unavailable(503, "ServiceUnavailable", "no renewal")

    async with place.part() as part:
        await place.blocked(part)
        with monkeypatch.context() as down:
            down.setattr(Client, "update", refused)
            await until(lambda: not part.leads(), "the deadline to pass")
        part.ends.set()
        await until(lambda: part.leaderships[:2] == ["begun", "ended"])
        assert part.wrote in ([], [False])
        assert place.store.list(CONFIG_MAP, "default") == []
        await until(lambda: part.leaderships == ["begun", "ended", "begun"], "another term")


async def test_a_leader_that_hangs_gives_its_lease_to_another_one(place: Place) -> None:
    async with place.part("a", stall=0.5) as part, place.part("b") as heir:
        await place.blocked(part)
        assert place.holder == "a"
        await until(lambda: heir.leads() and place.holder == "b", "the heir to lead")
        assert part.heartbeat.problem() is not None
        part.ends.set()
        await until(lambda: part.leaderships == ["begun", "ended"])
        assert part.wrote in ([], [False])
        await until(lambda: part.heartbeat.problem() is None, "its loop to turn")
        assert place.holder == "b"
    assert place.store.list(CONFIG_MAP, "default") == []


@asynccontextmanager
async def probed(stall: float, ends: threading.Event) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the probes of a process whose loop is blocked until `ends`."""
    async with side_loop("main") as main:
        heartbeat = Heartbeat(stall)

        async def begin() -> "tuple[int | None, asyncio.Task[None]]":
            return await served.__aenter__(), asyncio.create_task(heartbeat.run())

        async def end() -> None:
            beating.cancel()
            await served.__aexit__(None, None, None)

        registry, alive = CollectorRegistry(), heartbeat.problem
        served = serving_health(0, registry, {}, host="127.0.0.1", alive=alive)
        port, beating = await call_in(main, begin)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
                main.call_soon_threadsafe(sleeping, ends)
                yield client
        finally:
            ends.set()
            await call_in(main, end)


async def asked(client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with client.get(path) as answer:
        return answer.status, await answer.text()


async def test_probes_of_a_blocked_process_are_answered_while_it_is_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(components, "_COLLECT_SECONDS", 0.2)
    ends = threading.Event()
    async with probed(60.0, ends) as client:
        assert await asked(client, "/healthz") == (200, "ok\n")
        assert await asked(client, "/readyz") == (200, "ok\n")
        status, text = await asked(client, "/metrics")
        assert status == 503
        assert "the event loop has not turned for 0.2 s" in text
        assert not ends.is_set()
        ends.set()
        await until(lambda: answers(client, "/metrics", 200))


async def test_a_process_that_hangs_is_not_alive(caplog: pytest.LogCaptureFixture) -> None:
    ends = threading.Event()
    async with probed(0.3, ends) as client:
        await until(lambda: answers(client, "/healthz", 500), "it counts as hung")
        assert "the event loop has stood still for" in (await asked(client, "/healthz"))[1]
        said = [each for each in caplog.messages if "stood still" in each]
        assert len(said) == 1
        assert "in sleeping" in said[0], "the log says where"
        ends.set()
        await until(lambda: answers(client, "/healthz", 200), "it turns again")


async def answers(client: aiohttp.ClientSession, path: str, status: int) -> bool:
    return (await asked(client, path))[0] == status


async def test_metrics_wait_for_the_end_of_a_short_block() -> None:
    ends = threading.Event()
    async with probed(60.0, ends) as client:
        asking = asyncio.create_task(asked(client, "/metrics"))
        await asyncio.sleep(0.1)
        assert not asking.done()
        ends.set()
        assert (await asking)[0] == 200
