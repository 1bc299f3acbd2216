"""A picture of one kind, kept current: list once, then watch.

A `WatchCache` lists its kind, follows the watch from the list's resourceVersion, takes bookmarks so that a quiet kind does
not fall behind, and lists anew when the server has forgotten where it was (410). `catch_up` waits until everything is seen
that the server knows at that moment. After each new list it reports the difference only, so that subscribers see changes.
A broken connection is retried forever, with growing delays.

A list is decoded page by page: the bytes of a page are gone before those of the next but one arrive. It may have 140,000
objects. They are decoded and reported in slices (see `slices`), and the watch begins after the last one, so that no
event precedes the list. What is done with each object is in `store`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import chain
from typing import Any, TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.backoff import Backoff
from pumice.cluster.client import PAGE_SIZE, Client
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import ApiError, Gone, NotFound
from pumice.cluster.slices import in_slices
from pumice.cluster.store import Key, ObjectStore, Read

__all__ = ["WatchCache", "wait_settled", "wait_synced"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

WATCH_SECONDS = 290.0
"""How long one watch lasts; renewing it spreads the load when API servers come and go."""

CATCH_UP_SECONDS = 3.0
"""How long the watch lasts by which a kind catches up: API servers send a bookmark 2 s before the end."""

SILENT_SECONDS = 150.0
"""How long a watch may be silent: API servers send a bookmark about once a minute."""

LASTING_SECONDS = 10.0
"""A watch shorter than this is followed by a wait, a longer one by the next at once."""


_BY_NAME = "metadata.name="
"""The field selector of a single object."""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _ListPage(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[msgspec.Raw] | None = None


_heads = msgspec.json.Decoder(_Head)
_pages = msgspec.json.Decoder(_ListPage)


class WatchCache(ObjectStore[T]):
    """All objects of one kind (in one namespace, matching selectors), as structs.

    Attributes:
        synced: Set once the first list is stored and the subscribers have it.
        settled: Set except while a list is being taken in, when some objects are shown as they were before it.
        relists: How often the kind was listed, the first time included.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        type: type[T],  # noqa: A002 - the word that msgspec's decoders use
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        page_size: int = PAGE_SIZE,
        watch_seconds: float = WATCH_SECONDS,
        optional: bool = False,
        keep: Callable[[T], bool] | None = None,
    ) -> None:
        """Describe a cache; nothing is read before `run`.

        Args:
            client: Session with the API server.
            kind: What to watch.
            type: msgspec struct (or `dict`) that objects become.
            namespace: Only this namespace; all when None.
            label_selector: Only objects with these labels.
            field_selector: Only objects with these fields.
            clock: Measures `age` and waits between attempts.
            backoff: How long these waits are.
            page_size: Objects a page of the list.
            watch_seconds: How long one watch lasts before it is renewed.
            optional: Whether a server without this kind is nothing to speak of; it is asked again and again.
            keep: Whether an object belongs in the picture; one that does not takes no room. All do when None.
        """
        super().__init__(kind, type, keep)
        self.synced = asyncio.Event()
        self.settled = asyncio.Event()
        self.settled.set()
        self.relists = 0
        self._client = client
        self._namespace = namespace
        self._selectors = {"label_selector": label_selector, "field_selector": field_selector}
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff(base=0.5, cap=30.0, seed=kind.plural)
        self._page_size = page_size
        self._watch_seconds = watch_seconds
        self._optional = optional
        self._version = ""
        self._contact = self._clock.monotonic()
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []
        self._limit: asyncio.Timeout | None = None

    # State

    @property
    def age(self) -> float:
        """Seconds since the server was last heard of; about a minute at most while it is well."""
        return self._clock.monotonic() - self._contact

    @property
    def problem(self) -> str | None:
        """Why the cache may be out of date, or None when it is current."""
        if not self.synced.is_set():
            return f"{self.kind.plural}: not synced yet"
        if self.age > SILENT_SECONDS:
            return f"{self.kind.plural}: no event or bookmark for {self.age:.0f} s"
        return None

    @property
    def resource_version(self) -> str:
        """The state that the picture shows, for `/metrics` and tests."""
        return self._version

    # Keeping up

    async def run(self) -> None:
        """Keep the picture current until cancelled."""
        attempt = 0
        while True:
            started = self._clock.monotonic()
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except Gone:
                logger.info("watch of %s is too old, listing anew", self._what)
                self._version = ""
            except (ApiError, msgspec.MsgspecError) as error:
                expected = self._optional and isinstance(error, NotFound)
                if expected:
                    self._contact = self._clock.monotonic()  # that was an answer
                if attempt == 0:
                    level = logging.DEBUG if expected else logging.WARNING
                    logger.log(level, "watching %s: %s; trying again", self._what, error)
                if isinstance(error, NotFound):
                    self._version = ""  # the kind went away; what comes back is another one
            if self._clock.monotonic() - started >= LASTING_SECONDS:
                attempt = 0  # a watch that lasted did its work, however it ended
            else:
                await self._clock.sleep(self._backoff.delay(attempt))
                attempt += 1

    async def catch_up(self) -> None:
        """Wait until the picture shows at least what the server knew when this was called.

        A list of one object tells the version to wait for. A kind that nothing happens to would not reach it by
        events: a small one is listed anew; the watch of a larger one is renewed for a few seconds, because API
        servers send a bookmark before a watch ends.
        """
        version = await self._server_version()
        if version_number(self._version) >= version:
            return
        reached = asyncio.get_running_loop().create_future()
        entry = version, reached
        self._awaited.append(entry)
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(0.0)
        try:
            await reached
        finally:
            if entry in self._awaited:
                self._awaited.remove(entry)

    async def _server_version(self) -> int:
        """The resourceVersion of a consistent read."""
        attempt = 0
        while True:
            try:
                async for body in self._client.pages(
                    self.kind, self._namespace, limit=1, **self._selectors
                ):
                    return version_number(_pages.decode(body).metadata.resource_version)
            except (ApiError, msgspec.MsgspecError) as error:
                logger.warning("version of %s: %s; trying again", self._what, error)
            await self._clock.sleep(self._backoff.delay(attempt))
            attempt += 1

    def _advance(self, version: str) -> None:
        """Note the version that the picture shows now."""
        self._version = version
        if not self._awaited:
            return
        number = version_number(version)
        for awaited, reached in self._awaited:
            if awaited <= number and not reached.done():
                reached.set_result(None)
        self._awaited = [entry for entry in self._awaited if not entry[1].done()]

    @property
    def _what(self) -> str:
        """What is watched, for logs: the one object, or the kind."""
        selector = self._selectors["field_selector"] or ""
        _, named, name = selector.partition(_BY_NAME)
        return f"{self.kind.resource} {name}" if named else self.kind.resource

    async def _list(self) -> None:
        try:
            version, found = await self._read_list(self._page_size)
        except Gone:
            # It changes faster than we turn its pages; all of it at once cannot be outrun.
            version, found = await self._read_list(0)
        self.settled.clear()
        try:
            gone = [(key, None) for key in self._objects if key not in found]
            changed = [(key, read) for key, read in found.items() if read is not None]
            async for key, read in in_slices(chain(gone, changed)):
                if read is None:
                    self._remove(key)
                else:
                    self._put(key, *read)
        finally:
            self.settled.set()
        self._advance(version)
        self.relists += 1
        self.synced.set()

    async def _read_list(self, limit: int) -> tuple[str, dict[Key, tuple[str, Read[T]] | None]]:
        """The whole collection as it is at one resourceVersion; None for what is as it was."""
        found: dict[Key, tuple[str, Read[T]] | None] = {}
        version = ""
        pages = self._client.pages(self.kind, self._namespace, limit=limit, **self._selectors)
        async with aclosing(_one_ahead(pages)) as bodies:
            async for body in bodies:
                page = _pages.decode(body)
                version = version or page.metadata.resource_version
                async for raw in in_slices(page.items or ()):
                    self._read_item(raw, found)
                self._contact = self._clock.monotonic()
        return version, found

    def _read_item(self, raw: msgspec.Raw, found: dict[Key, tuple[str, Read[T]] | None]) -> None:
        """Add an object of a list."""
        head = _heads.decode(raw).metadata
        key = head.namespace, head.name
        if self._versions.get(key) == head.resource_version:
            found[key] = None
            return
        read = self._read(raw)
        if self._belongs(read):
            found[key] = head.resource_version, read

    async def _follow(self) -> None:
        """Watch until the server ends the watch; catch up whenever that is asked for."""
        while True:
            while self._awaited:  # more may be asked for meanwhile
                await self._reach_awaited()
            limit = self._limit = asyncio.timeout(None)
            try:
                async with limit:
                    await self._watch(self._watch_seconds)
                    return
            except TimeoutError:
                if not limit.expired():
                    raise
            finally:
                self._limit = None

    async def _reach_awaited(self) -> None:
        if len(self._objects) > self._page_size:
            await self._watch(CATCH_UP_SECONDS)
        if self._awaited:
            await self._list()

    async def _watch(self, seconds: float) -> None:
        async for event, raw in self._client.watch(
            self.kind,
            self._namespace,
            resource_version=self._version,
            timeout=seconds,
            **self._selectors,
        ):
            self._contact = self._clock.monotonic()
            head = _heads.decode(raw).metadata
            key = head.namespace, head.name
            if event == "DELETED":
                self._remove(key)
            elif event != "BOOKMARK":
                self._put(key, head.resource_version, self._read(raw))
            self._advance(head.resource_version or self._version)


async def wait_synced(*caches: WatchCache[Any]) -> None:
    """Wait until all caches have taken in their first list."""
    for cache in caches:
        await cache.synced.wait()


async def wait_settled(*caches: WatchCache[Any]) -> None:
    """Wait until none of the caches is taking in a list."""
    while not all(cache.settled.is_set() for cache in caches):
        for cache in caches:
            await cache.settled.wait()


async def _one_ahead(items: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Iterate with one item of read-ahead."""
    async with aclosing(items):
        following = asyncio.ensure_future(anext(items, None))
        try:
            while (item := await following) is not None:
                following = asyncio.ensure_future(anext(items, None))
                yield item
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
