"""The loop: wait for changes, run a cycle, pass its decisions on."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pumice.api.kinds import POD
from pumice.cluster.cache import wait_synced
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectedWorker
from pumice.cluster.lifecycle import SupervisedTask
from pumice.cluster.slices import in_slices
from pumice.scheduler import Budget, ClusterState, Config, CycleResult, Event, run_cycle
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.claim_bindings import ClaimBinder
from pumice.scheduler.worker.configuration import ActiveConfig, WorkerSettings
from pumice.scheduler.worker.context import TermContext
from pumice.scheduler.worker.evictions import Evictor
from pumice.scheduler.worker.feeds import SchedulerCaches
from pumice.scheduler.worker.gate_removals import GateOpener
from pumice.scheduler.worker.metrics import SchedulerMetrics
from pumice.scheduler.worker.quarantine import Quarantine
from pumice.scheduler.worker.queue_writes import QueueStatuses, ensure_queues
from pumice.scheduler.worker.statuses import PodConditions, PodGroupStatuses
from pumice.scheduler.worker.usage import UsageKeeper
from pumice.serving.probes import Check

logger = logging.getLogger(__name__)

_SETTLING_PERIOD = 30.0
"""Seconds between two times at which a candidate brings its state into order, so that this does not pile up."""

_FILLING = "not all pods are taken in yet"

_PAUSE = 0.25
"""Pause between two cycles of which the first one did not reach all gangs, as a part of the budget."""


class SchedulerWorker(ElectedWorker[WorkerSettings, SchedulerMetrics]):
    """The scheduler of one process.

    It has no state that a restart could lose: for each leadership the state is built from the caches while this process
    is a candidate. Unfinished work of an earlier leader is visible in the cluster or decided again.

    Attributes:
        config: How to schedule, and the file that says so.
        caches: What it watches.
    """

    component = "pumice-scheduler"

    def __init__(
        self,
        client: Client,
        config: Config,
        settings: WorkerSettings | None = None,
        *,
        config_file: Path | None = None,
        config_text: bytes = b"",
        clock: Clock | None = None,
        metrics: SchedulerMetrics | None = None,
    ) -> None:
        """Create a worker; its `tasks` must run. The file from which `config` was read, with that text, is followed."""
        metrics = metrics or SchedulerMetrics()
        self.config = ActiveConfig(config, config_file, metrics, text=config_text, clock=clock)
        self._leadership: _Leadership | None = None
        self.caches = SchedulerCaches(client, clock)
        super().__init__(
            client, settings or WorkerSettings(), metrics, self.caches.required, clock=clock
        )
        self.caches.hyper_nodes.faults = self.faults

    @property
    def notes(self) -> Mapping[str, Check]:
        """What is wrong with the configuration."""
        return {"configuration": lambda: self.config.problem}

    def tasks(self) -> tuple[SupervisedTask, ...]:
        """All tasks that must run, for `run_until_stopped`."""
        file = self.config.file
        follows = (SupervisedTask("configuration", file.run),) if file is not None else ()
        hyper_nodes = SupervisedTask("watch of hypernodes", self.caches.hyper_nodes.run)
        return (*follows, hyper_nodes, *super().tasks())

    @property
    def checks(self) -> Mapping[str, Check]:
        """What must hold for this process to be ready."""
        return {
            **super().checks,
            "state": lambda: now.lack if (now := self._leadership) else None,
            "cycles": lambda: now.problem if (now := self._leadership) else None,
        }

    async def prepare(self, prepared: asyncio.Event) -> None:
        """Fill a state and keep it current, so that a candidate can take over at once; with 140,000 pods this takes seconds."""
        self._leadership = _Leadership(self)
        try:
            await self._leadership.feed(prepared)
        finally:
            self._leadership = None

    async def work(self) -> None:
        """Schedule until cancelled."""
        assert self._leadership is not None
        self.config.news = self._leadership.take_up_config
        try:
            await self._leadership.run()
        finally:
            self.config.news = lambda: None


class _Leadership:
    """The scheduler while this process is the leader, or a candidate: one state and its writers.

    Attributes:
        lack: Why the work cannot begin, or None when it can.
    """

    def __init__(self, worker: SchedulerWorker) -> None:
        self._config = worker.config
        self._lease = worker.lease
        self._settings = settings = worker.settings
        self._news = asyncio.Event()
        self.lack: str | None = _FILLING
        self._context = context = TermContext(
            client=worker.client,
            state=ClusterState(
                scheduler_names=settings.scheduler_names,
                default_queue=settings.default_queue,
                delays=settings.delays,
                opens_gates=settings.opens_gates,
            ),
            caches=worker.caches,
            recorder=worker.recorder,
            faults=worker.faults,
            metrics=worker.metrics,
            clock=worker.clock,
            wake=self._news.set,
            leads=worker.leads,
        )
        self._binder = Binder(context)
        self._claims = ClaimBinder(
            context,
            self._binder,
            lambda: self._config.config.bind_timeout,
            settings.concurrent_binds,
        )
        self._evictor = Evictor(context)
        self._gates = GateOpener(context)
        self._quarantine = Quarantine(context)
        self._statuses = PodGroupStatuses(context)
        self._queue_statuses = QueueStatuses(context)
        self._usage = UsageKeeper(context, lambda: self._config.config, settings.lease_namespace)
        self._conditions = PodConditions(context, self._is_binding)

    @property
    def problem(self) -> str | None:
        """Why cycles do not end, or None when they do."""
        return self._quarantine.problem

    def take_up_config(self) -> None:
        """Schedule by another configuration from now on, or say why not."""
        recorder, problem = self._context.recorder, self._config.problem
        if self._lease is not None and self._config.file is not None:
            if self._config.file.problem is not None:
                recorder.record(self._lease, "Warning", "ConfigUnusable", str(problem))
            else:
                recorder.record(
                    self._lease, "Normal", "ConfigLoaded", f"{self._config.file.path} is in effect"
                )
        self._news.set()

    async def feed(self, filled: asyncio.Event) -> None:
        """Fill the state from the caches, and keep it current until cancelled."""
        caches, state, clock = self._context.caches, self._context.state, self._context.clock
        await wait_synced(*caches.required)
        if not caches.hyper_nodes.reflector.answered.is_set():
            self.lack = "it is not known yet which HyperNodes there are"
            await caches.hyper_nodes.reflector.answered.wait()
            self.lack = _FILLING
        async with caches.feeding(state, self._news, clock):
            try:
                async for _ in in_slices(state.preparing()):
                    pass
            except Exception:
                logger.exception("the state cannot be prepared; the first cycle does it at once")
            self.lack = None
            filled.set()
            while not self._context.leads():  # otherwise cycles do it
                try:
                    state.settle(clock.wall())
                except Exception:
                    logger.exception(
                        "the state cannot be brought into order; a cycle tries it again"
                    )
                await clock.sleep(_SETTLING_PERIOD)
            await asyncio.Event().wait()

    async def run(self) -> None:
        settings, context = self._settings, self._context
        writes = settings.concurrent_writes
        context.metrics.volcano.queues.state = context.state
        try:
            async with self._claims.watching(), asyncio.TaskGroup() as group:
                queues = ensure_queues(context.client, context.clock, settings.default_queue)
                group.create_task(queues, name="queues")
                group.create_task(self._binder.run(settings.concurrent_binds), name="bindings")
                group.create_task(self._claims.run(), name="claims")
                evictions = self._evictor.run(settings.concurrent_evictions)
                group.create_task(evictions, name="evictions")
                gates = self._gates.run(settings.concurrent_gates)
                group.create_task(gates, name="gates")
                group.create_task(self._quarantine.run(), name="quarantine")
                group.create_task(self._statuses.queue.run(writes), name="statuses")
                group.create_task(self._queue_statuses.queue.run(writes), name="queue statuses")
                group.create_task(self._conditions.queue.run(writes), name="conditions")
                await self._usage.begin()
                group.create_task(self._usage.run(), name="usage")
                group.create_task(self._cycles(), name="cycles")
        finally:
            context.metrics.volcano.queues.state = None
            context.metrics.end_leadership()
            await context.sent.answered()

    async def _cycles(self) -> None:
        clock, metrics = self._context.clock, self._context.metrics
        measure = metrics.volcano.measure(clock)
        budget = Budget(self._settings.cycle_budget, time.thread_time)
        while True:
            await self._context.caches.settled()
            self._news.clear()
            started = clock.monotonic()
            state, config = self._context.state, self._config.config
            result = run_cycle(state, config, clock.wall(), measure, budget)
            metrics.cycle_seconds.observe(clock.monotonic() - started)
            metrics.cycles.inc()
            metrics.decided.inc(result.decided)
            metrics.volcano.decided(result)
            metrics.pending.set(len(result.pending))
            metrics.unreached.set(result.unreached)
            metrics.nodes.set(len(self._context.caches.nodes))
            self._hand_on(result)
            delay = self._quarantine.after_cycle(result)
            if delay is not None:
                await clock.sleep(delay)
                continue
            if result.unreached:
                # Requests of the last cycle go out, and answers and changes come in, before the next one.
                await clock.sleep(self._settings.cycle_budget * _PAUSE)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.period):
                    await self._news.wait()
                    await clock.sleep(self._settings.debounce)

    def _is_binding(self, key: str, uid: str) -> bool:
        """Whether a pod has a place that the API server has not confirmed or refused yet."""
        return self._binder.is_binding(key, uid) or self._claims.is_binding(key, uid)

    def _hand_on(self, result: CycleResult) -> None:
        """Pass decisions on. What fails at one object sets that one aside; a part that fails as a whole affects no other."""
        parts: tuple[Callable[[], None], ...] = (
            lambda: self._claims.bind(result.binds),
            lambda: self._evict(result),
            lambda: self._gates.open(result.opened),
            lambda: self._statuses.put(result.pod_groups, result.urgent),
            lambda: self._conditions.put(result.pods),
            lambda: self._conditions.nominate(result.nominations),
            self._queue_statuses.put,
            lambda: self._count_started(result.started),
        )
        for part in parts:
            try:
                part()
            except Exception:
                self._context.metrics.errors.labels("cycle").inc()
                logger.exception("a decision of a cycle cannot be passed on")

    def _evict(self, result: CycleResult) -> None:
        victims = set(result.evicted)
        of_victims: dict[str, Event] = {}
        for event in result.events:
            key = f"{event.namespace}/{event.name}"
            if event.kind == POD.kind and key in victims:
                of_victims[key] = event  # recorded after the eviction
            else:
                self._record(event)
        self._evictor.evict(result.evicted, of_victims)

    def _count_started(self, gangs: Iterable[str]) -> None:
        for key in gangs:
            group = self._context.caches.pod_groups.named(key)
            if group is not None:
                self._context.metrics.volcano.started(group.metadata, self._context.clock.wall())

    def _record(self, event: Event) -> None:
        cache = next(each for each in self._context.caches.all if each.kind.kind == event.kind)
        if cache.get(event.name, event.namespace) is not None:
            about = cache.reference(event.name, event.namespace)
            self._context.recorder.record(about, event.type, event.reason, event.message)
