"""How the server finds objects of the cluster: in watch caches, and by reads of queues and owners that these lack.

HyperNodes are optional, because most clusters do not have their CRD: the view is ready without them, and `knows` is
then false for them. Owners of pods that plugins wire are optional, too: a missing one is read from the API server. Only
owners that name plugins are cached, because a cluster may have tens of thousands of Jobs.

Without reads a `kubectl apply` of a queue and its first Job would be refused, because watches have a delay; the same
holds for the first pods of a Job. Only a review that is denied for no other reason causes a read. A review that is
admitted with a warning, or denied for other reasons, too, may report a queue as missing that was just created.
"""

import asyncio
import logging
from collections import ChainMap
from collections.abc import Collection, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

import msgspec

from pumice.api.kinds import HYPER_NODE, QUEUE, Kind
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, NotFound
from pumice.plugins.other_owners import OWNERS, OwnerKey
from pumice.webhook.answers import Answer, malformed
from pumice.webhook.rules.flows.job_templates import JOB_QUEUE_LATER
from pumice.webhook.rules.queues.closing import Q_DEL_MISSING
from pumice.webhook.rules.queues.tree import Q_PARENT_MISSING
from pumice.webhook.rules.references import JOB, POD_GROUP
from pumice.webhook.rules.wired_pods import POD_PLUGINS_UNKNOWN
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.view import READ_AS, AdmissionView

logger = logging.getLogger(__name__)

_PARENT = "parent"
_OPTIONAL = (HYPER_NODE, *OWNERS)


class CachedView(AdmissionView):
    """A view on watch caches, which may lag behind the API server.

    Attributes:
        caches: The caches, to be run.
    """

    def __init__(self, client: Client) -> None:
        """Describe a view; nothing is read before the caches run."""
        self._by_kind: dict[Kind, WatchCache[Any]] = {
            kind: WatchCache(client, kind, type_, optional=True, keep=attrgetter("wants_plugins"))
            if kind in OWNERS
            else WatchCache(client, kind, type_)
            for kind, type_ in READ_AS.items()
        }
        self.caches = tuple(self._by_kind.values())
        self._queues: WatchCache[Queue] = self._by_kind[QUEUE]
        self._queues.index(_PARENT, lambda queue: (queue.spec.parent,))

    @property
    def problem(self) -> str | None:
        """Why the view may be out of date, or None."""
        needed = (cache for kind, cache in self._by_kind.items() if kind not in _OPTIONAL)
        waiting = [cache.kind.plural for cache in needed if not cache.synced.is_set()]
        return f"not synced yet: {', '.join(waiting)}" if waiting else None

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object, or None; only owners that name plugins are cached."""
        return self._by_kind[kind].get(name, namespace)

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind."""
        return [*self._by_kind[kind].values()]

    def knows(self, kind: Kind) -> bool:
        """True if an object of this kind that is missing here does not exist; the server itself looks up missing queues."""
        if kind == QUEUE:
            return True
        cache = self._by_kind.get(kind)
        # A kind whose CRD is not installed, or not any more, has no version to follow.
        return (
            cache is not None and cache.synced.is_set() and bool(cache.reflector.resource_version)
        )

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return self._queues.indexed(_PARENT, name)


_MISSING = (JOB.missing, JOB_QUEUE_LATER, POD_GROUP.missing, Q_DEL_MISSING, Q_PARENT_MISSING)
_QUEUE_IS_MISSING = frozenset(rule.code for rule in _MISSING)


def needs_queues(answer: Answer) -> bool:
    """True if a review is denied only because of missing queues."""
    return bool(answer.missing_queues) and _denied_only(answer, _QUEUE_IS_MISSING)


def needs_tree(answer: Answer) -> bool:
    """True if queues above, beside and below the missing ones count, which may be new, too."""
    return Q_PARENT_MISSING.code in answer.codes


def needs_owners(answer: Answer) -> bool:
    """True if a missing owner is the reason why a pod is denied, or would lack the edits of plugins."""
    unknown = POD_PLUGINS_UNKNOWN.code
    return bool(answer.missing_owners) and (
        _denied_only(answer, frozenset((unknown,))) or unknown in answer.tolerated
    )


def _denied_only(answer: Answer, codes: frozenset[str]) -> bool:
    return answer.outcome == "denied" and codes.issuperset(answer.codes)


def late(answer: Answer, names: tuple[str, ...]) -> Answer:
    """The refusal of a review for which it is unknown whether the named queues exist.

    After its timeout the API server reports that the webhook failed. So the review is refused with the reason shortly
    before that.
    """
    queues = ", ".join(f'"{name}"' for name in names)
    message = (
        f"the API server did not say in time whether queue {queues} exists, so this cannot be "
        "decided; try again"
    )
    question = answer.question
    refusal = malformed(question.uid, 504, message, "Timeout", shown=True)
    return msgspec.structs.replace(refusal, question=question)


class LiveLookup:
    """Reads from the API server, and counts the results; objects that cannot be read count as missing."""

    def __init__(self, client: Client, metrics: ServerMetrics) -> None:
        self._client = client
        self._metrics = metrics

    async def find(
        self, keys: Collection[OwnerKey], seconds: float, *, tree: bool = False
    ) -> dict[OwnerKey, Any]:
        """Those of some queues and owners of pods that exist, by kind, namespace and name; with `tree` all queues.

        Raises:
            TimeoutError: The API server did not answer in time.
        """
        asked = [tuple(keys)] if tree else [(key,) for key in keys]
        looks = {each: asyncio.ensure_future(self._look(each, tree=tree)) for each in asked}
        try:
            async with asyncio.timeout(seconds):
                found = await asyncio.gather(*looks.values())
        except TimeoutError:
            for each, look in looks.items():
                if look.cancelled():  # it was not answered
                    self._failed(each, f" took more than {seconds:.1f} s")
            raise
        return dict(ChainMap(*found))

    async def _look(self, keys: tuple[OwnerKey, ...], *, tree: bool) -> dict[OwnerKey, Any]:
        """What one request finds: all queues, or one object."""
        found: dict[OwnerKey, Any] = {}
        try:
            with suppress(NotFound):
                found = await (self._queues() if tree else self._get(keys[0]))
        except (ApiError, ValueError) as error:
            self._failed(keys, f": {error}")
        else:
            self._count(keys, "missing" if found.keys().isdisjoint(keys) else "found")
        return found

    async def _queues(self) -> dict[OwnerKey, Any]:
        """All queues but those that cannot be decoded, each of which is named in the log."""
        found: dict[OwnerKey, Any] = {}
        for item in (await self._client.list(QUEUE))["items"]:
            try:
                queue = msgspec.convert(item, Queue)
            except Exception as error:
                name = (item.get("metadata") or {}).get("name", "without a name")
                logger.error("Queue %s is set aside for this review: %s", name, error)
            else:
                found[QUEUE, "", queue.metadata.name] = queue
        return found

    async def _get(self, key: OwnerKey) -> dict[OwnerKey, Any]:
        kind, namespace, name = key
        return {key: msgspec.convert(await self._client.get(kind, name, namespace), READ_AS[kind])}

    def _failed(self, keys: tuple[OwnerKey, ...], problem: str) -> None:
        logger.warning("looking for %s%s", ", ".join(map(_shown, keys)), problem)
        self._count(keys, "failed")

    def _count(self, keys: tuple[OwnerKey, ...], result: str) -> None:
        is_queue = keys[0][0] == QUEUE
        looks = self._metrics.lookups if is_queue else self._metrics.owner_lookups
        looks.labels(result).inc()


def _shown(key: OwnerKey) -> str:
    kind, namespace, name = key
    return f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"
