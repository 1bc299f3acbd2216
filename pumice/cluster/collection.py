"""The objects of one kind, in one namespace or matching selectors, as an API server lists and watches them.

A list may have 140,000 objects. It is decoded page by page, so at most two pages are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.client import Client
from pumice.cluster.reading import decode

__all__ = ["Collection", "Head", "ListPage", "head_of"]

_BY_NAME = "metadata.name="
"""The field selector of a single object."""


class Head(msgspec.Struct, rename="camel"):
    """What tells an object, or a list, from others."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: Head = msgspec.field(default_factory=Head)


class ListPage(msgspec.Struct):
    """A page of a list, with objects that are not decoded yet."""

    metadata: Head = msgspec.field(default_factory=Head)
    items: list[msgspec.Raw] | None = None


_heads = msgspec.json.Decoder(_Object)
_pages = msgspec.json.Decoder(ListPage)


@dataclass(frozen=True, slots=True)
class Collection:
    """What is listed and watched.

    Attributes:
        client: Session with the API server.
        kind: Kind of the objects.
        namespace: Only this namespace; all when None.
        label_selector: Only objects with these labels.
        field_selector: Only objects with these fields.
    """

    client: Client
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
        async with aclosing(self._bodies(1)) as bodies:
            body = await anext(bodies)
        return version_number(decode(_pages, body).metadata.resource_version)

    async def pages(self, limit: int) -> AsyncGenerator[ListPage, None]:
        """Read a list; while one page is processed, the next one is read."""
        async with aclosing(_one_ahead(self._bodies(limit))) as bodies:
            async for body in bodies:
                yield decode(_pages, body)

    def watch(self, version: str, seconds: float) -> AsyncGenerator[tuple[str, msgspec.Raw], None]:
        """Follow changes after a resourceVersion; see `Client.watch`."""
        return self.client.watch(
            self.kind,
            self.namespace,
            resource_version=version,
            timeout=seconds,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
        )

    def _bodies(self, limit: int) -> AsyncGenerator[bytes, None]:
        return self.client.pages(
            self.kind,
            self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            limit=limit,
        )


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
