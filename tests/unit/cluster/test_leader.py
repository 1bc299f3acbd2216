"""Who leads when processes come, go, hang and lose the server; the time is moved by hand."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.cluster.client import Client
from pumice.cluster.leader import DEFAULT_TIMES, LeaderElection, LeaseTimes
from tests.kit.clocks import ManualClock, settle
from tests.kit.waiting import until
from tests.unit.cluster.tiny import TinyApi, status

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/pumice"


class Candidate:
    """A process that stands for election, and what it did."""

    def __init__(
        self, client: Client, name: str, clock: ManualClock, *, times: LeaseTimes = DEFAULT_TIMES
    ) -> None:
        self.log: list[str] = []
        self.finish = asyncio.Event()
        self.fail: Exception | None = None
        self.hangs: str | None = None
        self.election = LeaderElection(
            client, "pumice", "ns", name, times=times, clock=clock, hangs=lambda: self.hangs
        )
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.election.run(self._work)
        finally:
            await self.election.release()

    async def _work(self) -> None:
        self.log.append("leads")
        try:
            await self.finish.wait()
            if self.fail:
                raise self.fail
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise

    def leads(self) -> bool:
        return self.election.leading

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Election:
    """Candidates for one Lease, and the time that passes for them."""

    def __init__(self, client: Client, api: TinyApi, clock: ManualClock) -> None:
        self.client, self.api, self.clock = client, api, clock
        self.candidates: list[Candidate] = []

    def enter(self, name: str) -> Candidate:
        candidate = Candidate(self.client, name, self.clock)
        self.candidates.append(candidate)
        return candidate

    @property
    def alive(self) -> int:
        """Number of candidates that have not ended."""
        return sum(not each.task.done() for each in self.candidates)

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.api.objects[LEASE]["spec"])

    async def pass_time(self, seconds: float) -> None:
        """Move the time in small steps, each once all requests are answered and all candidates wait."""
        goal = self.clock.now + seconds
        while self.clock.now < goal:
            await until(lambda: self.clock.sleeping >= self.alive)
            await self.clock.advance(min(2.0, goal - self.clock.now))


@pytest.fixture
async def stage(client: Client, api: TinyApi, clock: ManualClock) -> AsyncIterator[Election]:
    made = Election(client, api, clock)
    yield made
    for candidate in made.candidates:
        await candidate.stop()


async def test_the_first_candidate_leads_and_renews(stage: Election) -> None:
    a = stage.enter("a")
    await until(a.leads)
    assert stage.spec == {
        "holderIdentity": "a",
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
    }
    await stage.pass_time(60)
    # On a busy machine the last renewal may still be under way.
    assert "2027-01-15T08:00:50" < stage.spec["renewTime"] <= "2027-01-15T08:01:00.000000Z"
    assert stage.spec["acquireTime"] == "2027-01-15T08:00:00.000000Z"
    assert a.log == ["leads"]


async def test_a_second_candidate_waits(stage: Election) -> None:
    a = stage.enter("a")
    await until(a.leads)
    b = stage.enter("b")
    await stage.pass_time(60)
    assert not b.leads()
    assert b.election.leader == "a"
    assert b.log == []


async def test_an_orderly_leader_hands_over_at_once(stage: Election) -> None:
    a = stage.enter("a")
    await until(a.leads)
    b = stage.enter("b")
    await settle()
    await a.stop()
    assert a.log == ["leads", "cancelled"]
    assert stage.spec["holderIdentity"] == ""
    await stage.pass_time(2.5)
    assert b.leads()
    assert stage.spec["leaseTransitions"] == 1


async def test_a_dead_leader_is_succeeded_after_its_lease(stage: Election, api: TinyApi) -> None:
    api.objects[LEASE] = {
        "metadata": {"name": "pumice", "namespace": "ns", "resourceVersion": "7"},
        "spec": {
            "holderIdentity": "dead",
            "leaseDurationSeconds": 15,
            # What another machine's clock says does not count, be it early or late.
            "renewTime": "1999-01-01T00:00:00.000000Z",
            "leaseTransitions": 4,
        },
    }
    b = stage.enter("b")
    await stage.pass_time(14)
    assert not b.leads()
    await stage.pass_time(4)
    assert b.leads()
    assert stage.spec["leaseTransitions"] == 5


async def test_leadership_is_lost_when_renewals_fail(stage: Election, api: TinyApi) -> None:
    a = stage.enter("a")
    await until(a.leads)
    for _ in range(40):
        api.answer_next(500, status(500, "InternalError"))
    await stage.pass_time(9)
    assert a.log == ["leads"]
    await stage.pass_time(2)
    assert a.log == ["leads", "cancelled"]
    api.answers.clear()
    await stage.pass_time(20)
    assert a.log == ["leads", "cancelled", "leads"]


async def test_a_short_outage_costs_nothing(stage: Election, api: TinyApi) -> None:
    a = stage.enter("a")
    await until(a.leads)
    for _ in range(3):
        api.answer_next(500, status(500, "InternalError"))
    await stage.pass_time(30)
    assert a.log == ["leads"]
    assert not api.answers


async def test_leadership_is_lost_at_once_when_another_holds_the_lease(
    stage: Election, api: TinyApi
) -> None:
    a = stage.enter("a")
    await until(a.leads)
    lease = api.objects[LEASE]
    await api.put(LEASE.rsplit("/", 1)[0], {**lease, "spec": {**stage.spec, "holderIdentity": "b"}})
    await stage.pass_time(2.5)
    assert a.log == ["leads", "cancelled"]
    assert stage.spec["holderIdentity"] == "b"


async def test_another_clients_edit_of_the_lease_does_not_matter(
    stage: Election, api: TinyApi
) -> None:
    a = stage.enter("a")
    await until(a.leads)
    lease = api.objects[LEASE]
    meta = {**lease["metadata"], "labels": {"edited": "yes"}}
    await api.put(LEASE.rsplit("/", 1)[0], {**lease, "metadata": meta})
    await stage.pass_time(20)
    assert a.log == ["leads"]
    assert api.objects[LEASE]["metadata"]["labels"] == {"edited": "yes"}


async def test_work_that_ends_ends_the_election(stage: Election) -> None:
    a = stage.enter("a")
    await until(a.leads)
    a.finish.set()
    await a.task
    assert stage.spec["holderIdentity"] == ""


async def test_work_that_fails_gives_the_lease_up(stage: Election) -> None:
    a = stage.enter("a")
    await until(a.leads)
    a.fail = RuntimeError("broken work")
    a.finish.set()
    with pytest.raises(RuntimeError, match="broken work"):
        await a.task
    assert stage.spec["holderIdentity"] == ""


async def test_release_finds_a_renewal_that_was_cut_off(stage: Election, api: TinyApi) -> None:
    a = stage.enter("a")
    await until(a.leads)
    # As if the server had taken in a renewal whose answer never came.
    await api.put(LEASE.rsplit("/", 1)[0], dict(api.objects[LEASE]))
    await a.stop()
    assert stage.spec["holderIdentity"] == ""


async def test_two_candidates_at_once_give_one_leader(stage: Election) -> None:
    candidates = [stage.enter(name) for name in "abcd"]
    await stage.pass_time(5)
    assert sum(each.leads() for each in candidates) == 1
    assert sum(len(each.log) for each in candidates) == 1


def test_durations_must_be_in_their_order() -> None:
    with pytest.raises(ValueError, match="renew deadline < lease duration"):
        LeaseTimes(renew_deadline=20)


async def test_a_short_lease_is_looked_at_more_often(
    client: Client, api: TinyApi, clock: ManualClock
) -> None:
    api.objects[LEASE] = {
        "metadata": {"name": "pumice", "namespace": "ns", "resourceVersion": "7"},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1},
    }
    times = LeaseTimes(lease_duration=1.0, renew_deadline=0.7, retry_period=0.2)
    heir = Candidate(client, "heir", clock, times=times)
    for _ in range(4):
        await until(lambda: clock.sleeping == 1)
        await clock.advance(0.2)
    assert not heir.leads()
    await until(lambda: clock.sleeping == 1)
    await clock.advance(0.21)
    await until(heir.leads)
    assert api.objects[LEASE]["spec"]["leaseDurationSeconds"] == 1
    await clock.advance(0.5)
    assert heir.leads()
    await heir.stop()


async def test_after_a_standstill_it_does_not_lead_by_its_own_clock(stage: Election) -> None:
    """A stopped process goes on with what it was about to write before its renewal notices."""
    a = stage.enter("a")
    await until(lambda: a.leads() and a.log == ["leads"])
    stage.clock.now += 11
    assert a.log == ["leads"], "the work was not cancelled yet"
    assert not a.leads()


async def test_work_that_hangs_does_not_keep_the_lease(
    stage: Election, caplog: pytest.LogCaptureFixture
) -> None:
    a = stage.enter("a")
    await until(lambda: a.leads() and a.log == ["leads"])
    a.hangs = "the event loop has stood still for 61 s"
    await stage.pass_time(2)
    assert not a.leads()
    assert "pumice: not renewed: the event loop has stood still for 61 s" in caplog.messages
    assert stage.spec["holderIdentity"] == "a", "it runs out, because the work may not have ended"
    b = stage.enter("b")
    await stage.pass_time(20)
    assert b.leads()
    assert a.log == ["leads", "cancelled"]


async def test_a_process_that_hangs_is_no_candidate(stage: Election) -> None:
    a = Candidate(stage.client, "a", stage.clock)
    a.hangs = "the event loop has stood still for 61 s"
    stage.candidates.append(a)
    await stage.pass_time(10)
    assert LEASE not in stage.api.objects
    a.hangs = None
    await stage.pass_time(1)
    assert a.leads()
