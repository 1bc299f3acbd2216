"""The loop: wait for news, run a cycle, hand on what it decided."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from pumice.api.kinds import POD, POD_GROUP, QUEUE
from pumice.api.podgroups import PodGroup
from pumice.api.queues import Queue
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.probes import Check
from pumice.scheduler import ClusterState, Config, CycleResult, Event, run_cycle
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.feeds import Caches
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.queues import ensure_queues
from pumice.scheduler.worker.settings import WorkerSettings
from pumice.scheduler.worker.statuses import PodConditions, PodGroupStatuses

__all__ = ["SchedulerWorker"]

logger = logging.getLogger(__name__)


class SchedulerWorker(ElectedWorker[WorkerSettings, SchedulerMetrics]):
    """The scheduler of one process.

    Nothing that matters is remembered: the state is built from the caches whenever this process
    starts to lead, and whatever was under way when an earlier leader ended shows in the cluster or is
    decided again.

    Attributes:
        config: How to schedule.
        caches: What it watches.
    """

    component = "pumice-scheduler"

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
        self.config = config
        self.caches = Caches(client, clock)
        super().__init__(
            client,
            settings or WorkerSettings(),
            metrics or SchedulerMetrics(),
            self.caches.all,
            clock=clock,
        )
        for what in config.missing:
            logger.error("configuration: %s is not part of this version and does nothing", what)
            self.metrics.config_missing.labels(what).set(1)

    @property
    def notes(self) -> Mapping[str, Check]:
        """Actions and plugins of the configuration that do nothing."""
        missing = ", ".join(self.config.missing)
        problem = f"not part of this version, does nothing: {missing}" if missing else None
        return {"configuration": lambda: problem}

    async def term(self) -> None:
        """Schedule until cancelled."""
        await _Term(self).run()


class _Term:
    """The time for which this process leads without a break: one state, and the writers it feeds."""

    def __init__(self, worker: SchedulerWorker) -> None:
        self._client = worker.client
        self._config = worker.config
        self._settings = settings = worker.settings
        self._clock = worker.clock
        self._metrics = worker.metrics
        self._caches = worker.caches
        self._recorder = worker.recorder
        self._news = asyncio.Event()
        self._state = ClusterState(
            scheduler_names=settings.scheduler_names, default_queue=settings.default_queue
        )
        self._binder = Binder(
            self._client,
            self._state,
            self._caches.pods,
            self._recorder,
            self._metrics,
            clock=self._clock,
            wake=self._news.set,
            workers=settings.concurrent_binds,
        )
        self._statuses = PodGroupStatuses(self._client, self._caches.pod_groups, self._metrics)
        self._conditions = PodConditions(
            self._client,
            self._caches.pods,
            self._recorder,
            self._metrics,
            clock=self._clock,
            is_binding=self._binder.is_binding,
        )

    async def run(self) -> None:
        writes = self._settings.concurrent_writes
        with self._caches.feeding(self._state, self._news):
            async with asyncio.TaskGroup() as group:
                queues = ensure_queues(self._client, self._clock, self._settings.default_queue)
                group.create_task(queues, name="queues")
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
        kind = QUEUE if event.kind == QUEUE.kind else POD_GROUP
        found: PodGroup | Queue | None
        if kind is QUEUE:
            found = self._caches.queues.get(event.name)
        else:
            found = self._caches.pod_groups.get(event.name, event.namespace)
        if found is not None:
            about = Reference.of(kind, found.metadata)
            self._recorder.record(about, event.type, event.reason, event.message)
