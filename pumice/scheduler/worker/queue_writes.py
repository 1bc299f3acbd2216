"""Writes to queues: those that every cluster has, and `status.allocated`, what their pods hold with those of the queues below them.

Amounts are compared with what the API server shows, so that a restart writes nothing that is there already. A queue is
written when its amounts have not changed for some seconds, or have differed for long: a short Job writes nothing, and a
queue whose pods come and go all the time is written a few times a minute. The metrics show each change at once.
"""

import logging
from collections.abc import Mapping

from pumice.api import keys
from pumice.api.kinds import QUEUE
from pumice.api.meta import Raw
from pumice.api.quantities import QuantityError, format_milli, parse_milli
from pumice.api.queues import Queue
from pumice.cluster.client import Client
from pumice.cluster.clock import Backoff, Clock
from pumice.cluster.errors import AlreadyExists, ApiError, NotFound
from pumice.cluster.turns import no_namespace
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.state.assumptions import is_older
from pumice.scheduler.worker.context import TermContext
from pumice.scheduler.worker.statuses import WriteQueue

logger = logging.getLogger(__name__)

STABLE_SECONDS = 5.0
"""For how long the amounts of a queue must stay as they are before they are written."""

LATEST_SECONDS = 15.0
"""After how long amounts that go on changing are written all the same."""

UNSEEN_SECONDS = 1.0
"""How long a write waits at once for the watch to show the last one."""

UNSEEN_AT_MOST_SECONDS = 30.0
"""How long it waits in all: an API server that was restored from a backup may never show it."""

_ALWAYS = ("cpu", "memory", "pods")
"""Resources that are written even if there is nothing of them."""

# As Volcano creates them.
_RECLAIMABLE = {keys.ROOT_QUEUE: False, keys.DEFAULT_QUEUE: True}


async def ensure_queues(client: Client, clock: Clock, default_queue: str) -> None:
    """Create the queues `root` and default where they are missing; try until it is done.

    Creation passes through admission, which may take a moment longer to start than the scheduler. A queue
    that exists is only read, so that the scheduler starts also while admission is down.
    """
    backoff = Backoff(base=0.2, cap=10.0, seed="queues")
    for name in dict.fromkeys((keys.ROOT_QUEUE, default_queue)):
        attempt = 0
        while not await _ensure(client, name, attempt):
            await clock.sleep(backoff.delay(attempt))
            attempt += 1


async def _ensure(client: Client, name: str, attempt: int) -> bool:
    """Whether the queue exists now."""
    try:
        try:
            await client.get(QUEUE, name)
        except NotFound:
            await client.create(QUEUE, _manifest(name), metadata_only=True)
            logger.info("created queue %s", name)
    except AlreadyExists:
        return True
    except ApiError as error:
        if attempt == 0:
            logger.warning("queue %s: %s; trying again", name, error)
        return False
    return True


def _manifest(name: str) -> Raw:
    return {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": _RECLAIMABLE.get(name, True)},
    }


class QueueStatuses:
    """Has what queues hold written, by a queue of writes."""

    def __init__(self, context: TermContext) -> None:
        """Create a writer; its `queue` must run."""
        self._client = context.client
        self._clock = context.clock
        self._queues = context.caches.queues
        self._state = context.state
        self.queue = WriteQueue(
            "queue",
            self._write,
            context.metrics,
            context.faults_of("queue status", context.caches.queues),
            namespace_of=no_namespace,
        )
        self._names: tuple[str, ...] = ()
        self._seen: Ints | None = None
        self._versions: dict[str, tuple[str, str, float]] = {}
        self._changes: dict[str, tuple[float, float]] = {}
        self._cycle = -1

    def put(self) -> None:
        """Have the queues written whose amounts have changed since the last call; after a cycle."""
        if self._state.cycles == self._cycle:
            return
        self._cycle = self._state.cycles
        table = self._state.shares
        amounts = table.tree.copy()
        if self._names is table.names and self._seen is not None:
            seen = self._seen
            width = seen.shape[1]
            changed = (amounts[:, :width] != seen).any(axis=1) | amounts[:, width:].any(axis=1)
            rows = changed.nonzero()[0].tolist()
        else:
            rows = list(range(len(table.names)))
            self._versions = {
                name: known for name, known in self._versions.items() if name in table.rows
            }
        self._names, self._seen = table.names, amounts
        now = self._clock.monotonic()
        for name in (table.names[row] for row in rows):
            first, _ = self._changes.get(name, (now, now))
            self._changes[name] = first, now
            self.queue.add(name, STABLE_SECONDS)

    def _patch(self, queue: Queue) -> Raw | None:
        """What is to be written of a queue; None when the API server shows it already."""
        table = self._state.shares
        row = table.rows.get(queue.metadata.name)
        if row is None:
            return None
        held = self._state.axis.amounts(table.tree[row])
        shown = queue.status.allocated or {}
        if _shown(shown) == held:
            return None
        gone: dict[str, str | None] = dict.fromkeys(shown)
        amounts = {name: format_milli(held.get(name, 0)) for name in (*_ALWAYS, *held)}
        return gone | amounts

    def _wait(self, name: str) -> float:
        """For how many seconds the amounts of a queue are not written yet."""
        if name not in self._changes:
            return 0.0
        first, last = self._changes[name]
        return min(last + STABLE_SECONDS, first + LATEST_SECONDS) - self._clock.monotonic()

    async def _write(self, name: str) -> None:
        wait = self._wait(name)
        if wait > 0.0:
            self.queue.add(name, wait)
            return
        self._changes.pop(name, None)
        queue = self._queues.get(name)
        if queue is None:
            return
        meta = queue.metadata
        uid, version, until = self._versions.get(name, ("", "", 0.0))
        if uid == meta.uid and is_older(meta.resource_version, version):
            left = until - self._clock.monotonic()
            if left > 0.0:
                self.queue.add(name, min(UNSEEN_SECONDS, left))  # the watch has yet to show it
                return
        allocated = self._patch(queue)
        if allocated is None:
            return
        patch = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"allocated": allocated},
        }
        try:
            written = await self._client.patch(
                QUEUE, name, None, patch, subresource="status", metadata_only=True
            )
        except NotFound:
            return
        self.queue.count("written")
        until = self._clock.monotonic() + UNSEEN_AT_MOST_SECONDS
        self._versions[name] = (meta.uid, written["metadata"]["resourceVersion"], until)


def _shown(amounts: Mapping[str, str | int]) -> dict[str, int] | None:
    """Milli-units by resource name, without zeros; None if a quantity cannot be parsed."""
    try:
        read = {name: parse_milli(value) for name, value in amounts.items()}
    except QuantityError:
        return None
    return {name: milli for name, milli in read.items() if milli}
