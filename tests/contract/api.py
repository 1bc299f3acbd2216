"""A client for the contract suite: no more than HTTP and JSON, so that nothing stands in between."""

import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp

from tests.kit.waiting import until

Json = dict[str, Any]
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True)
class Answer:
    """What an API server has answered.

    Attributes:
        code: HTTP status code.
        body: The decoded body; its text under `text` where it is no JSON object.
        warnings: Texts of `Warning` headers.
    """

    code: int
    body: Json
    warnings: list[str] = field(default_factory=list)

    def expect(self, code: int) -> Json:
        """The body, if the code is the one expected."""
        assert self.code == code, f"expected {code}, found {self.code}: {self.body}"
        return self.body

    def refused(self, code: int, reason: str) -> Json:
        """The Status, if the request was refused so."""
        body = self.expect(code)
        assert body["kind"] == "Status"
        assert body["status"] == "Failure"
        assert body["code"] == code
        assert body.get("reason", "") == reason
        return body

    @property
    def version(self) -> str:
        """The object's resourceVersion."""
        return str(self.body["metadata"]["resourceVersion"])


class Api:
    """One API server.

    Args:
        name: `embedded` or `real`.
        url: Its address.
        token: Bearer token of an administrator.
        tls: How to trust it; None over plain HTTP.
    """

    def __init__(self, name: str, url: str, token: str, tls: ssl.SSLContext | None = None) -> None:
        self.name = name
        self._url = url
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token}", "User-Agent": "contract/1"},
            connector=aiohttp.TCPConnector(ssl=tls if tls is not None else True),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> Answer:
        """One request; keywords go into the query."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, params=query
        ) as response:
            raw = await response.read()
            try:
                decoded = json.loads(raw)
            except ValueError:
                decoded = {"text": raw.decode()}
            warnings = [
                each.partition('"')[2].removesuffix('"').replace('\\"', '"')
                for each in response.headers.getall("Warning", [])
            ]
            return Answer(response.status, decoded, warnings)

    async def get(self, path: str, **query: str) -> Answer:
        """Read."""
        return await self.send("GET", path, **query)

    async def create(self, path: str, obj: Json, **query: str) -> Answer:
        """Create."""
        return await self.send("POST", path, obj, **query)

    async def update(self, path: str, obj: Json, **query: str) -> Answer:
        """Replace."""
        return await self.send("PUT", path, obj, **query)

    async def patch(self, kind: str, path: str, patch: Any, **query: str) -> Answer:
        """Patch; the kind is `json`, `merge`, `strategic` or `apply`."""
        return await self.send("PATCH", path, patch, content_type=PATCHES[kind], **query)

    async def delete(self, path: str, options: Json | None = None, **query: str) -> Answer:
        """Delete."""
        return await self.send("DELETE", path, options, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[AsyncIterator[Json]]:
        """The events of a watch, one after the other."""
        params = {"watch": "true", "timeoutSeconds": "20", **query}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=30)
        async with self._session.get(self._url + path, params=params, timeout=timeout) as response:
            assert response.status == 200, await response.text()

            async def events() -> AsyncIterator[Json]:
                while line := await response.content.readline():
                    yield json.loads(line)

            yield events()

    async def until(self, path: str, condition: Callable[[Answer], bool]) -> Answer:
        """Read until the answer is as wanted."""
        answers: list[Answer] = []

        async def as_wanted() -> bool:
            answers[:] = [await self.get(path)]
            return condition(answers[0])

        await until(as_wanted, path, 30, around=lambda: answers)
        return answers[0]

    async def gone(self, path: str) -> None:
        """Wait until an object is gone."""
        await self.until(path, lambda answer: answer.code == 404)
