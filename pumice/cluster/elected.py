"""A component with any number of processes, of which one works at a time.

The controller and the scheduler are such components, and differ in the work of a process while it leads.
The rest is here: watches, which run from the start so that a candidate is ready to take over; events; the election;
health and metrics.

The election has a thread and a session of its own: a scheduling cycle that takes longer than the Lease blocks the main loop, and
the Lease is renewed meanwhile. Whether the process leads is asked in the main loop, before each write; a lost lease shows at once
there, and the work is cancelled as soon as the loop turns.

A scheduling cycle and a pass of a controller are calls that the main loop waits for. One that does not end stops everything but
the threads beside it: the Lease would be renewed and `/healthz` would answer for ever. So they ask the heartbeat whether the
main loop still turns.
"""

import asyncio
import logging
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from pumice.api.kinds import LEASE
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.events import DROPS, EventRecorder, Reference
from pumice.cluster.leader import DEFAULT_TIMES, LeaderElection, LeaseTimes
from pumice.cluster.lifecycle import SupervisedTask
from pumice.cluster.set_aside import ObjectFaults
from pumice.cluster.side_loop import call_in, side_loop
from pumice.cluster.slices import collect_frozen
from pumice.cluster.transport import may_write
from pumice.serving.probes import Check

logger = logging.getLogger(__name__)

STALL_SECONDS = 60.0
"""How long the loop may stand still. More than a scheduling cycle may take, be it about one large gang."""

_LONGEST_PAUSE = 1.0
"""Seconds between two beats, at most."""


class Heartbeat:
    """Notes that an event loop turns, while `run` runs in it."""

    def __init__(self, limit: float = STALL_SECONDS, clock: Clock | None = None) -> None:
        """A loop that may stand still for `limit` seconds.

        The clock is the machine's, whatever time a component works by, because this is about the process.
        """
        self._limit = limit
        self._clock = clock or SystemClock()
        self._beat: float | None = None
        self._thread = 0
        self._logged = False

    async def run(self) -> None:
        """Beat until cancelled; call it in the loop that is observed."""
        self._thread = threading.get_ident()
        try:
            while True:
                self._beat, self._logged = self._clock.monotonic(), False
                await self._clock.sleep(min(_LONGEST_PAUSE, self._limit / 4))
        finally:
            self._beat = None

    def problem(self) -> str | None:
        """Why the loop counts as hung, or None while it turns or does not run; from any thread.

        The first time the log says where the loop stands.
        """
        beat = self._beat
        if beat is None or (still := self._clock.monotonic() - beat) <= self._limit:
            return None
        text = f"the event loop has stood still for {still:.0f} s"
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - public, by its documentation
        if frame is not None and not self._logged:
            self._logged = True
            logger.error("%s, in\n%s", text, "".join(traceback.format_stack(frame)))
        return text


_Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """Settings of leader election.

    Attributes:
        lease_name: Name of the Lease.
        lease_namespace: Its namespace.
        identity: Name of this process among the candidates.
        leader_elect: Whether to work only while holding the Lease.
        lease_times: How long the Lease lasts, and how often it is renewed.
        stall_seconds: How long the main event loop may stand still before the process counts as hung.
    """

    lease_name: str
    lease_namespace: str = "default"
    identity: str
    leader_elect: bool = False
    lease_times: LeaseTimes = DEFAULT_TIMES
    stall_seconds: float = STALL_SECONDS


async def run_elected(
    client: Client,
    election_settings: ElectionSettings,
    work: _Work,
    heartbeat: Heartbeat,
) -> None:
    """Work until cancelled: immediately, or with an election while this process leads and its loop turns."""
    if not election_settings.leader_elect:
        await work()
        return
    async with _standing(client, election_settings, heartbeat, None) as candidate:
        await candidate.run(work)


class _Candidate:
    """A candidate whose election runs in the event loop of another thread."""

    def __init__(self, election: LeaderElection, side: asyncio.AbstractEventLoop) -> None:
        self._election = election
        self._side = side

    @property
    def leading(self) -> bool:
        """Whether this process leads by its own clock."""
        return self._election.leading

    async def run(self, while_leading: _Work) -> None:
        """`LeaderElection.run`, with the work in the running loop."""
        await call_in(self._side, partial(self._election.run, _here(while_leading)))

    async def lead_once(self, while_leading: _Work) -> bool:
        """`LeaderElection.lead_once`, with the work in the running loop."""
        return await call_in(self._side, partial(self._election.lead_once, _here(while_leading)))


def _here(work: _Work) -> _Work:
    """The same work, always in the loop that runs now."""
    return partial(call_in, asyncio.get_running_loop(), work)


@asynccontextmanager
async def _standing(
    client: Client,
    election_settings: ElectionSettings,
    heartbeat: Heartbeat,
    clock: Clock | None,
) -> AsyncIterator[_Candidate]:
    """A candidate with a thread and a session of its own, so that neither work nor other requests delay a renewal."""

    async def begin() -> tuple[Client, LeaderElection]:
        own = Client(await client.connection.of_another_thread(), clock=clock)
        return own, LeaderElection(
            own,
            election_settings.lease_name,
            election_settings.lease_namespace,
            election_settings.identity,
            times=election_settings.lease_times,
            clock=clock,
            hangs=heartbeat.problem,
        )

    async with side_loop("lease") as side:
        own, election = await call_in(side, begin)
        try:
            yield _Candidate(election, side)
        finally:
            await call_in(side, election.release)
            await call_in(side, own.close)


async def _without_election(work: _Work) -> bool:
    await work()
    return True


class ElectedMetrics(Protocol):
    """Metrics of an elected component.

    Attributes:
        registry: Where they are registered.
        leading: 1 while this process works.
        events_dropped: Events that were not written, by reason.
    """

    registry: CollectorRegistry
    leading: Gauge
    events_dropped: Counter


S = TypeVar("S", bound=ElectionSettings)
M = TypeVar("M", bound=ElectedMetrics)


class ElectedWorker(ABC, Generic[S, M]):
    """One process of an elected component; its `tasks` must run.

    Attributes:
        client: Session with the API server.
        settings: The settings of the election.
        metrics: The metrics.
        clock: Tells the time and waits.
        recorder: Records events in the component's name.
        faults: Reports objects that are set aside.
        heartbeat: Whether the main event loop turns.
        started: Set while this process works: it leads, and its caches are synced.
    """

    component: str
    """Name of the component in events: `pumice-controller`."""

    def __init__(
        self,
        client: Client,
        settings: S,
        metrics: M,
        caches: Iterable[WatchCache[Any]],
        *,
        clock: Clock | None = None,
    ) -> None:
        """Create a process.

        Args:
            client: Session with the API server.
            settings: The settings of the election.
            metrics: The metrics to update.
            caches: Caches that must be synced before this process is ready and works.
            clock: Tells the time and waits.
        """
        self.client = client
        self.settings = settings
        self.metrics = metrics
        self.clock = clock or SystemClock()
        self.recorder = EventRecorder(
            client,
            self.component,
            instance=settings.identity,
            clock=clock,
            on_drop=lambda reason: metrics.events_dropped.labels(reason).inc(),
        )
        # A counter that begins with its first event hides that event from Prometheus' increase().
        for reason in DROPS:
            metrics.events_dropped.labels(reason)
        self.faults = ObjectFaults(metrics.registry, self.recorder)
        self.heartbeat = Heartbeat(settings.stall_seconds)
        self.started = asyncio.Event()
        self._caches = tuple(caches)
        for each in self._caches:
            each.faults = self.faults
        self._election: _Candidate | None = None

    @abstractmethod
    async def work(self) -> None:
        """Work until cancelled; called each time this process leads and its caches are synced."""

    async def prepare(self, prepared: asyncio.Event) -> None:
        """Do what a leadership needs that a candidate can do already, and keep it current until cancelled.

        Called for each leadership, when this process becomes a candidate for it. Components may have something to do.

        Args:
            prepared: Set when the work can begin.
        """
        prepared.set()
        await asyncio.Event().wait()

    @property
    def checks(self) -> Mapping[str, Check]:
        """Conditions for readiness; a candidate is ready, too. Each may be asked from another thread, while the loop works."""
        return {"caches": self._stale_caches}

    @property
    def ready(self) -> bool:
        """True if all checks pass."""
        return all(check() is None for check in self.checks.values())

    @property
    def lease(self) -> Reference | None:
        """The Lease of the election; None without an election."""
        if not self.settings.leader_elect:
            return None
        return Reference(LEASE, self.settings.lease_name, self.settings.lease_namespace)

    def leads(self) -> bool:
        """True if this process may write as the leader, by its own clock; always True without an election."""
        return self._election is None or self._election.leading

    @property
    def notes(self) -> Mapping[str, Check]:
        """Remarks in `/readyz?verbose` of a ready process, by name, asked like checks; components may add to them."""
        return {}

    def tasks(self) -> tuple[SupervisedTask, ...]:
        """All tasks that must run, for `run_until_stopped`."""
        watches = (
            SupervisedTask(f"watch of {each.kind.resource}", each.run) for each in self._caches
        )
        role = self.component.removeprefix("pumice-")
        return (
            SupervisedTask("heartbeat", self.heartbeat.run),
            *watches,
            SupervisedTask("events", self.recorder.run),
            SupervisedTask(role, self.run),
        )

    async def run(self) -> None:
        """Work until cancelled, while this process leads."""
        if not self.settings.leader_elect:
            await self._stand(_without_election)
            return
        standing = _standing(self.client, self.settings, self.heartbeat, self.clock)
        async with standing as self._election:
            while not await self._stand(self._election.lead_once):
                # Free the state of the lost leadership. The event loop keeps the ended tasks until its next turn.
                await asyncio.sleep(0)
                collect_frozen()

    def _stale_caches(self) -> str | None:
        problems = [each.reflector.problem for each in self._caches]
        return "; ".join(problem for problem in problems if problem) or None

    async def _stand(self, lead_once: Callable[[_Work], Coroutine[Any, Any, bool]]) -> bool:
        """Be a candidate, and work while this process leads; True when the work has returned."""
        prepared = asyncio.Event()
        preparation = asyncio.create_task(self.prepare(prepared))
        leadership = asyncio.create_task(lead_once(partial(self._lead, prepared)))
        try:
            await asyncio.wait([preparation, leadership], return_when=asyncio.FIRST_COMPLETED)
            if preparation.done():
                preparation.result()
            return await leadership
        finally:
            for task in (leadership, preparation):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _lead(self, prepared: asyncio.Event) -> None:
        may_write.set(self.leads)
        # The writes of the last leader must be visible before the first decision.
        caught_up = asyncio.gather(*(cache.reflector.catch_up() for cache in self._caches))
        try:
            await prepared.wait()
            await caught_up
            self.metrics.leading.set(1)
            self.started.set()
            await self.work()
        finally:
            self.started.clear()
            self.metrics.leading.set(0)
            caught_up.cancel()
            await asyncio.gather(caught_up, return_exceptions=True)
