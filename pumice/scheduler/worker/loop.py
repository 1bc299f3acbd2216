"""The loop: wait for news, run a cycle, hand on what it decided."""

import asyncio
import logging
from contextlib import suppress
from typing import Literal

from pumice.api.kinds import POD, POD_GROUP
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.leader import run_elected
from pumice.cluster.lifecycle import Eternal
from pumice.scheduler import ClusterState, Config, CycleResult, Event, run_cycle
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.feeds import Caches
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.queues import ensure_queues
from pumice.scheduler.worker.settings import WorkerSettings
from pumice.scheduler.worker.statuses import PodConditions, PodGroupStatuses

__all__ = ["SchedulerWorker"]

logger = logging.getLogger(__name__)

COMPONENT = "pumice-scheduler"


class SchedulerWorker:
    """The scheduler of one process.

    Nothing that matters is remembered: the state is built from the caches whenever this process
    starts to lead, and whatever was under way when an earlier leader ended shows in the cluster or is
    decided again.

    Attributes:
        caches: What it watches.
        metrics: What it counts.
        started: Set while it schedules: it leads, and its caches are current.
    """

    def __init__(
        self,
        client: Client,
        config: Config,
        settings: WorkerSettings | None = None,
        *,
        clock: Clock | None = None,
        metrics: SchedulerMetrics | None = None,
    ) -> None:
        """Make a worker; its `tasks` must run.

        Args:
            client: Session with the API server.
            config: How to schedule.
            settings: How to work.
            clock: Tells the time and waits.
            metrics: What to count in.
        """
        self._client = client
        self._config = config
        self._settings = settings or WorkerSettings()
        self._clock = clock or SystemClock()
        self.metrics = metrics or SchedulerMetrics()
        self.caches = Caches(client, clock)
        self.started = asyncio.Event()
        self._recorder = EventRecorder(
            client, COMPONENT, instance=self._settings.identity, clock=clock
        )

    @property
    def ready(self) -> bool:
        """Whether every cache is current; a process that waits to lead is ready, too."""
        return self.caches.synced

    def tasks(self) -> tuple[Eternal, ...]:
        """Everything that must run, for `run_until_stopped`."""
        watches = (Eternal(f"watch of {each.kind.resource}", each.run) for each in self.caches.all)
        return (
            *watches,
            Eternal("events", self._recorder.run),
            Eternal("scheduler", self.run),
        )

    async def run(self) -> None:
        """Schedule until cancelled, once this process leads."""
        await run_elected(self._client, self._settings, self._clock, self._lead)

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as group:
            queues = ensure_queues(self._client, self._clock, self._settings.default_queue)
            group.create_task(queues, name="queues")
            await self.caches.wait_synced()
            await self._serve()

    async def _serve(self) -> None:
        self.metrics.leading.set(1)
        self.started.set()
        try:
            await _Term(
                self._client,
                self._config,
                self._settings,
                self._clock,
                self.metrics,
                self.caches,
                self._recorder,
            ).run()
        finally:
            self.started.clear()
            self.metrics.leading.set(0)


class _Term:
    """The time for which this process leads without a break: one state, and the writers it feeds."""

    def __init__(
        self,
        client: Client,
        config: Config,
        settings: WorkerSettings,
        clock: Clock,
        metrics: SchedulerMetrics,
        caches: Caches,
        recorder: EventRecorder,
    ) -> None:
        self._client = client
        self._config = config
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._caches = caches
        self._recorder = recorder
        self._news = asyncio.Event()
        self._state = ClusterState(
            scheduler_names=settings.scheduler_names, default_queue=settings.default_queue
        )
        self._binder = Binder(
            client,
            self._state,
            caches.pods,
            recorder,
            metrics,
            clock=clock,
            wake=self._news.set,
            workers=settings.concurrent_binds,
        )
        self._statuses = PodGroupStatuses(client, caches.pod_groups, metrics)
        self._conditions = PodConditions(
            client,
            caches.pods,
            recorder,
            metrics,
            clock=clock,
            is_binding=self._binder.is_binding,
        )

    async def run(self) -> None:
        writes = self._settings.concurrent_writes
        with self._caches.feeding(self._state, self._news):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._binder.run(), name="bindings")
                group.create_task(self._statuses.run(writes), name="statuses")
                group.create_task(self._conditions.run(writes), name="conditions")
                group.create_task(self._cycles(group), name="cycles")

    async def _cycles(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._news.clear()
            started = self._clock.monotonic()
            result = run_cycle(self._state, self._config, self._clock.wall())
            self._metrics.cycle_seconds.observe(self._clock.monotonic() - started)
            self._metrics.cycles.inc()
            self._metrics.decided.inc(result.decided)
            self._metrics.pending.set(len(result.pending))
            self._metrics.nodes.set(len(self._caches.nodes))
            self._hand_on(result, group)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.period):
                    await self._news.wait()
                    await self._clock.sleep(self._settings.debounce)

    def _hand_on(self, result: CycleResult, group: asyncio.TaskGroup) -> None:
        self._binder.bind(result.binds)
        self._statuses.put(result.pod_groups)
        self._conditions.put(result.pods)
        for key in result.evicted:
            group.create_task(self._evict(key), name=f"eviction of {key}")
        for event in result.events:
            self._tell(event)

    async def _evict(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        pod = self._caches.pods.get(name, namespace)
        if pod is None:
            return
        try:
            await self._client.evict(namespace, name, uid=pod.metadata.uid)
        except NotFound:
            return
        except ApiError as error:
            logger.warning("evicting %s: %s", key, error)
            self._metrics.evictions.labels("failed").inc()
            self._state.set_pod(pod)
            self._news.set()
            return
        self._metrics.evictions.labels("evicted").inc()
        self._recorder.record(
            Reference.of(POD, pod.metadata), "Normal", "Evict", "Evicted to make room for others"
        )

    def _tell(self, event: Event) -> None:
        if event.kind != POD_GROUP.kind:
            return
        group = self._caches.pod_groups.get(event.name, event.namespace)
        if group is not None:
            about = Reference.of(POD_GROUP, group.metadata)
            severity: Literal["Normal", "Warning"] = (
                "Warning" if event.type == "Warning" else "Normal"
            )
            self._recorder.record(about, severity, event.reason, event.message)
