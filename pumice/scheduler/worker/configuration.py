"""Settings of the scheduler's process, and its configuration file at run time, which is watched.

If the file is invalid, its last valid content stays in effect. This is reported in the log, in a metric, in
`/readyz?verbose`, and by the leader in an event of its Lease.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pumice.api import keys
from pumice.cluster.clock import Clock
from pumice.cluster.elected import ElectionSettings
from pumice.cluster.files import FollowedFile, UnusableFileError
from pumice.scheduler import Config, ConfigError, load_config
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.options import idle_actions
from pumice.scheduler.worker.metrics import SchedulerMetrics

logger = logging.getLogger(__name__)


DELAYS = ReportDelays(cause=1.0, pods=5.0, numbers=30.0, arrival=5.0, counts=5.0)
"""Delays in a cluster: short-lived states are not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings(ElectionSettings):
    """Settings of the worker.

    Attributes:
        scheduler_names: `schedulerName` of the pods that are placed; others only take room.
        default_queue: Queue of PodGroups that name none.
        opens_gates: Whether the gate of pods that wait for room in their queue is taken away; Volcano's feature gate
            `SchedulingGatesQueueAdmission`.
        period: Longest time between two cycles, in seconds.
        debounce: Time for which changes are gathered before a cycle, in seconds: a Job's pods arrive
            one after the other, and a cycle for each of them would place nothing.
        cycle_budget: Processor time of a cycle in seconds, after which it leaves gangs to the next one; see `scheduler.budget`.
        delays: How long reasons wait before they are written.
        concurrent_binds: Bindings of pods under way at once, and writes for bindings of claims.
        concurrent_evictions: Evictions under way at once.
        concurrent_gates: Gates that are taken away at once.
        concurrent_writes: Writes of statuses and conditions under way at once, of each kind.
    """

    scheduler_names: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,)
    default_queue: str = keys.DEFAULT_QUEUE
    opens_gates: bool = False
    period: float = 1.0
    debounce: float = 0.02
    cycle_budget: float = 1.0
    delays: ReportDelays = DELAYS
    concurrent_binds: int = 32
    concurrent_evictions: int = 8
    concurrent_gates: int = 5
    concurrent_writes: int = 16
    lease_name: str = "pumice-scheduler"
    identity: str = "pumice-scheduler"


class ActiveConfig:
    """The configuration of a running scheduler.

    Attributes:
        config: What is in effect.
        file: The file that is followed, if there is one.
        news: Called in the event loop when the configuration has changed, or cannot be used.
    """

    def __init__(
        self,
        config: Config,
        path: Path | None,
        metrics: SchedulerMetrics,
        *,
        text: bytes = b"",
        clock: Clock | None = None,
    ) -> None:
        """Begin with a configuration that was read already, and with what its file said then; a file is followed."""
        self.config = config
        self.news: Callable[[], None] = lambda: None
        self._metrics = metrics
        self.file = _ConfigFile(path, self, metrics, clock) if path is not None else None
        if self.file is not None:
            self.file.began_with(text)
        self.use(config)

    @property
    def problem(self) -> str | None:
        """What an administrator should look at: a file that cannot be used, or what does nothing."""
        if self.file is not None and self.file.problem is not None:
            return self.file.problem
        missing, idle = ", ".join(self.config.missing), ", ".join(self._idle)
        problems = []
        if missing:
            problems.append(f"not part of this version, does nothing: {missing}")
        if idle:
            problems.append(f"does nothing without a plugin that takes part: {idle}")
        return "; ".join(problems) or None

    def use(self, config: Config) -> None:
        """Put a configuration into effect."""
        for what in config.missing:
            logger.error("configuration: %s is not part of this version and does nothing", what)
        self._idle = [f"action {name}" for name in idle_actions(config)]
        for what in self._idle:
            logger.error("configuration: %s does nothing without a plugin that takes part", what)
        self._metrics.config_missing.clear()
        for what in (*config.missing, *self._idle):
            self._metrics.config_missing.labels(what).set(1)
        self.config = config


class _ConfigFile(FollowedFile):
    kept = "the configuration read before stays in effect"
    none = "the defaults are in effect"

    def __init__(
        self, path: Path, in_force: ActiveConfig, metrics: SchedulerMetrics, clock: Clock | None
    ) -> None:
        super().__init__(path, is_loaded=True, clock=clock)
        self._in_force = in_force
        self._metrics = metrics

    def take(self, raw: bytes) -> None:
        try:
            config = load_config(raw.decode())
        except UnicodeDecodeError:
            self._refuse("must be UTF-8 text")
        except ConfigError as error:
            for problem in error.errors:
                logger.error("%s: %s", self.path, problem)
            more = len(error.errors) - 1
            rest = f" (and {more} more, see the log)" if more else ""
            self._refuse(f"{error.errors[0]}{rest}")
        else:
            self._metrics.config_unusable.set(0)
            for warning in config.warnings:
                logger.warning("%s: %s", self.path, warning)
            self._in_force.use(config)
            self._metrics.config_reads.labels("loaded").inc()
            logger.info("configuration of %s in effect", self.path)

    def hold(self, why: str) -> None:
        super().hold(why)
        self._metrics.config_unusable.set(1)

    def changed(self) -> None:
        self._in_force.news()

    def _refuse(self, why: str) -> None:
        self._metrics.config_reads.labels("failed").inc()
        raise UnusableFileError(why)
