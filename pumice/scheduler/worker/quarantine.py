"""Gangs and cycles that failed unexpectedly: reported, and tried again after a delay that grows.

A gang on which a plugin or the core fails, or that takes several times the budget of a cycle, is left out of cycles for the
delay, so that it costs the others nothing. An
exception that concerns no single gang delays the next cycle instead, and makes the process unready until a cycle succeeds.
"""

import logging

from pumice.cluster.clock import Backoff
from pumice.cluster.turns import first_segment
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler import CycleResult
from pumice.scheduler.budget import OverBudgetError
from pumice.scheduler.worker.context import TermContext

logger = logging.getLogger(__name__)


class Quarantine:
    """Reports failures of cycles and decides when to try again.

    Attributes:
        problem: Why the last cycle did not end, or None when it did.
    """

    def __init__(self, context: TermContext) -> None:
        """Create an empty quarantine; `run` must run."""
        self._context = context
        self._queue: WorkQueue[str] = WorkQueue("quarantine", first_segment)
        self._gang_backoff = Backoff(base=1.0, cap=300.0, seed="quarantine")
        self._cycle_backoff = Backoff(base=0.5, cap=30.0, seed="cycles")
        self._failures: dict[str, int] = {}
        self._on_trial: set[str] = set()
        self._failed_cycles = 0
        self.problem: str | None = None

    async def run(self) -> None:
        """Let gangs take part again until cancelled."""
        try:
            await self._queue.work(self._release)
        finally:
            self._queue.close()

    def after_cycle(self, result: CycleResult) -> float | None:
        """Report what failed in a cycle.

        Returns:
            Minimum delay of the next cycle in seconds; None for no delay.
        """
        for key, error in result.errors.items():
            self._report_gang(key, error)
        if result.error is not None:
            return self._report_cycle(result.error)
        for key in self._on_trial - result.errors.keys():
            self._failures.pop(key, None)
        self._on_trial.clear()
        self._failed_cycles, self.problem = 0, None
        return None

    def _report_gang(self, key: str, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._gang_backoff.delay(failures - 1)
        self._context.metrics.errors.labels("gang").inc()
        if isinstance(error, OverBudgetError):
            logger.error("scheduling %s took too long; again in %.1f s", key, delay)
        else:
            logger.error("scheduling %s failed; again in %.1f s", key, delay, exc_info=error)
        self._queue.add_after(key, delay)
        if failures == 1:
            why = self._context.state.gangs.quarantined[key]
            self._context.warn_owner(key, why.reason, why.message)

    def _report_cycle(self, error: Exception) -> float:
        delay = self._cycle_backoff.delay(self._failed_cycles)
        self._failed_cycles += 1
        self._context.metrics.errors.labels("cycle").inc()
        logger.error("a scheduling cycle failed; the next one in %.1f s", delay, exc_info=error)
        self.problem = (
            f"{self._failed_cycles} cycles in a row failed: {type(error).__name__}: {error}"
        )
        return delay

    async def _release(self, key: str) -> None:
        if self._context.state.gangs.release(key):
            self._on_trial.add(key)
            self._context.wake()
        else:  # its PodGroup was changed, or it is gone
            self._failures.pop(key, None)
