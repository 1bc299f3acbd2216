"""The page of `pumice web` as tests open and read it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import aiohttp

from pumice.cli.web import serving
from pumice.cluster.client import Client
from pumice.scheduler import load_config
from tests.integration.cli.servers import ran


class Page:
    """The page of one start.

    Attributes:
        address: Where it is, with the secret.
        base: The same without it.
        session: One that has the cookie.
    """

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address = address
        self.base = address.partition("/?")[0]
        self.session = session

    async def data(self, path: str, code: int = 200) -> Any:
        joint = "&" if "?" in path else "?"
        async with self.session.get(f"{self.base}{path}{joint}format=json") as answer:
            assert answer.status == code, await answer.text()
            return await answer.json()

    async def html(self, path: str, code: int = 200) -> str:
        headers = {"Accept": "text/html"}
        async with self.session.get(f"{self.base}{path}", headers=headers) as answer:
            assert answer.status == code, await answer.text()
            return await answer.text()


@asynccontextmanager
async def page_of(url: str, namespace: str | None = None) -> AsyncIterator[Page]:
    jar = aiohttp.CookieJar(unsafe=True)  # which keeps cookies of addresses, too
    async with (
        Client.connect(server=url) as client,
        serving(client, load_config(None), namespace=namespace) as (address, _),
        aiohttp.ClientSession(cookie_jar=jar) as session,
    ):
        async with session.get(address) as answer:
            assert answer.status == 200
            assert "secret" not in str(answer.url)
        page = Page(address, session)
        await page.data("/waiting")
        yield page


class Tags(HTMLParser):
    """Elements and attributes of a page that run code, or that no template has."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.number = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.number += 1
        given = dict(attrs)
        wrong = [name for name in given if name.startswith("on") or name == "style"]
        is_code = tag == "script" and given != {"src": "/static/site.js", "defer": None}
        leads_away = not re.match(r"[/?#]", given.get("href") or given.get("src") or "/")
        if wrong or is_code or leads_away or tag in ("img", "b", "iframe", "style"):
            self.wrong.append(f"{tag} {attrs}")


async def explained(url: str, *arguments: str) -> dict[str, Any]:
    told = await asyncio.to_thread(ran, "explain", *arguments, "--master", url, "-o", "json")
    assert told.code == 0, told.err
    found: dict[str, Any] = told.json
    return found
