"""Kubernetes events about objects, as `kubectl describe` shows them.

`record` returns immediately and cannot fail: the event is queued in memory, and `run` writes it. A repeated event is
the same Event object with a higher count, so an error that repeats every second is one line.

Each object and each namespace has a limit of its own. Above that of its object an event is dropped, which the next one about the
object says. Events above the limit of their namespace wait in a queue, and namespaces take turns; when too many wait, the
namespace with the most loses its oldest. What is dropped is counted. Both limits are token
buckets in bounded tables: the bucket of a key that was not asked about for longest is forgotten, and is full when the key comes
again. After a 429 nothing is sent for the time that the
server asked for; then the same event is sent again, a few times.
"""

import asyncio
import hashlib
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pumice.api.kinds import EVENT, Kind
from pumice.api.meta import ObjectMeta, format_time
from pumice.cluster.client import MERGE_PATCH, Client, Object
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import AlreadyExists, NotFound, TooManyRequests

K = TypeVar("K", bound=Hashable)

_ROUNDING = 1e-3
"""Part of a token that may lack: who sleeps as long as `wait` says must find one."""

_KEYS = 4096
"""Buckets that are remembered."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of tokens.

    Attributes:
        per_second: Tokens that a bucket gets back each second.
        burst: Tokens of a full bucket.
    """

    per_second: float
    burst: int


class TokenBuckets(Generic[K]):
    """A token bucket for each key; the time is an argument, in seconds, and never goes back."""

    def __init__(self, rate: Rate, keys: int = _KEYS) -> None:
        """All buckets are full; at most `keys` are remembered."""
        self._rate = rate
        self._keys = keys
        # The moment at which each bucket will be, or was, full: one number says all.
        self._full_at: OrderedDict[K, float] = OrderedDict()

    def __len__(self) -> int:
        """Number of buckets that are remembered."""
        return len(self._full_at)

    def wait(self, key: K, now: float) -> float:
        """Seconds until the bucket has a token; 0 if it has one."""
        missing = (self._full_at.get(key, -math.inf) - now) * self._rate.per_second
        lack = missing - (self._rate.burst - 1)
        return lack / self._rate.per_second if lack > _ROUNDING else 0.0

    def take(self, key: K, now: float) -> bool:
        """Take a token; False if there is none."""
        if self.wait(key, now) > 0:
            return False
        full_at = max(self._full_at.pop(key, now), now)
        self._full_at[key] = full_at + 1 / self._rate.per_second
        # A bucket that is full again says nothing.
        while len(self._full_at) > self._keys or next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)
        return True


logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 1024
"""Characters that the API server accepts in an event's message."""

REMEMBERED = 4096
"""Maximum number of events whose repetitions are counted, and of queued events."""

OBJECT_RATE = Rate(0.1, 25)
"""Writes about one object: those of a busy Job's life at once, and then one in ten seconds."""

NAMESPACE_RATE = Rate(20.0, 100)
"""Writes about the objects of one namespace."""

DROPS = ("object", "namespace", "refused")
"""Why an event is dropped: too many about its object, or waiting for its namespace's turn; the API server did not take it."""

DROPPED = (
    "Events that were not written: `object`, too many about one object; `namespace`, too many waited in one "
    "namespace; `refused`, the API server did not take them."
)
"""What a metric of dropped events counts."""

ATTEMPTS = 3
"""Attempts to send an event to an overloaded server (429)."""

FORGOTTEN_AFTER = 3000.0
"""Seconds after which a repetition is a new Event; the API server keeps them for an hour."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    kind: Kind
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, kind: Kind, meta: ObjectMeta) -> "Reference":
        """Refer to an object by its metadata."""
        return cls(kind, meta.name, meta.namespace, meta.uid, meta.resource_version)


_Key = tuple[Kind, str, str, str, str, str, str]
_Object = tuple[Kind, str, str]


@dataclass(slots=True)
class _Series:
    """One Event object: its content, its count, and the state on the server."""

    about: Reference
    type: str
    reason: str
    message: str
    name: str
    first: float
    last: float
    count: int = 1
    more: int = 0
    created: bool = False
    attempts: int = 0


class EventRecorder:
    """Records events for one component. Events are written while `run` runs."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        clock: Clock | None = None,
        per_object: Rate = OBJECT_RATE,
        per_namespace: Rate = NAMESPACE_RATE,
        on_drop: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create a recorder.

        Args:
            client: Session with the API server.
            component: Reporting component, for example `pumice-scheduler`.
            instance: Name of the process.
            clock: Tells the time and waits.
            per_object: Limit of writes about an object.
            per_namespace: Limit of writes about the objects of a namespace; those of the cluster have one, too.
            on_drop: Called for each event that is dropped, with one of `DROPS`.
        """
        self._client = client
        self._component = component
        self._instance = instance
        self._clock = clock or SystemClock()
        self._on_drop = on_drop
        self._objects: TokenBuckets[_Object] = TokenBuckets(per_object)
        self._namespaces: TokenBuckets[str] = TokenBuckets(per_namespace)
        self._unsaid: OrderedDict[_Object, int] = OrderedDict()
        self._series: dict[_Key, _Series] = {}
        # By namespace, the one whose turn it is first.
        self._pending: dict[str, dict[_Key, _Series]] = {}
        self._waiting = 0
        self._news = asyncio.Event()

    def record(
        self,
        about: Reference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - the field's name
        reason: str,
        message: str,
    ) -> None:
        """Record an event, with a reason in CamelCase; the message is cut at 1,024 characters."""
        message = _cut(message, MESSAGE_LIMIT)
        key = (about.kind, about.namespace, about.name, about.uid, type, reason, message)
        now = self._clock.wall()
        series = self._series.pop(key, None)
        if series is None or now - series.last > FORGOTTEN_AFTER:
            name = self._name_of(key, now)
            series = _Series(about, type, reason, message, name, first=now, last=now)
        else:
            series.count += 1
            series.last = now
        self._series[key] = series  # at the end: the oldest is forgotten first
        if len(self._series) > REMEMBERED:
            del self._series[next(iter(self._series))]
        queue = self._pending.get(about.namespace, {})
        if key in queue or self._may_write(series):
            self._enqueue(key, series)

    def _may_write(self, series: _Series) -> bool:
        """Whether the limit of the object allows another write; the next one says how many it did not."""
        about = series.about
        subject = (about.kind, about.namespace, about.name)
        if self._objects.take(subject, self._clock.monotonic()):
            series.more += self._unsaid.pop(subject, 0)
            return True
        self._unsaid[subject] = self._unsaid.pop(subject, 0) + 1
        if len(self._unsaid) > REMEMBERED:
            self._unsaid.popitem(last=False)
        self._on_drop("object")
        return False

    def _enqueue(self, key: _Key, series: _Series, *, first: bool = False) -> None:
        """Let an event wait for its turn; above the limit the namespace with the most events loses its oldest."""
        namespace = series.about.namespace
        queue = self._pending.setdefault(namespace, {})
        self._waiting += key not in queue
        if first:
            self._pending[namespace] = {key: series} | queue
        else:
            queue[key] = series
        if self._waiting > REMEMBERED:
            longest = max(self._pending, key=lambda each: len(self._pending[each]))
            self._dequeue(longest)
            self._on_drop("namespace")
        self._news.set()

    def _dequeue(self, namespace: str) -> tuple[_Key, _Series]:
        """Remove the oldest event of a namespace, whose next turn comes after the others'."""
        queue = self._pending.pop(namespace)
        key = next(iter(queue))
        series = queue.pop(key)
        if queue:
            self._pending[namespace] = queue
        self._waiting -= 1
        return key, series

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            await self._news.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all queued events."""
        self._news.clear()
        while self._pending:
            namespace = await self._turn()
            if namespace is None:
                return  # another flush was faster
            key, series = self._dequeue(namespace)
            series.attempts += 1
            try:
                await self._write(series)
            except TooManyRequests as error:
                if series.attempts < ATTEMPTS and self._waiting < REMEMBERED:
                    self._enqueue(key, series, first=True)
                else:
                    self._lost(series, error)
                await self._clock.sleep(error.patience)
            except Exception as error:  # whatever it is, one event must not end the others
                self._lost(series, error)
            else:
                series.attempts = 0

    def _lost(self, series: _Series, error: Exception) -> None:
        # The count is absolute, so that the next repetition corrects it.
        series.attempts = 0
        self._on_drop("refused")
        logger.info("event %s of %s lost: %s", series.reason, series.about.name, error)

    async def _turn(self) -> str | None:
        """Wait until a namespace whose events wait is within its limit, and take it from that; None if none waits any more."""
        while self._pending:
            now = self._clock.monotonic()
            for namespace in self._pending:
                if self._namespaces.take(namespace, now):
                    return namespace
            await self._clock.sleep(min(self._namespaces.wait(each, now) for each in self._pending))
        return None

    async def _write(self, series: _Series) -> None:
        if series.created:
            try:
                await self._count(series)
            except NotFound:
                series.created = False  # the server has dropped the old one
            else:
                return
        try:
            await self._client.create(EVENT, self._manifest(series), metadata_only=True)
        except AlreadyExists:
            await self._count(series)
        series.created = True

    async def _count(self, series: _Series) -> None:
        repeated = {"count": series.count, "lastTimestamp": format_time(series.last)}
        namespace = series.about.namespace or "default"
        await self._client.patch(
            EVENT, series.name, namespace, repeated, content_type=MERGE_PATCH, metadata_only=True
        )

    def _manifest(self, series: _Series) -> Object:
        about = series.about
        involved = {
            **about.kind.type_meta,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        return {
            **EVENT.type_meta,
            # Events of cluster-scoped objects are in the default namespace.
            "metadata": {"name": series.name, "namespace": about.namespace or "default"},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": series.type,
            "reason": series.reason,
            "message": _with_more(series.message, series.more),
            "count": series.count,
            "firstTimestamp": format_time(series.first),
            "lastTimestamp": format_time(series.last),
            "source": {"component": self._component, "host": self._instance},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _name_of(self, key: _Key, moment: float) -> str:
        """A unique name of an Event, computed from object, content, time and component."""
        kind, *words = key
        text = "\0".join((self._component, self._instance, kind.resource, *words, repr(moment)))
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        return f"{key[2][:236]}.{digest[:16]}"


def _with_more(message: str, more: int) -> str:
    """A message, and how many events about its object were dropped before."""
    if not more:
        return message
    addition = f" (and {more} more events about it, which were not written)"
    return _cut(message, MESSAGE_LIMIT - len(addition)) + addition


def _cut(message: str, limit: int) -> str:
    return message if len(message) <= limit else f"{message[: limit - 1]}…"
