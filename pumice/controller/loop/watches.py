"""The watches of the controller's process. Controllers that watch the same objects share one cache."""

from collections.abc import Callable
from typing import Any, TypeVar

from pumice.api.kinds import Kind
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock

__all__ = ["Watches"]

T = TypeVar("T")


class Watches:
    """Caches by kind and filters; each must `run`.

    Attributes:
        required: Caches that must be synced before the process is ready, in the order of creation.
        optional: Other caches: a cluster may lack their kinds, or their users wait for them.
    """

    def __init__(
        self, client: Client, *, namespace: str | None = None, clock: Clock | None = None
    ) -> None:
        """Create an empty set of watches.

        Args:
            client: Session with the API server.
            namespace: Watch this namespace only; all when None.
            clock: Waits between attempts.
        """
        self.required: list[WatchCache[Any]] = []
        self.optional: list[WatchCache[Any]] = []
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._known: dict[tuple[Any, ...], WatchCache[Any]] = {}

    def of(
        self,
        kind: Kind,
        type_: type[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        keep: Callable[[T], bool] | None = None,
        trim: Callable[[T], None] | None = None,
        optional: bool = False,
    ) -> WatchCache[T]:
        """The cache of a kind; equal arguments return the same cache.

        Args:
            kind: What to watch.
            type_: msgspec struct (or `dict`) into which objects are decoded.
            namespace: A namespace, if it is not that of the process.
            label_selector: Only objects with these labels.
            field_selector: Only objects with these fields.
            keep: Whether an object is kept in the cache; all are if None.
            trim: Drops the parts of a new object that nothing reads.
            optional: Whether the process is ready without this cache.
        """
        key = (kind, type_, namespace, label_selector, field_selector, keep, trim)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = WatchCache(
                self._client,
                kind,
                type_,
                namespace=(namespace or self._namespace) if kind.namespaced else None,
                label_selector=label_selector,
                field_selector=field_selector,
                keep=keep,
                trim=trim,
                clock=self._clock,
                optional=optional,
            )
            (self.optional if optional else self.required).append(found)
        elif not optional and found in self.optional:
            self.optional.remove(found)
            self.required.append(found)
        return found
