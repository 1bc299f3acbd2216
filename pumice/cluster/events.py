"""Kubernetes events about objects, as `kubectl describe` shows them.

`record` returns immediately and cannot fail: the event is queued in memory, and `run` writes it. A repeated event is
the same Event object with a higher count, so an error that repeats every second is one line. The write rate and the
queue are limited; events above the limits are dropped and counted. After a 429 nothing is sent for the time that the
server asked for; then the same event is sent again, a few times.
"""

import asyncio
import hashlib
import logging
import math
from dataclasses import dataclass
from typing import Literal

from pumice.api.kinds import EVENT, Kind
from pumice.api.meta import ObjectMeta, format_time
from pumice.cluster.client import MERGE_PATCH, Client, Object
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import AlreadyExists, NotFound, TooManyRequests

__all__ = ["EventRecorder", "Reference"]

logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 1024
"""Characters that the API server accepts in an event's message."""

REMEMBERED = 4096
"""Maximum number of events whose repetitions are counted, and of queued events."""

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
    created: bool = False
    attempts: int = 0


class EventRecorder:
    """Records events for one component. Events are written while `run` runs.

    Attributes:
        dropped: Number of events that were not written, because of limits or a refusal.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        clock: Clock | None = None,
        rate: float = 20.0,
        burst: int = 100,
    ) -> None:
        """Create a recorder.

        Args:
            client: Session with the API server.
            component: Reporting component, for example `pumice-scheduler`.
            instance: Name of the process.
            clock: Tells the time and waits.
            rate: Average writes per second.
            burst: Maximum number of writes in a burst.
        """
        self.dropped = 0
        self._client = client
        self._component = component
        self._instance = instance
        self._clock = clock or SystemClock()
        self._rate = rate
        self._burst = burst
        self._next = -math.inf
        self._series: dict[_Key, _Series] = {}
        self._pending: dict[_Key, _Series] = {}
        self._news = asyncio.Event()

    def record(
        self,
        about: Reference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - the field's name
        reason: str,
        message: str,
    ) -> None:
        """Record an event.

        Args:
            about: The object of the event.
            type: `Normal` or `Warning`.
            reason: Reason as a CamelCase word.
            message: Message; cut at 1,024 characters.
        """
        if len(message) > MESSAGE_LIMIT:
            message = f"{message[: MESSAGE_LIMIT - 1]}…"
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
        self._pending[key] = series
        if len(self._pending) > REMEMBERED:
            del self._pending[next(iter(self._pending))]
            self.dropped += 1
        self._news.set()

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            await self._news.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all queued events."""
        self._news.clear()
        while self._pending:
            await self._turn()
            if not self._pending:
                return  # another flush was faster
            key = next(iter(self._pending))
            series = self._pending.pop(key)
            series.attempts += 1
            try:
                await self._write(series)
            except TooManyRequests as error:
                if series.attempts < ATTEMPTS and len(self._pending) < REMEMBERED:
                    self._pending = {key: series} | self._pending
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
        self.dropped += 1
        logger.info("event %s of %s lost: %s", series.reason, series.about.name, error)

    async def _turn(self) -> None:
        """Wait until a write is within the rate.

        The generic cell rate algorithm: each write moves the moment of the next one by `1 / rate`;
        without writes that moment falls behind the present, by one burst at most.
        """
        now = self._clock.monotonic()
        self._next = max(self._next, now - (self._burst - 1) / self._rate)
        wait = self._next - now
        self._next += 1 / self._rate
        if wait > 0:
            await self._clock.sleep(wait)

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
            "apiVersion": about.kind.api_version,
            "kind": about.kind.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            # Events of cluster-scoped objects are in the default namespace.
            "metadata": {"name": series.name, "namespace": about.namespace or "default"},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": series.type,
            "reason": series.reason,
            "message": series.message,
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
