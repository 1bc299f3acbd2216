"""The subscribers of a watch cache, and what each of them has taken in.

Existing objects are reported to a late subscriber one by one while the watch continues. An object that changes before it
was reported is reported immediately in its new state, and only once. If a subscriber raises at an object, the others have
the object nevertheless; it is called again later, from the state that it had taken in before.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


Subscriber = Callable[[T | None, T | None], None]
"""Called as `(old, new)`: `old` is None for an added object, `new` is None for a deleted one."""

Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""


@dataclass(slots=True, eq=False)
class Subscription(Generic[T]):
    """A subscriber.

    Attributes:
        callback: Called with every change.
        unreported: Objects that existed at the start and have not been reported yet.
        behind: Objects at whose last report it raised, as it had taken them in before; None for not at all. What it did of the
            failed report is not known, so the next report is from that state to the present one.
    """

    callback: Subscriber[T]
    unreported: dict[Key, None]
    behind: dict[Key, T | None] = field(default_factory=dict)


class Subscribers(Generic[T]):
    """The subscribers to the objects of one kind."""

    def __init__(self, failed: Callable[[Key, Exception, T | None], None]) -> None:
        """Begin without subscribers.

        Args:
            failed: Called with the exception if a subscriber raises at an object.
        """
        self._failed = failed
        self._all: list[Subscription[T]] = []

    def add(self, callback: Subscriber[T], known: Iterable[Key]) -> Subscription[T]:
        """Add a subscriber, to which all known objects are to be reported."""
        subscription: Subscription[T] = Subscription(callback, dict.fromkeys(known))
        self._all.append(subscription)
        return subscription

    def remove(self, subscription: Subscription[T]) -> None:
        """Report nothing more to a subscriber."""
        self._all.remove(subscription)

    def report(self, subscription: Subscription[T], key: Key, obj: T) -> None:
        """Report an object that a subscriber has not seen yet."""
        del subscription.unreported[key]
        self._tell(subscription, key, None, obj)

    def tell(self, key: Key, old: T | None, new: T | None) -> None:
        """Report a change to all subscribers."""
        for each in tuple(self._all):
            if key not in each.unreported:
                self._tell(each, key, old, new)
            elif new is not None:
                self.report(each, key, new)
            else:
                del each.unreported[key]

    def try_again(self, key: Key, obj: T | None) -> None:
        """Report the present state of an object to those that raised at it."""
        for each in tuple(self._all):
            if key in each.behind:
                self._tell(each, key, each.behind[key], obj)

    def is_behind(self, key: Key) -> bool:
        """True if a subscriber raised when an object was last reported to it."""
        return any(key in each.behind for each in self._all)

    def _tell(self, subscription: Subscription[T], key: Key, old: T | None, new: T | None) -> None:
        """Report a change, from what the subscriber took in last."""
        behind = subscription.behind
        before = behind.get(key, old)
        told = old if before is None and new is None else before
        if told is None and new is None:
            behind.pop(key, None)
            return
        try:
            subscription.callback(told, new)
        except Exception as error:
            # A deletion is told again as one of what was to be deleted.
            behind[key] = told if new is None else before
            self._failed(key, error, new or told)
        else:
            behind.pop(key, None)
