"""Writes of PodGroup statuses that cycles computed.

A write carries the resourceVersion of the PodGroup that the status was computed from. When the PodGroup has changed
since (the Job controller has reset it to Pending, for example), the API server answers with a conflict, and the assumed status
ends when the watch shows the change: the next cycle decides on the PodGroup as it is then.
"""

from collections.abc import Iterable, Set

import msgspec

from pumice.api.kinds import POD_GROUP
from pumice.api.meta import Raw
from pumice.api.podgroups import PodGroupStatus
from pumice.cluster.errors import NotFound
from pumice.scheduler.worker.context import TermContext
from pumice.scheduler.worker.writing import WriteQueue

__all__ = ["PodGroupStatuses"]


class PodGroupStatuses:
    """Writes the statuses that the state assumes."""

    def __init__(self, context: TermContext) -> None:
        """Create a writer; `run` must run."""
        self._client = context.client
        self._assumed = context.state.assumed
        self._delay = context.state.delays.counts
        self._queue = WriteQueue(
            "podgroup",
            self._write,
            context.metrics,
            context.faults_of("PodGroup status", context.caches.pod_groups),
        )

    def put(self, keys: Iterable[str], urgent: Set[str]) -> None:
        """Have the assumed statuses of PodGroups written.

        Args:
            keys: Which, by `namespace/name`.
            urgent: Those that are written at once; the others wait, so that later changes are written with them.
        """
        for key in keys:
            self._queue.add(key, 0.0 if key in urgent else self._delay)

    async def run(self, workers: int) -> None:
        """Write until cancelled."""
        await self._queue.run(workers)

    async def _write(self, key: str) -> None:
        assumed = self._assumed.status_to_write(key)
        if assumed is None:
            return  # written, refused, or the PodGroup has changed
        namespace, _, name = key.partition("/")
        patch = {
            "metadata": {"uid": assumed.uid, "resourceVersion": assumed.version},
            "status": _status_patch(assumed.status),
        }
        try:
            written = await self._client.patch(
                POD_GROUP, name, namespace, patch, metadata_only=True
            )
        except NotFound:
            return
        self._queue.count("written")
        self._assumed.status_written(key, assumed, written["metadata"]["resourceVersion"])


def _status_patch(status: PodGroupStatus) -> Raw:
    """Every field of a status, null where it has its zero value, so that none is left over."""
    found: Raw = msgspec.to_builtins(status)
    return {name: found.get(name) for name in status.__struct_encode_fields__}
