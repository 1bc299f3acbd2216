"""A watch: changes after a version, streamed line by line.

Source: Kubernetes API concepts, "Efficient detection of changes", "Watch bookmarks" and
"Streaming lists".
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pumice.embedded import statuses
from pumice.embedded.media import OBJECT, MediaForm
from pumice.embedded.rendering import Renderer
from pumice.embedded.resources import Resource
from pumice.embedded.selectors import Selector, everything
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Storage, StoredWrite, Version, encode

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CHUNK = 256


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What is watched and how.

    Attributes:
        resource: The resource.
        namespace: Only this namespace; None for all.
        revision: Changes after this version; None begins with the objects as they are.
        selector: Which objects.
        bookmarks: Whether to tell now and then which version has been reached.
        initial_events: Whether to begin with all objects and mark where these end.
        timeout: Seconds after which the watch ends.
        form: Form of the objects.
        include: What tables carry of their objects.
    """

    resource: Resource
    namespace: str | None = None
    revision: int | None = None
    selector: Selector = everything
    bookmarks: bool = False
    initial_events: bool = False
    timeout: float = 3600.0
    form: MediaForm = OBJECT
    include: str = ""


async def watch(
    storage: Storage, renderer: Renderer, request: WatchRequest, bookmark_interval: float
) -> AsyncGenerator[bytes]:
    """Events as lines of JSON, several lines at a time where several are due.

    Ends after the timeout, after an error event, or when the resource goes away.
    """
    stream = _Stream(storage, renderer, request)
    loop = asyncio.get_running_loop()
    end = loop.time() + request.timeout
    bookmark_at = loop.time() + bookmark_interval if request.bookmarks else end
    woken = asyncio.Event()
    table = storage.table(request.resource.key)
    table.watchers.add(woken.set)
    try:
        for part in stream.begin():
            yield part
        while stream.open:
            woken.clear()
            part = stream.advance()
            if part:
                yield part
                continue
            if storage.closed or storage.table(request.resource.key) is not table:
                return
            now = loop.time()
            if now >= end:
                break
            if now >= bookmark_at:
                if part := stream.bookmark():
                    yield part
                bookmark_at = now + bookmark_interval
                continue
            try:
                await asyncio.wait_for(woken.wait(), min(end, bookmark_at) - now)
            except TimeoutError:
                continue
        if request.bookmarks and stream.open and (part := stream.bookmark()):
            yield part
    finally:
        table.watchers.discard(woken.set)


class _Stream:
    """The position of one watch, and the text of its events."""

    def __init__(self, storage: Storage, renderer: Renderer, request: WatchRequest) -> None:
        self.open = True
        self._storage = storage
        self._renderer = renderer
        self._request = request
        self._table = storage.table(request.resource.key)
        self._position = 0
        self._first = True

    def begin(self) -> list[bytes]:
        """Find the starting point and give what stands before it."""
        request, table = self._request, self._table
        if request.revision is not None and not request.initial_events:
            try:
                self._position = table.position(request.revision)
            except ApiStatusError as error:
                return [self._error(error)]
            return []
        self._position = table.end
        items = [each for each in table.items(request.namespace) if request.selector(each.obj)]
        parts = [
            b"".join(self._line("ADDED", each) for each in items[start : start + _CHUNK])
            for start in range(0, len(items), _CHUNK)
        ]
        if request.initial_events:
            parts.append(self.bookmark({INITIAL_EVENTS_END: "true"}))
        return parts

    def advance(self) -> bytes:
        """The text of what has happened since the last call, at most a chunk of it."""
        try:
            changes = self._table.since(self._position)[:_CHUNK]
        except ApiStatusError as error:
            return self._error(error)
        self._position += len(changes)
        return b"".join(filter(None, map(self._event, changes)))

    @property
    def is_ahead(self) -> bool:
        """Whether the watch is from a version that is still to come, as after a restore: until then it is silent."""
        asked = self._request.revision
        return asked is not None and asked > self._storage.revision

    def bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        """An event that carries nothing but the version reached; nothing if that is not the version asked for yet."""
        if self.is_ahead:
            return b""
        kind = self._request.resource.kind
        metadata: dict[str, object] = {"resourceVersion": str(self._storage.revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {**kind.type_meta, "metadata": metadata}
        return encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    def _event(self, change: StoredWrite) -> bytes | None:
        request = self._request
        if request.revision is not None and change.new.revision <= request.revision:
            return None
        if request.namespace is not None and change.key[0] != request.namespace:
            return None
        if request.selector is everything:
            return self._line(change.type, change.new)
        before = change.old is not None and request.selector(change.old.obj)
        after = change.type != "DELETED" and request.selector(change.new.obj)
        match before, after:
            case True, True:
                return self._line("MODIFIED", change.new)
            case False, True:
                return self._line("ADDED", change.new)
            case True, False:
                # Watches that selected it get its deletion with the old content and the new version.
                return self._line("DELETED", _as_it_was(change))
            case _:
                return None

    def _line(self, type_: str, version: Version) -> bytes:
        request = self._request
        if request.form.name == "object":
            raw = self._renderer.raw(request.resource, version)
        else:
            raw = self._renderer.event(
                request.resource, version, request.form, request.include, first=self._first
            )
            self._first = False
        return b'{"type":"' + type_.encode() + b'","object":' + raw + b"}\n"

    def _error(self, error: statuses.ApiStatusError) -> bytes:
        self.open = False
        return encode({"type": "ERROR", "object": error.body()}) + b"\n"


def _as_it_was(change: StoredWrite) -> Version:
    old = change.old
    assert old is not None
    revision = change.new.revision
    metadata = {**old.obj["metadata"], "resourceVersion": str(revision)}
    return Version({**old.obj, "metadata": metadata}, revision)
