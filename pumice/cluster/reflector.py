"""What keeps a watch cache current: list a kind once, then watch it, like client-go's `Reflector`.

A `Reflector` lists its kind, follows the watch from the list's resourceVersion, uses bookmarks so that its version
stays current without changes, and lists again if the resourceVersion has expired (410). `catch_up` waits until the
cache has everything that the server had at the call. After each new list it reports only the differences. A broken
connection is retried forever, with the delays of `watch_delays`.

A server whose data was restored from a backup may be older than the cache. kube-apiserver then accepts a watch from the
cached resourceVersion, and sends nothing until its own has passed that one. Two things show a restore. All API servers
are stopped for it: when none could be reached, everything is listed again. And before each watch that continues an
earlier one, and in `catch_up`, the server is asked for its resourceVersion: if it is older, everything is listed again
and reported, also what seems unchanged, because a version may now stand for another content (see `cache.is_from_backup`).

Objects of a list are decoded and reported in slices (see `slices`), and the watch begins after the last one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from itertools import chain, count
from typing import Any, Protocol

import msgspec

from pumice.api.meta import version_number
from pumice.cluster.clock import Backoff, Clock, SystemClock, identity
from pumice.cluster.collection import PAGE_SIZE, WATCH_SECONDS, Collection, Head, head_of
from pumice.cluster.errors import ApiError, Gone, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import ObjectFaults, RetryTimers
from pumice.cluster.slices import in_slices
from pumice.cluster.subscribers import Key
from pumice.cluster.watch_delays import WatchDelays

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 3.0
"""Duration of the watch that is used to catch up: API servers send a bookmark 2 s before the end."""

SILENT_SECONDS = 150.0
"""Maximum silence of a watch: API servers send a bookmark about once a minute."""
_WATCH, _HEAD = "watch", "head"
"""Where all objects of a kind may fail, in metrics."""


class ReflectorTarget(Protocol):
    """What a reflector keeps current: objects at versions."""

    faults: ObjectFaults

    def __len__(self) -> int:
        """How many objects were taken in."""
        ...

    def known(self) -> Iterable[Key]:
        """The keys of all objects."""
        ...

    def has(self, key: Key, version: str) -> bool:
        """True if an object was taken in at a version."""
        ...

    def forget_versions(self) -> None:
        """Take each object in again, although its version is the same."""
        ...

    def read(self, raw: msgspec.Raw) -> Any:
        """Decode an object, for `drops` and `put`; it does not raise."""
        ...

    def drops(self, read: Any) -> bool:
        """True if an object is not to be kept."""
        ...

    def put(self, key: Key, version: str, read: Any) -> None:
        """Take a state of an object in."""
        ...

    def remove(self, key: Key) -> None:
        """Remove an object, if there is one."""
        ...


class Reflector:
    """Lists and watches a collection.

    Attributes:
        synced: Set once the first list is taken in.
        answered: Set once it is, or the server has said that it does not have the kind, if that is optional.
        settled: Cleared while a list is being taken in, when some objects are older than the list.
        relists: How often the kind was listed, the first time included.
        restores: How often the server turned out to be older than the cache.
        page_size: Objects in a page of the list.
        watch_seconds: How long one watch lasts before it is renewed.
    """

    def __init__(
        self,
        collection: Collection,
        target: ReflectorTarget,
        *,
        clock: Clock | None,
        backoff: Backoff | None,
        optional: bool,
    ) -> None:
        """Create a reflector of a collection into a target; the other arguments are those of `WatchCache`."""
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self.settled = asyncio.Event()
        self.settled.set()
        self.relists = 0
        self.restores = 0
        self._kind = collection.kind
        self._all = Reference(self._kind, "")  # the kind as a whole, for reports
        self._collection = collection
        self._target = target
        self._transport = collection.transport
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff(
            base=0.5, cap=30.0, seed=f"{identity()}/{self._kind.plural}"
        )
        self._delays = WatchDelays(self._backoff)
        self.page_size = PAGE_SIZE
        self.watch_seconds = WATCH_SECONDS
        self._optional = optional
        self._version = ""
        self._contact = self._clock.monotonic()
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []
        self._limit: asyncio.Timeout | None = None
        self._must_list = True
        self._has_unreadable = False
        self._outages = 0
        self._is_newer = False  # whether the server is older than the cache
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
            return f"{self._kind.plural}: not synced yet"
        if self.age > SILENT_SECONDS:
            return f"{self._kind.plural}: no event or bookmark for {self.age:.0f} s"
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

    async def _run(self) -> None:
        while True:
            started, version, is_new, at_once = 0.0, "", False, False
            failure: ApiError | None = None
            try:
                self._must_list |= self._transport.outages != self._outages
                if not self._must_list:
                    self._compare(version_number(self._version), await self._collection.version())
                if is_new := self._must_list:
                    await self._list()
                started, version = self._clock.monotonic(), self._version
                await self._follow()
            except ApiError as error:
                failure = error
                self._must_list |= isinstance(error, Gone | NotFound)
                if isinstance(error, NotFound):
                    self._version = version = ""  # it was removed; a later one is another kind
            except Exception as error:
                # At no single object, which would be set aside. A new list does not depend on what came before.
                self._must_list, version = True, ""
                self._target.faults.failed(self._all, _WATCH, error, self._delays.upcoming())
            if version:
                lasted, showed = self._clock.monotonic() - started, self._version != version
                whole = failure is None and not self._must_list
                at_once = self._delays.ended(lasted, showed=showed, whole=whole)
                if at_once:
                    self._target.faults.passed(self._all, _WATCH)
                if isinstance(failure, Gone) and not is_new:  # a watch from the new list may wait
                    logger.info("watch of %s is too old, listing again", self._collection)
                    continue
            if failure is not None:
                self._refused(failure)
            if not at_once:
                await self._pause(failure.retry_after if failure else None)

    def _refused(self, error: ApiError) -> None:
        """Log why an attempt failed, if no other has since a watch worked."""
        expected = self._optional and isinstance(error, NotFound)
        if expected:
            self._contact = self._clock.monotonic()  # that was an answer
            self.answered.set()
        if not self._delays.is_told():
            level = logging.DEBUG if expected else logging.WARNING
            logger.log(level, "watching %s: %s; trying again", self._collection, error)

    async def _pause(self, asked: float | None) -> None:
        """Wait before the next attempt, briefly if `catch_up` waits for it."""
        delay = self._delays.upcoming(asked, awaited=bool(self._awaited))
        self._delays.failed(asked)
        async with self._until_awaited():
            await self._clock.sleep(delay)

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
            text = "%s: the API server has version %d and the cache %d: it was restored from a backup; listing again"
            logger.warning(text, self._collection, version, known)
            self._is_newer = True
            self._list_again()
        elif self._transport.outages != self._outages:
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
        """The resourceVersion of a consistent read, however long it takes; the first failure is logged, and that it is over."""
        for attempt in count():
            try:
                version = await self._collection.version()
                break
            except (ApiError, msgspec.MsgspecError) as error:
                if not attempt:
                    logger.warning("version of %s: %s; trying again", self._collection, error)
            await self._clock.sleep(self._backoff.delay(attempt))
        if attempt:
            logger.info("version of %s: known at attempt %d", self._collection, attempt + 1)
        return version

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

    async def _list(self) -> None:
        is_newer, outages = self._is_newer, self._transport.outages
        if is_newer:
            self._target.forget_versions()  # the restored server may use a version again for another content
        self._has_unreadable = False
        try:
            version, found = await self._read_list(self.page_size)
        except Gone:
            # It changes faster than pages are read; a request for everything cannot expire.
            version, found = await self._read_list(0)
        self.settled.clear()
        try:
            # An object that cannot be told from others may be one that is known.
            known = () if self._has_unreadable else self._target.known()
            gone = [(key, None) for key in known if key not in found]
            changed = [(key, read) for key, read in found.items() if read is not None]
            async for key, read in in_slices(chain(gone, changed)):
                if read is None:
                    self._target.remove(key)
                else:
                    self._target.put(key, *read)
        finally:
            self.settled.set()
        self._must_list = self._is_newer and not is_newer  # the server was restored meanwhile
        self._is_newer = self._must_list
        self.restores += is_newer
        self._outages = outages
        if not self._has_unreadable:
            self._lists.drop(None)
            self._target.faults.passed(self._all, _HEAD)
        self._advance(version)
        self.relists += 1
        self.synced.set()
        self.answered.set()

    async def _read_list(self, limit: int) -> tuple[str, dict[Key, tuple[str, Any] | None]]:
        """Read the whole collection at one resourceVersion; unchanged objects are None."""
        found: dict[Key, tuple[str, Any] | None] = {}
        version = ""
        async with aclosing(self._collection.pages(limit)) as pages:
            async for page in pages:
                version = version or page.metadata.resource_version
                async for raw in in_slices(page.items or ()):
                    self._read_item(raw, found)
                self._contact = self._clock.monotonic()
        return version, found

    def _read_item(self, raw: msgspec.Raw, found: dict[Key, tuple[str, Any] | None]) -> None:
        """Add an object of a list."""
        head = self._head(raw)
        if head is None:
            return
        key = head.namespace, head.name
        if self._target.has(key, head.resource_version):
            found[key] = None
            return
        read = self._target.read(raw)
        if not self._target.drops(read):
            found[key] = head.resource_version, read

    def _head(self, raw: msgspec.Raw) -> Head | None:
        """Name, namespace and version of an object; None if they cannot be read, until a later list has them."""
        try:
            return head_of(raw)
        except Exception as error:
            self._has_unreadable = True
            self._target.faults.failed(self._all, _HEAD, error, self._lists.fail(None))
            return None

    async def _follow(self) -> None:
        """Watch until the server ends the watch, or everything must be listed again; catch up when requested."""
        while not self._must_list:
            if self._awaited:
                await self._reach_awaited()
                continue  # more may be asked for meanwhile
            async with self._until_awaited():
                await self._watch(self.watch_seconds)
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
        if len(self._target) > self.page_size:
            await self._watch(CATCH_UP_SECONDS)
        if self._awaited:
            await self._list()

    async def _watch(self, seconds: float) -> None:
        async for event, raw in self._collection.watch(self._version, seconds):
            self._contact = self._clock.monotonic()
            head = self._head(raw)
            if head is None:
                continue
            key = head.namespace, head.name
            if event == "DELETED":
                self._target.remove(key)
            elif event != "BOOKMARK":
                self._target.put(key, head.resource_version, self._target.read(raw))
            self._advance(head.resource_version or self._version)
