"""When a process of an elected component works, and what it shows of that."""

import asyncio
import gc
import logging
import weakref

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge

from pumice.api.kinds import POD
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.elected import ElectedWorker, ElectionSettings, Heartbeat, run_elected
from pumice.cluster.lifecycle import run_until_stopped
from pumice.cluster.transport import CONNECTIONS
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until
from tests.unit.cluster.tiny import TinyApi

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/part"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge("leading", "1 while this process works.", registry=self.registry)
        self.events_dropped = Counter("dropped", "Events.", ["reason"], registry=self.registry)


class Part(ElectedWorker[ElectionSettings, Metrics]):
    component = "pumice-part"

    def __init__(self, client: Client, name: str = "a", *, elect: bool = True) -> None:
        election_settings = ElectionSettings(
            lease_name="part", lease_namespace="ns", identity=name, leader_elect=elect
        )
        self.leaderships = 0
        self.seen: set[str] = set()
        self.time = ManualClock()
        self.cache = WatchCache(client, POD, Pod, clock=self.time)
        super().__init__(client, election_settings, Metrics(), [self.cache], clock=self.time)

    @property
    def leading(self) -> float | None:
        return self.metrics.registry.get_sample_value("leading")

    async def work(self) -> None:
        self.leaderships += 1
        self.seen = {each.metadata.name for each in self.cache.values()}
        await asyncio.Event().wait()


def start(part: Part, stop: asyncio.Event) -> asyncio.Task[None]:
    return asyncio.create_task(run_until_stopped(part.tasks(), stop=stop, signals=()))


async def lose_lease(part: Part, api: TinyApi) -> None:
    """Another process takes the Lease, which the part sees when it renews."""
    spec = {**api.objects[LEASE]["spec"], "holderIdentity": "other"}
    await api.put(LEASE.rpartition("/")[0], {**api.objects[LEASE], "spec": spec})
    await part.time.advance(2)


async def test_it_works_once_its_caches_are_current(client: Client) -> None:
    part = Part(client, elect=False)
    working = asyncio.create_task(part.run())
    await asyncio.sleep(0.05)
    assert (part.ready, part.leaderships, part.leading) == (False, 0, 0)

    watching = asyncio.create_task(part.cache.run())
    await until(part.started.is_set)
    assert (part.ready, part.leaderships, part.leading) == (True, 1, 1)

    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert (part.started.is_set(), part.leading) == (False, 0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_it_waits_ready_while_another_leads_and_hands_over_when_stopped(
    client: Client, api: TinyApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, two = Part(client, "one"), Part(client, "two")
    stop_one, stop_two = asyncio.Event(), asyncio.Event()
    first = start(one, stop_one)
    await until(one.started.is_set)
    second = start(two, stop_two)
    await until(lambda: two.ready and two.time.sleeping)
    assert (two.leaderships, two.leading) == (0, 0)

    stop_one.set()
    await first
    assert one.leading == 0
    await two.time.advance(0.5)
    await until(two.started.is_set)
    assert api.objects[LEASE]["spec"]["holderIdentity"] == "two"

    stop_two.set()
    await second
    assert api.objects[LEASE]["spec"]["holderIdentity"] == ""
    assert "two leads part" in caplog.messages


def test_its_tasks_have_names_for_the_logs(client: Client) -> None:
    names = [each.name for each in Part(client).tasks()]
    assert names == ["heartbeat", "watch of pods", "events", "part"]


async def test_a_new_leader_first_sees_what_the_last_one_wrote(
    client: Client, api: TinyApi
) -> None:
    one, two = Part(client, "one"), Part(client, "two")
    stop_one, stop_two = asyncio.Event(), asyncio.Event()
    first = start(one, stop_one)
    await until(one.started.is_set)
    second = start(two, stop_two)
    await until(lambda: two.ready and two.time.sleeping and api.watching == 2)
    api.mute_watches()
    await api.put("/api/v1/pods", {"metadata": {"name": "late", "namespace": "ns"}})
    stop_one.set()
    await first
    await two.time.advance(0.5)
    await until(two.started.is_set)
    assert two.seen == {"late"}
    stop_two.set()
    await second


class Prepared(Part):
    """A part that has something to prepare, and counts how often it has begun to."""

    begun, fails, slow = 0, False, False

    async def prepare(self, prepared: asyncio.Event) -> None:
        self.begun += 1
        if self.fails:
            raise RuntimeError("cannot be prepared")
        if not self.slow:
            prepared.set()
        await asyncio.Event().wait()


async def test_a_candidate_prepares_before_it_leads(client: Client) -> None:
    one, two = Prepared(client, "one"), Prepared(client, "two")
    stop_one, stop_two = asyncio.Event(), asyncio.Event()
    first = start(one, stop_one)
    await until(one.started.is_set)
    second = start(two, stop_two)
    await until(lambda: two.time.sleeping and two.begun)
    assert (one.leaderships, two.leaderships) == (1, 0)
    stop_one.set()
    await first
    await two.time.advance(0.5)
    await until(two.started.is_set)
    assert (two.begun, two.leaderships) == (1, 1), "what the candidate prepared is used"
    stop_two.set()
    await second


async def test_a_lost_term_is_followed_by_another_preparation(client: Client, api: TinyApi) -> None:
    part, stop = Prepared(client), asyncio.Event()
    running = start(part, stop)
    await until(part.started.is_set)
    await lose_lease(part, api)
    await until(lambda: part.begun == 2)
    assert (part.started.is_set(), part.leaderships) == (False, 1)
    stop.set()
    await running


class Filled(Part):
    """A part whose preparation is an object that refers to itself, and that the garbage collector does not look at."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.prepared: list[weakref.ref[object]] = []

    async def prepare(self, prepared: asyncio.Event) -> None:
        class State:
            own: object = None

        state = State()
        state.own = state
        self.prepared.append(weakref.ref(state))
        gc.freeze()
        await super().prepare(prepared)


async def test_what_was_prepared_for_a_lost_term_is_freed(client: Client, api: TinyApi) -> None:
    part, stop = Filled(client), asyncio.Event()
    running = start(part, stop)
    await until(part.started.is_set)
    await lose_lease(part, api)
    await until(lambda: len(part.prepared) == 2)
    assert [each() is None for each in part.prepared] == [True, False]
    stop.set()
    await running


async def test_a_term_waits_for_its_preparation(client: Client) -> None:
    part, stop = Prepared(client), asyncio.Event()
    part.slow = True
    running = start(part, stop)
    await until(lambda: part.begun == 1 and part.leads())
    await asyncio.sleep(0.05)
    assert (part.leaderships, part.leading) == (0, 0)
    stop.set()
    await running


async def test_a_preparation_that_fails_ends_the_process(client: Client, api: TinyApi) -> None:
    part = Prepared(client)
    part.fails = True
    with pytest.raises(RuntimeError, match="cannot be prepared"):
        await run_until_stopped(part.tasks(), signals=())
    assert LEASE not in api.objects or not api.objects[LEASE]["spec"]["holderIdentity"]


async def test_it_leads_by_its_own_clock(client: Client) -> None:
    part, stop = Part(client), asyncio.Event()
    running = start(part, stop)
    await until(part.started.is_set)
    assert part.leads()
    part.time.now += 11
    assert not part.leads()
    stop.set()
    await running
    assert Part(client, elect=False).leads()


async def test_a_silent_watch_makes_it_unready(client: Client) -> None:
    part, stop = Part(client), asyncio.Event()
    running = start(part, stop)
    await until(lambda: part.ready)
    part.time.now += 200
    assert not part.ready
    assert part.checks["caches"]() == "pods: no event or bookmark for 200 s"
    stop.set()
    await running


async def test_the_lease_has_a_connection_of_its_own(client: Client, api: TinyApi) -> None:
    async def occupy() -> None:
        async for _ in client.collection(POD, "busy").watch("1"):
            pass

    busy = [asyncio.create_task(occupy()) for _ in range(CONNECTIONS)]
    await until(lambda: api.watching == CONNECTIONS)
    leads = asyncio.Event()

    async def work() -> None:
        leads.set()

    election_settings = ElectionSettings(
        lease_name="part", lease_namespace="ns", identity="a", leader_elect=True
    )
    async with asyncio.timeout(60):
        await run_elected(client, election_settings, work, Heartbeat())
    assert leads.is_set()
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
