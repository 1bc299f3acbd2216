"""When a process of an elected component works, and what it shows of that."""

import asyncio
import logging

import pytest
from prometheus_client import CollectorRegistry, Gauge

from pumice.api.kinds import POD
from pumice.api.meta import ObjectMeta
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.elected import Candidacy, ElectedWorker
from pumice.cluster.lifecycle import run_until_stopped
from tests.kit.waiting import until
from tests.unit.cluster.clocks import ManualClock
from tests.unit.cluster.tiny import TinyApi

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/part"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge("leading", "1 while this process works.", registry=self.registry)


class Part(ElectedWorker[Candidacy, Metrics]):
    component = "pumice-part"

    def __init__(self, client: Client, name: str = "a", *, elect: bool = True) -> None:
        candidacy = Candidacy(
            lease_name="part", lease_namespace="ns", identity=name, leader_elect=elect
        )
        self.cache = WatchCache(client, POD, ObjectMeta)
        self.terms = 0
        self.time = ManualClock()
        super().__init__(client, candidacy, Metrics(), [self.cache], clock=self.time)

    @property
    def leading(self) -> float | None:
        return self.metrics.registry.get_sample_value("leading")

    async def term(self) -> None:
        self.terms += 1
        await asyncio.Event().wait()


def start(part: Part, stop: asyncio.Event) -> asyncio.Task[None]:
    return asyncio.create_task(run_until_stopped(part.tasks(), stop=stop, signals=()))


async def test_it_works_once_its_caches_are_current(client: Client) -> None:
    part = Part(client, elect=False)
    working = asyncio.create_task(part.run())
    await asyncio.sleep(0.05)
    assert (part.ready, part.terms, part.leading) == (False, 0, 0)

    watching = asyncio.create_task(part.cache.run())
    await until(part.started.is_set)
    assert (part.ready, part.terms, part.leading) == (True, 1, 1)

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
    assert (two.terms, two.leading) == (0, 0)

    stop_one.set()
    await first
    assert one.leading == 0
    await two.time.advance(2)
    await until(two.started.is_set)
    assert api.objects[LEASE]["spec"]["holderIdentity"] == "two"

    stop_two.set()
    await second
    assert api.objects[LEASE]["spec"]["holderIdentity"] == ""
    assert "two leads part" in caplog.messages


def test_its_tasks_have_names_for_the_logs(client: Client) -> None:
    names = [each.name for each in Part(client).tasks()]
    assert names == ["watch of pods", "events", "part"]
