"""The objects of one kind, in one namespace or matching selectors, as an API server lists and watches them.

A list may have 140,000 objects. It is read page by page, so at most two pages are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.errors import ApiError, TooLarge, error_of
from pumice.cluster.paths import collection_path
from pumice.cluster.reading import decode, frames
from pumice.cluster.transport import Transport

T = TypeVar("T")

PAGE_SIZE = 500
"""Number of objects in a page of a list, as in client-go."""

PAGE_BYTES = 4 * 1024 * 1024
"""Maximum size of a page with several objects; 500 pods of four thousand bytes are half of it."""

WATCH_GRACE_SECONDS = 30.0
"""How much longer than requested a watch may stay silent before its connection counts as broken."""

WATCH_SECONDS = 290.0
"""How long one watch lasts; renewing it spreads the load when API servers come and go."""

_BY_NAME = "metadata.name="
"""The field selector of a single object."""


class Head(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    """What tells an object, or a list, from others."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    continue_: str = ""


class _Object(msgspec.Struct):
    metadata: Head = msgspec.field(default_factory=Head)


class ListPage(msgspec.Struct):
    """A page of a list, with objects that are not decoded yet."""

    metadata: Head = msgspec.field(default_factory=Head)
    items: list[msgspec.Raw] | None = None


def decode_answer(decoder: msgspec.json.Decoder[T], body: bytes, asked: str) -> T:
    """Decode what an API server has answered.

    Args:
        decoder: Decoder of what is expected.
        body: The answer.
        asked: The request, for the error.

    Raises:
        ApiError: The answer is something else, such as the page of a proxy.
    """
    try:
        return decode(decoder, body)
    except msgspec.MsgspecError as error:
        message = f"expected a JSON object, found {body[:200]!r}"
        raise ApiError(200, "BadAnswer", message, context=asked) from error


_heads = msgspec.json.Decoder(_Object)
_pages = msgspec.json.Decoder(ListPage)


@dataclass(frozen=True, slots=True)
class Collection:
    """What is listed and watched.

    Attributes:
        transport: Session with the API server.
        kind: Kind of the objects.
        namespace: Only this namespace; all when None.
        label_selector: Only objects with these labels.
        field_selector: Only objects with these fields.
    """

    transport: Transport
    kind: Kind
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    def __str__(self) -> str:
        """The one object, or the kind, for logs."""
        _, named, name = (self.field_selector or "").partition(_BY_NAME)
        return f"{self.kind.resource} {name}" if named else self.kind.resource

    async def version(self) -> int:
        """The resourceVersion of a consistent read."""
        async with aclosing(self.bodies(1)) as bodies:
            body = await anext(bodies)
        return version_number(self._decoded(_heads, body).metadata.resource_version)

    async def pages(self, limit: int) -> AsyncGenerator[ListPage, None]:
        """Read a list; while one page is processed, the next one is read."""
        async with aclosing(_one_ahead(self.bodies(limit))) as bodies:
            async for body in bodies:
                yield self._decoded(_pages, body)

    def _decoded(self, decoder: msgspec.json.Decoder[T], body: bytes) -> T:
        return decode_answer(decoder, body, f"GET {self.kind.resource}")

    async def bodies(self, limit: int = PAGE_SIZE) -> AsyncGenerator[bytes, None]:
        """Read a list as the bytes of each page; limit 0 requests one page with everything.

        A page that is too large is requested again with fewer objects; the next ones then grow again.

        Raises:
            Gone: When a continue token has expired; earlier pages are then invalid.
            ApiError: Also when an answer is no list.
        """
        query, path, count = self._selectors(), collection_path(self.kind, self.namespace), limit
        while True:
            if count:
                query["limit"] = str(count)
            most = PAGE_BYTES if count > 1 else None
            try:
                body = await self.transport.request("GET", path, query=query, most=most)
            except TooLarge:
                count = max(1, count // 4)
                continue
            if len(body) * 2 < PAGE_BYTES:
                count = min(limit, count * 2)
            yield body
            token = self._decoded(_heads, body).metadata.continue_
            if not token:
                return
            query["continue"] = token

    async def watch(
        self, resource_version: str, seconds: float = WATCH_SECONDS
    ) -> AsyncGenerator[tuple[str, msgspec.Raw], None]:
        """Follow changes after a resourceVersion, bookmarks included.

        It ends when the server ends it, after about so many seconds at the latest. Continue from the last resourceVersion.

        Yields:
            Event type (`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`) and the object's JSON.

        Raises:
            Gone: When the resourceVersion is too old; list again.
            Unavailable: When the connection breaks.
        """
        query = self._selectors() | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        path, silence = collection_path(self.kind, self.namespace), seconds + WATCH_GRACE_SECONDS
        async with self.transport.stream(path, query=query, silence=silence) as chunks:
            async for event, raw in frames(chunks):
                if event == "ERROR":
                    raise error_of(0, raw, f"WATCH {path}")
                yield event, raw

    def _selectors(self) -> dict[str, str]:
        found = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: value for key, value in found.items() if value is not None}


def head_of(raw: msgspec.Raw) -> Head:
    """Name, namespace and version of an object.

    Raises:
        msgspec.MsgspecError: It has none that can be read.
    """
    return decode(_heads, raw).metadata


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
