"""The file of resource groups, followed: whatever it says last that can be used is in force.

kubelet swaps whole folders under a mounted ConfigMap, an editor may rename or write in place, and the
file may come long after the process. So it is read every second and compared; it is small. A file that
cannot be used changes nothing: pods are better judged by yesterday's groups than by none. That is said
in the log once, in `/readyz?verbose` and in the metrics for as long as it lasts, and never makes the
webhook unready, because all replicas read the same file.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from pumice.cluster.clock import Clock, SystemClock
from pumice.webhook.groups.parsing import ConfError, parse
from pumice.webhook.groups.reading import Problem
from pumice.webhook.rules.resource_groups import ResourceGroups
from pumice.webhook.server.metrics import ServerMetrics

__all__ = ["GroupsFile"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class GroupsFile:
    """A file that is read again and again.

    Attributes:
        problem: Why the file is not what is in force, or None when it is.
    """

    def __init__(
        self,
        path: Path,
        use: Callable[[ResourceGroups], None],
        metrics: ServerMetrics,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Read the file for the first time; it need not be there yet. `use` puts its groups into force."""
        self.problem: str | None = None
        self._path = path
        self._use = use
        self._metrics = metrics
        self._clock = clock or SystemClock()
        self._seen: bytes | None = None
        self._loaded = False
        self.look()

    def look(self) -> bool:
        """Read the file once; True when other groups are in force since."""
        try:
            raw = self._path.read_bytes()
        except OSError as error:
            self._seen = None
            self._missing(error)
            return False
        if raw == self._seen:
            return False
        self._seen = raw
        return self._take(raw)

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self._clock.sleep(_POLL_SECONDS)
            await asyncio.to_thread(self.look)

    def _take(self, raw: bytes) -> bool:
        try:
            groups, warnings = parse(raw)
        except ConfError as error:
            self._metrics.conf_reads.labels("failed").inc()
            more = len(error.problems) - 1
            rest = f" (and {more} more, see the log)" if more else ""
            self._hold(f"{self._path}: {error.problems[0]}{rest}")
            for problem in error.problems:
                logger.error("%s: %s", self._path, problem)
            self._warn(error.warnings)
            return False
        self._use(groups)
        self._loaded = True
        self.problem = None
        self._metrics.conf_reads.labels("loaded").inc()
        self._metrics.conf_unusable.set(0)
        self._metrics.groups.set(len(groups))
        self._warn(warnings)
        names = ", ".join(group.name or "?" for group in groups.groups) or "none"
        logger.info("resource groups of %s in force: %s", self._path, names)
        return True

    def _warn(self, warnings: Iterable[Problem]) -> None:
        for warning in warnings:
            logger.warning("%s: %s", self._path, warning)

    def _missing(self, error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            what = f"{self._path}: is gone" if self._loaded else f"{self._path}: is not there yet"
        else:
            what = f"{self._path}: cannot be read: {error.strerror}"
        before = self.problem
        self._hold(what)
        if self.problem != before:
            logger.warning("%s", self.problem)

    def _hold(self, why: str) -> None:
        kept = "the groups read before stay" if self._loaded else "no resource groups are in force"
        self.problem = f"{why}; {kept}"
        self._metrics.conf_unusable.set(1)
