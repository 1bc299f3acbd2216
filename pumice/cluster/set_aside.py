"""Objects at which code failed unexpectedly: reported once, left out, and tried again after growing pauses.

No object may end a process. What fails at one object, in a watch cache (`store`) or in a pass over a key (`workqueue`),
sets that object aside, and everything else goes on. Each place keeps what it must try again; `RetryTimers` has the pauses,
and `ObjectFaults` tells the administrator by one log line and two metrics, and the owner by an event.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from pumice.api.kinds import Kind
from pumice.cluster.clock import Backoff
from pumice.cluster.events import EventRecorder, Reference

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)

PAUSES = Backoff(base=1.0, cap=300.0, spread=0.1, seed="objects set aside")
"""Pauses between two tries of a watch cache; those of a queue are its own."""

REASON = "InternalError"
"""Reason of the events."""

_NOWHERE: set[str] = set()

LONGEST_ERROR = 500
"""Characters of an exception's text in an event."""


class ObjectFaults:
    """Reports of one process.

    Attributes:
        errors: Unexpected exceptions at an object, by its kind and by place: each try counts.
        standing: Objects that are set aside now, by kind.
        recorder: Records events about the objects; None for none.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, recorder: EventRecorder | None = None
    ) -> None:
        """Register the metrics.

        Args:
            registry: Where; nowhere if None.
            recorder: Records events about the objects; none are recorded if None.
        """
        self.errors = Counter(
            "pumice_object_errors",
            "Unexpected exceptions at an object, which is then set aside and tried again.",
            ["kind", "place"],
            registry=registry,
        )
        self.standing = Gauge(
            "pumice_objects_set_aside",
            "Objects that are set aside because of an unexpected exception, and tried again after growing pauses.",
            ["kind"],
            registry=registry,
        )
        self.recorder = recorder
        self._standing: dict[tuple[Kind, str, str], set[str]] = {}

    def failed(
        self,
        about: Reference,
        place: str,
        error: BaseException,
        delay: float,
        *,
        reason: str = REASON,
    ) -> None:
        """Report that an object is set aside at a place, or is so still.

        Args:
            about: The object. If its name is not known, no event is recorded.
            place: What failed, in a few words: `index`, `queue jobs`.
            error: The exception.
            delay: Seconds until the next try.
            reason: Reason of the event.
        """
        self.errors.labels(about.kind.kind, place).inc()
        text = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        key = about.kind, about.namespace, about.name
        if key not in self._standing:
            self._standing[key] = set()
            self.standing.labels(about.kind.kind).inc()
        if place not in self._standing[key]:
            self._standing[key].add(place)
            logger.error(
                "%s %s is set aside and tried again after growing pauses, first in %.1f s: unexpected error (%s): %s",
                about.kind.kind,
                _named(about),
                delay,
                place,
                text,
                exc_info=error,
            )
        if self.recorder is not None and about.name:
            message = f"unexpected error ({place}), tried again after growing pauses: {text}"
            self.recorder.record(about, "Warning", reason, message)

    def passed(self, about: Reference, place: str, *, heals: bool = True) -> None:
        """Report that an object is no longer set aside at a place, if it was.

        Args:
            about: The object.
            place: As in `failed`.
            heals: Whether a try succeeded; otherwise there is nothing to try any more.
        """
        places = self._standing.get((about.kind, about.namespace, about.name), _NOWHERE)
        if place in places:
            places.remove(place)
            if heals:
                logger.info(
                    "%s %s is no longer set aside (%s)", about.kind.kind, _named(about), place
                )
            if not places:
                self.gone(about.kind, about.name, about.namespace)

    def gone(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Forget an object that was deleted, wherever it is set aside."""
        if self._standing.pop((kind, namespace, name), None) is not None:
            self.standing.labels(kind.kind).dec()

    def of_queue(
        self, place: str, about: Callable[[K], Reference], reason: str = REASON
    ) -> "QueueFaults[K]":
        """Reports about the keys of a queue.

        Args:
            place: Name of the queue.
            about: The object of a key; only its uid may depend on anything but the key.
            reason: Reason of the events.
        """
        return QueueFaults(self, place, about, reason)


class QueueFaults(Generic[K]):
    """Reports about the keys of one queue."""

    def __init__(
        self, faults: ObjectFaults, place: str, about: Callable[[K], Reference], reason: str
    ) -> None:
        self._faults = faults
        self._place = place
        self._about = about
        self._reason = reason

    def failed(self, key: K, error: BaseException, delay: float) -> None:
        """Report that the handler of a key raised."""
        self._faults.failed(self._about(key), self._place, error, delay, reason=self._reason)

    def passed(self, key: K, *, heals: bool = True) -> None:
        """Report that the handler succeeded after a failure, or that the queue has ended."""
        self._faults.passed(self._about(key), self._place, heals=heals)


class RetryTimers(Generic[K]):
    """Tries of keys that failed: one timer each, with pauses that grow from failure to failure."""

    def __init__(self, again: Callable[[K], None]) -> None:
        """Begin without keys.

        Args:
            again: Tries a key again; it calls `fail` or `drop`.
        """
        self._again = again
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._failures

    def __len__(self) -> int:
        return len(self._failures)

    def waits(self, key: K) -> bool:
        """True during the pause of a key."""
        return key in self._timers

    def fail(self, key: K) -> float:
        """Try a key again after its pause, of which the rest is returned in seconds.

        A key that fails during its pause, because it changed, keeps the pause that it has.
        """
        loop = asyncio.get_running_loop()
        if (timer := self._timers.get(key)) is not None:
            return max(0.0, timer.when() - loop.time())
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = PAUSES.delay(failures)
        self._timers[key] = loop.call_later(delay, self._due, key)
        return delay

    def drop(self, key: K) -> None:
        """Forget a key, because it passed or is gone."""
        self._failures.pop(key, None)
        self._cancel(key)

    def close(self) -> None:
        """Stop all timers."""
        for key in list(self._timers):
            self._cancel(key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self._again(key)

    def _cancel(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()


def _named(about: Reference) -> str:
    return "/".join(part for part in (about.namespace, about.name) if part) or "without a name"
