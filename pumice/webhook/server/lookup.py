"""The live questions: does a queue exist by now that the cache does not have, or the owner of a pod?

`kubectl apply` of a queue and its first Job in one go would otherwise be refused, because the watch is
a moment behind; and the first pods of a Job follow it within milliseconds. Only a review that is denied
for nothing but such a miss pays for it, with one look. What is admitted with a warning, or denied for
something else as well, may so be told of a missing queue that has been there for a moment.
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
from pumice.webhook.answers import Answer
from pumice.webhook.rules.flows.job_templates import JOB_QUEUE_LATER
from pumice.webhook.rules.pods.foreign import POD_PLUGINS_UNKNOWN
from pumice.webhook.rules.queues.closing import Q_DEL_MISSING
from pumice.webhook.rules.queues.tree import Q_PARENT_MISSING
from pumice.webhook.rules.references import JOB, POD_GROUP
from pumice.webhook.server.metrics import ServerMetrics

__all__ = [
    "LiveOwners",
    "LiveQueues",
    "OwnerLookup",
    "QueueLookup",
    "needs_above",
    "needs_owners",
    "needs_queues",
]

logger = logging.getLogger(__name__)

_QUEUE_IS_MISSING = frozenset(
    rule.code
    for rule in (
        JOB.missing,
        JOB_QUEUE_LATER,
        POD_GROUP.missing,
        Q_DEL_MISSING,
        Q_PARENT_MISSING,
    )
)


class _Page(msgspec.Struct):
    items: list[Queue] | None = None


_pages = msgspec.json.Decoder(_Page)


def needs_queues(answer: Answer) -> bool:
    """Whether missing queues are why a review is denied, and nothing else is."""
    return bool(answer.missing_queues) and _denied_only(answer, _QUEUE_IS_MISSING)


def needs_above(answer: Answer) -> bool:
    """Whether queues above the missing ones may be missing, too."""
    return Q_PARENT_MISSING.code in answer.codes


def needs_owners(answer: Answer) -> bool:
    """Whether a missing owner is why a pod is denied, or would go without what plugins give it for good."""
    unknown = POD_PLUGINS_UNKNOWN.code
    return bool(answer.missing_owners) and (
        _denied_only(answer, frozenset((unknown,))) or unknown in answer.tolerated
    )


def _denied_only(answer: Answer, codes: frozenset[str]) -> bool:
    return answer.outcome == "denied" and codes.issuperset(answer.codes)


class QueueLookup(Protocol):
    """Finds queues that no cache has."""

    async def find(
        self, names: tuple[str, ...], seconds: float, *, above: bool = False
    ) -> list[Queue]:
        """Those of the named queues that exist.

        Args:
            names: Names.
            seconds: How long this may take.
            above: Find those above them, too, and maybe others.

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

    async def find(
        self, names: tuple[str, ...], seconds: float, *, above: bool = False
    ) -> list[Queue]:
        """Those of the named queues that exist; one that cannot be asked for counts as missing.

        Args:
            names: Names.
            seconds: How long this may take.
            above: List all queues, since nobody knows yet which are above these.

        Raises:
            TimeoutError: That could not be told in time.
        """
        try:
            async with asyncio.timeout(seconds):
                if above:
                    return await self._list(names)
                found = await asyncio.gather(*map(self._get, names))
                return [queue for each in found for queue in each]
        except TimeoutError:
            self._metrics.lookups.labels("failed").inc()
            logger.warning("looking for queues %s took more than %.1f s", ", ".join(names), seconds)
            raise

    async def _list(self, names: tuple[str, ...]) -> list[Queue]:
        found: list[Queue] = []
        result = "missing"
        try:
            async for body in self._client.pages(QUEUE):
                found.extend(_pages.decode(body).items or ())
            if any(each.metadata.name in names for each in found):
                result = "found"
        except (ApiError, ValueError) as error:
            found, result = [], "failed"
            logger.warning("looking for queue %s: %s", ", ".join(names), error)
        self._metrics.lookups.labels(result).inc()
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
