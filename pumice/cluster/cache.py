"""A cache of all objects of one kind: list once, then watch.

A `WatchCache` lists its kind, follows the watch from the list's resourceVersion, uses bookmarks so that its version
stays current without changes, and lists again if the resourceVersion has expired (410). `catch_up` waits until the
cache has everything that the server had at the call. After each new list it reports only the differences. A broken
connection is retried forever, with growing delays.

A server whose data was restored from a backup may be older than the cache. kube-apiserver then accepts a watch from the
cached resourceVersion, and sends nothing until its own has passed that one. Two things show a restore. All API servers
are stopped for it: when none could be reached, everything is listed again. And before each watch that continues an
earlier one, and in `catch_up`, the server is asked for its resourceVersion: if it is older, everything is listed again
and reported, also what seems unchanged, because a version may now stand for another content (see `store.is_from_backup`).

A list may have 140,000 objects. It is decoded page by page, so at most two pages are in memory. Objects are decoded and
reported in slices (see `slices`), and the watch begins after the last one, so that no event precedes the list. `store`
keeps the objects.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from typing import Any, TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.backoff import Backoff
from pumice.cluster.client import PAGE_SIZE, Client
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.decoding import decode
from pumice.cluster.errors import ApiError, Gone, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import RetryTimers
from pumice.cluster.slices import in_slices
from pumice.cluster.store import Key, ObjectStore, Read

__all__ = ["WatchCache", "wait_settled", "wait_synced"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

WATCH_SECONDS = 290.0
"""How long one watch lasts; renewing it spreads the load when API servers come and go."""

CATCH_UP_SECONDS = 3.0
"""Duration of the watch that is used to catch up: API servers send a bookmark 2 s before the end."""

SILENT_SECONDS = 150.0
"""Maximum silence of a watch: API servers send a bookmark about once a minute."""

LASTING_SECONDS = 10.0
"""A watch that was shorter than this and showed no change, or failed, is followed by a delay; others are renewed immediately."""


_WATCH, _HEAD = "watch", "head"
"""Where all objects of a kind may fail, in metrics."""

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
        settled: Cleared while a list is being added, when some objects are older than the list.
        relists: How often the kind was listed, the first time included.
        restores: How often the server turned out to be older than the cache.
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
        trim: Callable[[T], None] | None = None,
    ) -> None:
        """Create a cache; nothing is read before `run`.

        Args:
            client: Session with the API server.
            kind: What to watch.
            type: msgspec struct (or `dict`) into which objects are decoded.
            namespace: Only this namespace; all when None.
            label_selector: Only objects with these labels.
            field_selector: Only objects with these fields.
            clock: Measures `age` and waits between attempts.
            backoff: Delays between attempts.
            page_size: Objects a page of the list.
            watch_seconds: How long one watch lasts before it is renewed.
            optional: Whether the server may lack the kind; the cache then tries again at intervals.
            keep: Whether an object is kept; all are if None.
            trim: Drops the parts of a new object that nothing reads.
        """
        super().__init__(kind, type, keep, trim)
        self.synced = asyncio.Event()
        self.settled = asyncio.Event()
        self.settled.set()
        self.relists = 0
        self.restores = 0
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
        self._must_list = True
        self._has_unreadable = False
        self._outages = 0
        self._is_newer = False
        """Whether the server is older than the cache."""
        self._lists: RetryTimers[None] = RetryTimers(lambda _: self._list_again())

    # State

    @property
    def age(self) -> float:
        """Seconds since the last message of the server; about a minute at most in normal operation."""
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
        """The resourceVersion of the cached state, for `/metrics` and tests."""
        return self._version

    # Keeping up

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        try:
            await self._run()
        finally:
            self._lists.close()
            self._retries.close()

    async def _run(self) -> None:
        attempt = 0
        while True:
            started = self._clock.monotonic()
            try:
                self._must_list |= self._client.outages != self._outages
                if not self._must_list:
                    self._compare(version_number(self._version), await self._read_version())
                if self._must_list:
                    await self._list()
                version = self._version
                await self._follow()
                if self._version != version and not self._must_list:
                    # kube-apiserver ends a watch whose events are not read fast enough, which happens
                    # while many pods are created. The changes that it did not send must not wait.
                    attempt = 0
                    self.faults.passed(self._all, _WATCH)
                    continue
            except Gone:
                logger.info("watch of %s is too old, listing again", self._what)
                self._must_list = True
            except ApiError as error:
                expected = self._optional and isinstance(error, NotFound)
                if expected:
                    self._contact = self._clock.monotonic()  # that was an answer
                if attempt == 0:
                    level = logging.DEBUG if expected else logging.WARNING
                    logger.log(level, "watching %s: %s; trying again", self._what, error)
                if isinstance(error, NotFound):
                    self._version = ""  # the kind was removed; a later one is another kind
                    self._must_list = True
            except Exception as error:
                # At no single object, which would be set aside. A new list does not depend on what came before.
                self._must_list = True
                self.faults.failed(self._all, _WATCH, error, self._backoff.delay(attempt))
            if self._clock.monotonic() - started >= LASTING_SECONDS:
                attempt = 0  # a watch that lasted did its work, however it ended
            else:
                async with self._until_awaited():
                    await self._clock.sleep(self._backoff.delay(attempt))
                attempt += 1

    async def catch_up(self) -> None:
        """Wait until the cache has at least the state that the server had at the call.

        A list of one object gives the version to wait for. Without changes, events would not reach that version. So a
        small collection is listed again, and the watch of a larger one is renewed for a few seconds, because API
        servers send a bookmark before a watch ends. A delay between two attempts ends, because the server answers again.
        If the server is older than the cache, everything is listed again.
        """
        known = version_number(self._version)
        version = await self._server_version()
        self._compare(known, version)
        if not self._must_list and version_number(self._version) >= version:
            return
        reached = asyncio.get_running_loop().create_future()
        entry = version, reached
        self._awaited.append(entry)
        self._interrupt()
        try:
            await reached
        finally:
            if entry in self._awaited:
                self._awaited.remove(entry)

    def _compare(self, known: int, version: int) -> None:
        """Have everything listed again if the server is older than the cache was when the server was asked.

        Or if it could not be reached meanwhile: its version may since have passed that of the cache.
        """
        if version < known:
            logger.warning(
                "%s: the API server has version %d and the cache %d: it was restored from a backup; listing again",
                self._what,
                version,
                known,
            )
            self._is_newer = True
            self._list_again()
        elif self._client.outages != self._outages:
            self._list_again()

    def _list_again(self) -> None:
        """Have everything listed as soon as possible."""
        self._must_list = True
        self._interrupt()

    def _interrupt(self) -> None:
        """End the watch, or the delay between two attempts."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(0.0)

    async def _server_version(self) -> int:
        """The resourceVersion of a consistent read, however long it takes."""
        attempt = 0
        while True:
            try:
                return await self._read_version()
            except (ApiError, msgspec.MsgspecError) as error:
                logger.warning("version of %s: %s; trying again", self._what, error)
            await self._clock.sleep(self._backoff.delay(attempt))
            attempt += 1

    async def _read_version(self) -> int:
        """The resourceVersion of a consistent read."""
        pages = self._client.pages(self.kind, self._namespace, limit=1, **self._selectors)
        async with aclosing(pages) as bodies:
            body = await anext(bodies)
        return version_number(decode(_pages, body).metadata.resource_version)

    def _advance(self, version: str) -> None:
        """Record the version of the cached state."""
        self._version = version
        if not self._awaited or self._must_list:
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

    @property
    def _all(self) -> Reference:
        """The kind as a whole, for reports."""
        return Reference(self.kind, "")

    async def _list(self) -> None:
        is_newer, outages = self._is_newer, self._client.outages
        if is_newer:
            self._versions.clear()  # the restored server may use a version again for another content
        self._has_unreadable = False
        try:
            version, found = await self._read_list(self._page_size)
        except Gone:
            # It changes faster than pages are read; a request for everything cannot expire.
            version, found = await self._read_list(0)
        self.settled.clear()
        try:
            known = dict.fromkeys((*self._objects, *self._pending))
            # An object that cannot be told from others may be one that is known.
            gone = [(key, None) for key in known if key not in found and not self._has_unreadable]
            changed = [(key, read) for key, read in found.items() if read is not None]
            async for key, read in in_slices(chain(gone, changed)):
                if read is None:
                    self._remove(key)
                else:
                    self._put(key, *read)
        finally:
            self.settled.set()
        # The server may have been restored meanwhile.
        self._must_list = self._is_newer and not is_newer
        self._is_newer = self._must_list
        self.restores += is_newer
        self._outages = outages
        if not self._has_unreadable:
            self._lists.drop(None)
            self.faults.passed(self._all, _HEAD)
        self._advance(version)
        self.relists += 1
        self.synced.set()

    async def _read_list(self, limit: int) -> tuple[str, dict[Key, tuple[str, Read[T]] | None]]:
        """Read the whole collection at one resourceVersion; unchanged objects are None."""
        found: dict[Key, tuple[str, Read[T]] | None] = {}
        version = ""
        pages = self._client.pages(self.kind, self._namespace, limit=limit, **self._selectors)
        async with aclosing(_one_ahead(pages)) as bodies:
            async for body in bodies:
                page = decode(_pages, body)
                version = version or page.metadata.resource_version
                async for raw in in_slices(page.items or ()):
                    self._read_item(raw, found)
                self._contact = self._clock.monotonic()
        return version, found

    def _read_item(self, raw: msgspec.Raw, found: dict[Key, tuple[str, Read[T]] | None]) -> None:
        """Add an object of a list."""
        head = self._head(raw)
        if head is None:
            return
        key = head.namespace, head.name
        if self._versions.get(key) == head.resource_version and key not in self._pending:
            found[key] = None
            return
        read = self._read(raw)
        if not self._is_dropped(read):
            found[key] = head.resource_version, read

    def _head(self, raw: msgspec.Raw) -> _Meta | None:
        """Name, namespace and version of an object; None if they cannot be read.

        Which object that is, is not known. What it becomes is in a later list.
        """
        try:
            return decode(_heads, raw).metadata
        except Exception as error:
            self._has_unreadable = True
            self.faults.failed(self._all, _HEAD, error, self._lists.fail(None))
            return None

    async def _follow(self) -> None:
        """Watch until the server ends the watch, or everything must be listed again; catch up when requested."""
        while not self._must_list:
            if self._awaited:
                await self._reach_awaited()
                continue  # more may be asked for meanwhile
            async with self._until_awaited():
                await self._watch(self._watch_seconds)
                return

    @asynccontextmanager
    async def _until_awaited(self) -> AsyncIterator[None]:
        """Leave the block when `catch_up` waits for this cache."""
        limit = self._limit = asyncio.timeout(None)
        try:
            async with limit:
                yield
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
            head = self._head(raw)
            if head is None:
                continue
            key = head.namespace, head.name
            if event == "DELETED":
                self._remove(key)
            elif event != "BOOKMARK":
                self._put(key, head.resource_version, self._read(raw))
            self._advance(head.resource_version or self._version)


async def wait_synced(*caches: WatchCache[Any]) -> None:
    """Wait until all caches have added their first list."""
    for cache in caches:
        await cache.synced.wait()


async def wait_settled(*caches: WatchCache[Any]) -> None:
    """Wait until none of the caches is adding a list."""
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
