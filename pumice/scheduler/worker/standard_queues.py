"""The queues that every cluster has."""

import logging

from pumice.api import keys
from pumice.api.kinds import QUEUE
from pumice.api.meta import Raw
from pumice.cluster.backoff import Backoff
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.errors import AlreadyExists, ApiError, NotFound

__all__ = ["ensure_queues"]

logger = logging.getLogger(__name__)

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
