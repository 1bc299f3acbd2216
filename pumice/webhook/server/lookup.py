"""The live questions: does a queue exist by now that the cache does not have, or the owner of a pod?

`kubectl apply` of a queue and its first Job in one go would otherwise be refused, because the watch is
a moment behind; and the first pods of a Job follow it within milliseconds. Only a review that would be
denied pays for it.
"""

import asyncio
import logging
from typing import Protocol

import msgspec

from pumice.api.kinds import QUEUE
from pumice.api.queues import Queue
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, NotFound
from pumice.plugins.native import OWNERS, Owner, OwnerKey
from pumice.webhook.server.metrics import ServerMetrics

__all__ = ["LiveOwners", "LiveQueues", "OwnerLookup", "QueueLookup"]

logger = logging.getLogger(__name__)


class QueueLookup(Protocol):
    """Finds queues that no cache has."""

    async def find(self, names: tuple[str, ...], seconds: float) -> list[Queue]:
        """Those of the named queues that exist.

        Raises:
            TimeoutError: That could not be told in time.
        """


class OwnerLookup(Protocol):
    """Finds owners of pods that no cache has."""

    async def find(self, keys: tuple[OwnerKey, ...], seconds: float) -> dict[OwnerKey, Owner]:
        """Those of the owners that exist.

        Raises:
            TimeoutError: That could not be told in time.
        """


class LiveQueues:
    """Asks the API server."""

    def __init__(self, client: Client, metrics: ServerMetrics) -> None:
        """Ask through a client."""
        self._client = client
        self._metrics = metrics

    async def find(self, names: tuple[str, ...], seconds: float) -> list[Queue]:
        """Those of the named queues that exist; one that cannot be asked for counts as missing.

        Raises:
            TimeoutError: That could not be told in time.
        """
        found: list[Queue] = []
        try:
            async with asyncio.timeout(seconds):
                for name in names:
                    found.extend(await self._get(name))
        except TimeoutError:
            self._metrics.lookups.labels("failed").inc()
            logger.warning("looking for queues %s took more than %.1f s", ", ".join(names), seconds)
            raise
        return found

    async def _get(self, name: str) -> list[Queue]:
        result = "found"
        found: list[Queue] = []
        try:
            found = [msgspec.convert(await self._client.get(QUEUE, name), Queue)]
        except NotFound:
            result = "missing"
        except (ApiError, ValueError) as error:
            result = "failed"
            logger.warning("looking for queue %s: %s", name, error)
        self._metrics.lookups.labels(result).inc()
        return found


class LiveOwners:
    """Asks the API server for owners of pods."""

    def __init__(self, client: Client, metrics: ServerMetrics) -> None:
        """Ask through a client."""
        self._client = client
        self._metrics = metrics

    async def find(self, keys: tuple[OwnerKey, ...], seconds: float) -> dict[OwnerKey, Owner]:
        """Those of the owners that exist; one that cannot be asked for counts as missing.

        Raises:
            TimeoutError: That could not be told in time.
        """
        found: dict[OwnerKey, Owner] = {}
        try:
            async with asyncio.timeout(seconds):
                for key in keys:
                    if (owner := await self._get(key)) is not None:
                        found[key] = owner
        except TimeoutError:
            self._metrics.owner_lookups.labels("failed").inc()
            logger.warning("looking for the owner of a pod took more than %.1f s", seconds)
            raise
        return found

    async def _get(self, key: OwnerKey) -> Owner | None:
        kind, namespace, name = key
        result = "found"
        owner: Owner | None = None
        try:
            owner = msgspec.convert(await self._client.get(kind, name, namespace), OWNERS[kind])
        except NotFound:
            result = "missing"
        except (ApiError, ValueError) as error:
            result = "failed"
            logger.warning("looking for %s %s/%s: %s", kind.kind, namespace, name, error)
        self._metrics.owner_lookups.labels(result).inc()
        return owner
