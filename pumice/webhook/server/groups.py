"""The file of resource groups, which is read again when it changes.

The groups of the last valid file stay in effect. An invalid file is logged once, and shown in `/readyz?verbose` and in
the metrics until it is corrected. It does not make the webhook unready, because all replicas read the same file.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.cluster.child_process import in_child_process
from pumice.cluster.clock import Clock
from pumice.cluster.files import FollowedFile, UnusableFileError
from pumice.webhook.rules.resource_groups import ResourceGroups
from pumice.webhook.server.metrics import ServerMetrics

__all__ = ["GroupsFile"]

logger = logging.getLogger(__name__)


class GroupsFile(FollowedFile):
    """Resource groups of a file that may change."""

    kept = "the groups read before stay"
    none = "no resource groups are in effect"

    def __init__(
        self,
        path: Path,
        use: Callable[[ResourceGroups], None],
        metrics: ServerMetrics,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Read the file for the first time; it need not exist yet. `use` puts its groups into effect."""
        super().__init__(path, clock=clock)
        self._use = use
        self._metrics = metrics
        self.look()

    def take(self, raw: bytes) -> None:
        """Put the groups of the file into effect."""
        try:
            groups, warnings = in_child_process(_parsed, raw)
        except SettingError as error:
            self._metrics.conf_reads.labels("failed").inc()
            for problem in error.problems:
                logger.error("%s: %s", self.path, problem)
            self._warn(error.warnings)
            more = len(error.problems) - 1
            rest = f" (and {more} more, see the log)" if more else ""
            raise UnusableFileError(f"{error.problems[0]}{rest}") from None
        self._use(groups)
        self._metrics.conf_reads.labels("loaded").inc()
        self._metrics.conf_unusable.set(0)
        self._metrics.groups.set(len(groups))
        self._warn(warnings)
        names = ", ".join(group.name or "?" for group in groups.groups) or "none"
        logger.info("resource groups of %s in effect: %s", self.path, names)

    def hold(self, why: str) -> None:
        """Record that the groups in effect are not those of the file."""
        super().hold(why)
        self._metrics.conf_unusable.set(1)

    def _warn(self, warnings: Iterable[SettingProblem]) -> None:
        for warning in warnings:
            logger.warning("%s: %s", self.path, warning)


def _parsed(raw: bytes) -> tuple[ResourceGroups, tuple[SettingProblem, ...]]:
    from pumice.webhook.resource_group_file import parse  # imports pydantic

    return parse(raw)
